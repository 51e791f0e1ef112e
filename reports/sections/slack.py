"""What the end of a step does not wait for."""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.api.renderers import Slack
from reports.blocks import Block, Code, Column, Details, Line, Paragraph, Row, Table, line
from reports.labels import Labels
from reports.outline import Outline

SHOWN = 8

FREE = 0.005
"""Share of the step by which each call could take longer for a row here: as `advisor_core.job.plan.WORTH`."""


def slack(outline: Outline, t: Labels) -> Iterator[Block]:
    """The operator types and collectives that could take longer, those with most time first, folded away."""
    step = sum(owner.ns for owner in outline.result.critical_path)
    free = [row for row in outline.result.slack if row.least_ns is None or row.least_ns >= max(1.0, FREE * step)]
    if not free:
        return
    columns = (Column(t("slack.what"), style="long"), *(Column(t(f"slack.{key}"), numeric=True) for key in _COLUMNS))
    rows = tuple(Row((line(Code(row.name, "cell")), *_times(row, t))) for row in free[:SHOWN])
    note = Paragraph(line(t("slack.note")), "small")
    yield Details(line(t("slack.title")), (Table(columns, rows), note))


_COLUMNS = ("ns", "least", "middle")


def _times(row: Slack, t: Labels) -> tuple[Line, ...]:
    longer = (t("slack.any") if ns is None else t.time(ns) for ns in (row.least_ns, row.middle_ns))
    return (line(t.time(row.ns)), *(line(one) for one in longer))
