"""The appendix: settings of the job, files that were read, diagnostics, and the tool that read them."""

from __future__ import annotations

from advisor_core.api.renderers import ReplayModel, TableView
from reports import tables
from reports.blocks import (
    Block,
    Code,
    Column,
    Columns,
    Details,
    Line,
    Pairs,
    Paragraph,
    Row,
    Section,
    Table,
    Words,
    line,
)
from reports.labels import Labels, one_line, shorten
from reports.outline import Outline
from reports.sections.grid import cut
from reports.sections.limits import Limits
from reports.sections.plan import TRUSTED_ERROR
from reports.sections.problem_words import linked
from reports.view_tables import written

MESSAGE = 400
"""Longest message of a diagnostic."""
CONTRADICTIONS = 10
"""Longest list of dependencies that the recorded times contradict."""


def environment(outline: Outline, t: Labels) -> Section:
    """Settings of the chip, of the profiler and of the job."""
    recorded = outline.result.environment
    columns: list[Block] = []
    for key, values in (("env.chip", recorded.chip), ("env.profiler", recorded.profiler)):
        if values:
            pairs = tuple((line(name), line(Words(value, "value"))) for name, value in tables.pairs(values, t))
            columns.append(Pairs(pairs, t(key)))
    judged = outline.settings
    of_tables = {row[0] for view in judged for row in view.data.rows}
    variables: list[tuple[Line, Line]] = [
        (line(Code(name)), line(Code(value) if value else Words(t("env.unset"), "faint")))
        for name, value in sorted(recorded.variables.items())
        if name not in of_tables
    ]
    variables += [
        (line(Code(name)), line(Words(t("env.not_recorded"), "faint")))
        for name in outline.unrecorded
        if name not in of_tables
    ]
    if variables:
        columns.append(Pairs(tuple(variables), t("env.variables"), style="variables"))
    blocks: list[Block] = [Paragraph(line(t("env.note")), "lead"), Columns(tuple(columns))]
    for view in judged:
        blocks += [Paragraph(line(Words(t.of(view.title), "strong"))), _settings(view, outline, t)]
    return Section("environment", t("env.title"), tuple(blocks))


def _settings(view: TableView, outline: Outline, t: Labels) -> Table:
    """Environment variables with what they mean for the job, and the problems whose advice sets or names them."""
    table = written(view, t)
    rows = tuple(
        Row((*row.cells, linked(outline.advised_in(str(cells[0])), outline)))
        for row, cells in zip(table.rows, view.data.rows, strict=True)
    )
    return Table((*table.columns, Column(t("env.problems"), style="short")), rows)


def inputs(outline: Outline, t: Labels, limits: Limits) -> Section:
    """The profiles, with checksums of what was read."""
    entries = sorted(outline.result.inputs, key=lambda entry: entry.rank)
    names = ("path", "kind", "level", "framework", "versions")
    columns = (
        Column(t("inputs.rank"), numeric=True),
        *(Column(t(f"inputs.{name}")) for name in names),
        Column("sha256"),
    )
    rows = [
        Row(
            (
                line(str(entry.rank)),
                line(Code(entry.path, "cell")),
                line(entry.kind),
                line(entry.level or "–"),
                line(entry.framework or "–"),
                line(t.join([f"{name} {version}" for name, version in entry.versions.items()])),
                line(Code(entry.sha256, "hash")),
            )
        )
        for entry in entries[: limits.rows]
    ]
    blocks: list[Block] = [Table(columns, tuple(rows)), *cut(len(entries), limits.rows, t)]
    for entry in entries[: limits.inputs]:
        if entry.files:
            heads = (Column(t("inputs.file")), Column(t("word.bytes"), numeric=True), Column("sha256"))
            files = tuple(
                Row((line(file.name), line(t.quantity(file.bytes, "bytes")), line(Code(file.sha256, "hash"))))
                for file in entry.files
            )
            summary = line(t("inputs.files", rank=entry.rank, count=len(entry.files)))
            blocks.append(Details(summary, (Table(heads, files),), extra=True))
    more = len(entries) - limits.inputs
    if limits.inputs and more > 0:
        blocks.append(Paragraph(line(t("inputs.files_left", count=more)), "small"))
    return Section("inputs", t("inputs.title"), tuple(blocks))


def diagnostics(outline: Outline, t: Labels, rows: int) -> Section:
    """The oddities of the input, or of a rule or plugin."""
    entries = outline.result.diagnostics
    if not entries:
        return Section("diagnostics", t("diag.title"), (Paragraph(line(t("diag.none"))),))
    columns = (Column(t("diag.severity")), Column(t("diag.source")), Column(t("diag.message")))
    body = tuple(
        Row(
            (
                line(Words(t(f"diag.{entry.severity}"), f"diag-{entry.severity}")),
                line(Code(entry.source)),
                line(
                    t("word.role", role=entry.role) + t("word.colon") if entry.role else None,
                    shorten(one_line(t.of(entry.message)), MESSAGE),
                ),
            )
        )
        for entry in entries[:rows]
    )
    return Section("diagnostics", t("diag.title"), (Table(columns, body), *cut(len(entries), rows, t)))


def replay(outline: Outline, t: Labels) -> Section | None:
    """The error of the replay, on which what a change saves rests, and what the recorded times contradict."""
    model = outline.result.model
    if model is None:
        return None
    worst = max(model.error_share_by_rank, key=lambda rank: (model.error_share_by_rank[rank], -rank))
    error = model.error_share_by_rank[worst]
    ranks = len(model.error_share_by_rank)
    blocks: list[Block] = [
        Paragraph(line(t("replay.error", error=t.quantity(error, "ratio"), rank=worst, count=ranks))),
        Paragraph(
            line(
                t(
                    "replay.edges",
                    edges=model.edges,
                    inferred=model.inferred_edges,
                    count=model.violated_edges,
                    calls=model.joined_calls,
                )
            )
        ),
    ]
    if model.contradictions:
        blocks.append(_contradictions(model, t))
    if error > TRUSTED_ERROR:
        blocks.insert(0, Paragraph(line(t("replay.doubt", limit=t.quantity(TRUSTED_ERROR, "ratio")))))
    return Section("replay", t("replay.title"), tuple(blocks))


def _contradictions(model: ReplayModel, t: Labels) -> Details:
    """Names of what was to wait and did not: a clock, a link or an inference is wrong there."""
    heads = ("rank", "kind", "source", "target", "count", "most")
    columns = tuple(Column(t(f"contradiction.{head}"), numeric=head in ("count", "most")) for head in heads)
    shown = sorted(model.contradictions, key=lambda one: -one.most_ns)[:CONTRADICTIONS]
    rows = tuple(
        Row(
            (
                line(str(one.rank)),
                line(t(f"contradiction.{one.kind}")),
                line(Code(one.source) if one.source else t("contradiction.host")),
                line(Code(one.target) if one.target else t("contradiction.host")),
                line(str(one.count)),
                line(t.quantity(one.most_ns, "ns")),
            )
        )
        for one in shown
    )
    return Details(line(t("contradiction.title", count=len(rows))), (Table(columns, rows),))


def tool(outline: Outline, t: Labels) -> Section:
    """The versions that wrote the report."""
    result = outline.result
    versions = {result.tool.name: result.tool.version, t("tool.schema"): result.schema_version, **result.tool.plugins}
    pairs = tuple((line(name), line(Words(version, "value"))) for name, version in versions.items())
    return Section("tool", t("tool.title"), (Pairs(pairs),))
