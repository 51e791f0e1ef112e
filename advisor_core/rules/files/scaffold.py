"""The beginning of a rule for an advisor, with the columns that it may use, and of its cases."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor_core.contracts.advisor import Advisor
from advisor_core.contracts.columns import Column

_EXAMPLES = {"int": "1000000", "float": "0.5", "bool": "true", "text": "a name"}
_OF_THE_STEP = ("step_ns", "wall_ns")
"""Columns that tell how long a step takes, which is no impact."""


def rule_file(advisor: Advisor, rule: str) -> str:
    """A rule that can be loaded: what its author must decide is marked TODO."""
    time = _first(advisor, "ns")
    share = _first(advisor, "ratio")
    condition = f"{share} > params.min_share" if share else f"{time} > params.min_time" if time else "true"
    threshold = {
        f"{share} > params.min_share": "  min_share: {value: 0.01, unit: ratio, range: [0, 1],",
        f"{time} > params.min_time": "  min_time: {value: 1, unit: ms, range: [0, 1000],",
    }.get(condition)
    lines = [
        f"# {advisor.name}: {advisor.meaning}",
        *(f"#   {line}" for line in _columns(advisor)),
        *((f"# The advisor reads these parameters: {', '.join(advisor.params)}",) if advisor.params else ()),
        f"id: {rule}",
        f"name: todo-name-of-{rule.lower()}",
        "status: preview",
        f"advisor: {advisor.name}",
        f"requires: npu-advisor>={metadata.version('npu-advisor')}",
        "text:",
        '  title: "TODO: what is wrong, with the number that shows it"',
        '  why: "TODO: what was measured, and what follows from it"',
        '  good: "TODO: the same matter when it is in order"',
        '  verify: "TODO: how to see in a new profile that it is in order"',
        f"when: {condition}",
        "severity: {medium: true}",
        "impact: {value: " + (time or "0") + ", basis: upper_bound}",
        "claims: []  # TODO: ledger paths whose time this is about",
        "advice:",
        "  - kind: investigate",
        '    text: "TODO: what to do first; this one holds everywhere"',
    ]
    if threshold or advisor.params:
        lines.append("params:")
    if threshold:
        lines.append(f'{threshold} why: "TODO: where this comes from"}}')
    lines += [
        f'  {name}: {{value: 1, unit: count, why: "TODO: where this comes from, and its unit"}}'
        for name in advisor.params
        if not threshold or not threshold.strip().startswith(f"{name}:")
    ]
    lines += ["references:", '  - {title: "TODO: what this rests on"}']
    return "\n".join(lines) + "\n"


def cases_file(advisor: Advisor, rule: str) -> str:
    """A case in which the rule fires."""
    columns = [*advisor.about, *(column for name in ("ratio", "ns") if (column := _column(advisor, name)))]
    row = ", ".join(f'"{column.name}": {_EXAMPLES[column.dtype]}' for column in columns)
    return (
        f"cases: {rule}\nexamples:\n"
        "  - name: the rule fires\n"
        f"    rows: [{{{row}}}]\n"
        "    expect: {state: fail, severity: medium, advice: 1}\n"
    )


def _columns(advisor: Advisor) -> Iterator[str]:
    for column in advisor.declared().values():
        yield f"{column.name} [{column.unit or column.dtype}]: {column.meaning}"


def _column(advisor: Advisor, unit: str) -> Column | None:
    columns = (column for column in advisor.columns if column.unit == unit and column.name not in _OF_THE_STEP)
    return next(columns, None)


def _first(advisor: Advisor, unit: str) -> str:
    column = _column(advisor, unit)
    return column.name if column is not None else ""
