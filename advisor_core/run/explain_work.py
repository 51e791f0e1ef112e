"""The explanation of an operator or a collective: how much of it ran, with what, and which problems show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from advisor_core.result.run import RunResult
from advisor_core.result.view import TableView
from advisor_core.result.work import CollectiveTime, OperatorTime, Work
from advisor_core.text.units import format_quantity

_LARGEST = 5
"""Shapes and sizes that are listed."""

_CALL = re.compile(r"hcom_(?P<operation>[A-Za-z]+?)(?:_.*)?")
"""The name of a call of HCCL: ``hcom_allReduce__586_0_1``."""

STAGES = "kernel-stages"
"""The begin of the ids of the tables of the stages of kernels, by operator type in the first column."""

T = TypeVar("T", OperatorTime, CollectiveTime)


def explain_work(result: RunResult, what: str, lang: str) -> Iterator[str]:
    """Nothing where neither an operator type nor a collective has this name, in whatever case. Where none has it, those
    whose names begin with it: ``MatMul`` is ``MatMulV3`` on newer chips."""
    call = _CALL.fullmatch(what)
    asked = (call["operation"] if call else what).casefold()
    for matches in (asked.__eq__, lambda name: name.startswith(asked)):
        lines = [line for work in result.work for line in _of_role(result, work, matches, lang)]
        if lines and asked:
            yield from lines
            return


def _of_role(result: RunResult, work: Work, matches: Callable[[str], bool], lang: str) -> Iterator[str]:
    role = f"role {work.role} " if work.role else ""
    wall = next((mean.wall_ns for mean in result.mean_steps if mean.role == work.role and mean.rank is None), 0)

    def told(rows: Sequence[T]) -> str:
        ns, calls = (sum(getattr(row, name) for row in rows) / work.rank_steps for name in ("ns", "calls"))
        share = f", {format_quantity(ns / wall, 'ratio', lang)} of it" if wall else ""
        return f"{format_quantity(round(ns), 'ns', lang)} per step of a rank{share}, calls {calls:.4g}"

    types = dict.fromkeys(row.type for row in work.operators if row.type and matches(row.type.casefold()))
    for name in types:
        rows = sorted((row for row in work.operators if row.type == name), key=lambda row: -row.ns)
        yield f"{role}operator {name} ({', '.join(sorted({row.operator_class for row in rows}))}): {told(rows)}"
        for row in rows[:_LARGEST]:
            yield f"  {told([row])}: {'further shapes' if row.shapes is None else row.shapes or 'shapes not recorded'}"
        yield from _further(len(rows))
        yield from _stages(result, work.role, name, lang)
        yield from _problems(result, work.role, name, lang)
    operations = {row.operation for row in work.collectives if row.operation and matches(row.operation.casefold())}
    for name in sorted(operations):
        calls = sorted((row for row in work.collectives if row.operation == name), key=lambda row: -row.ns)
        yield f"{role}collective {name}: {told(calls)}"
        for call in calls[:_LARGEST]:
            yield f"  {told([call])}: {_size(call, lang)}; {_parts(call, work.rank_steps, lang)}"
        yield from _further(len(calls))
        yield from _problems(result, work.role, name, lang)


def _stages(result: RunResult, role: str | None, name: str, lang: str) -> Iterator[str]:
    """The stages of its kernels, mean of one kernel, of each rank that recorded launches."""
    for view in result.views:
        if isinstance(view, TableView) and view.id.startswith(STAGES) and view.role == role:
            heads = [column.label.of(lang) for column in view.data.columns]
            for row in view.data.rows:
                times = [
                    f"{head} {format_quantity(cell, column.unit, lang)}"
                    for head, cell, column in zip(heads, row, view.data.columns, strict=True)
                    if column.unit and isinstance(cell, int | float)
                ]
                if row[0] == name:
                    yield f"  a kernel of rank {view.rank}, mean: {', '.join(times)}"


def _further(count: int) -> Iterator[str]:
    if count > _LARGEST:
        yield f"  and {count - _LARGEST} more, in `work` of report.json"


def _size(call: CollectiveTime, lang: str) -> str:
    size = "size not known" if call.bytes is None else f"{format_quantity(call.bytes, 'B', lang)} each"
    members = "" if call.members is None else f" in groups of {call.members}"
    return f"{size}{members}" if call.listed else "further sizes"


def _parts(call: CollectiveTime, steps: int, lang: str) -> str:
    """Per step of a rank."""
    uncovered, waiting = (format_quantity(round(ns / steps), "ns", lang) for ns in (call.uncovered_ns, call.waiting_ns))
    return f"{uncovered} while nothing computes, {waiting} of it waiting for ranks"


def _problems(result: RunResult, role: str | None, name: str, lang: str) -> Iterator[str]:
    """The problems that are about it, or have a row of evidence that names it as a whole or as the part of a name."""
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)
    findings = {finding.fingerprint: finding for finding in result.findings}
    for problem in result.problems:
        finding = findings[problem.findings[0]]
        rows = [finding.subject, *(row for item in finding.evidence for row in item.rows)]
        if finding.role == role and any(
            isinstance(value, str) and word.search(value) for row in rows for value in row.values()
        ):
            yield f"  shown by {problem.number}: {finding.title.of(lang)}"
