"""The environment variables of a rank as a table."""

from __future__ import annotations

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts
from advisor_core.api.renderers import Cell, Grid, TableColumn, TableView, View
from advisors.environment.measured import NEEDS, WANTS, measured
from advisors.environment.variables import JUDGES, OF_PYTORCH
from advisors.messages import message

_COLUMNS = ("environment.column.variable", "environment.column.recorded", "environment.column.meaning")


@drawing("environment.variables", needs=NEEDS, wants=WANTS)
def variables(facts: Facts) -> list[View]:
    """Environment variables of Ascend software, their recorded values, and what each means for the recorded steps."""
    profile = facts[PROFILE]
    if profile.vendor != "ascend":
        return []
    found = measured(facts)
    rows: list[list[Cell]] = []
    foreign = OF_PYTORCH if profile.framework not in (None, "pytorch") else frozenset[str]()
    for name, judge in JUDGES.items():
        if name in foreign:
            continue
        value = profile.variables.get(name)
        if value is None:
            recorded: Cell = message("environment.not_recorded")
        else:
            recorded = value or message("environment.unset")
        rows.append([name, recorded, judge(value, found)])
    return [
        TableView(
            id=f"settings-rank{profile.rank}",
            purpose="settings",
            title=message("environment.view.variables", rank=profile.rank),
            rank=profile.rank,
            data=Grid(columns=[TableColumn(label=message(name)) for name in _COLUMNS], rows=rows),
        )
    ]


DRAWINGS: tuple[Drawing, ...] = (variables,)
