"""DQ011: files that are damaged or incomplete."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    PROFILE,
    Facts,
    NotApplicable,
)
from advisors.columns import FILE
from advisors.measuring import row
from advisors.messages import message

_LISTED = 10


@advisor(
    "capture.damage",
    needs=(PROFILE,),
    columns=(
        Column("errors", "int", "count", "files or tables that could not be read", zh="错误数"),
        Column("warnings", "int", "count", "kinds of rows or values that were left out or repaired", zh="告警数"),
        Column("files", "text", "", "the files", zh="文件"),
    ),
    evidence=(
        FILE,
        Column("severity", "text", "", "how bad it is: error or warning", zh="严重程度"),
    ),
)
def damage(facts: Facts, params: Params) -> Observations:
    """Damage to the files of the profile."""
    profile = facts[PROFILE]
    if not profile.files and not profile.diagnostics:
        raise NotApplicable(message("capture.no_files"))
    said = [diagnostic for diagnostic in profile.diagnostics if diagnostic.severity != "info"]
    frame = row(
        errors=sum(diagnostic.severity == "error" for diagnostic in said),
        warnings=sum(diagnostic.severity == "warning" for diagnostic in said),
        files=", ".join(dict.fromkeys(diagnostic.source for diagnostic in said)),
    )

    def evidence(number: int) -> Sequence[Reference]:
        return [
            Metric(diagnostic.message, [{"file": diagnostic.source, "severity": diagnostic.severity}])
            for diagnostic in said[:_LISTED]
        ]

    return Observations(frame, evidence)
