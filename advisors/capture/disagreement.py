"""DQ016: totals that two files of the recording both have and give differently."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import DOUBT, Facts, Unavailable
from advisors.measuring import row
from advisors.messages import message


@advisor(
    "capture.disagreement",
    needs=(DOUBT,),
    columns=(
        Column("file", "text", "", "the file that is off most, '' where all agree", zh="文件"),
        Column("others", "text", "", "the files that speak against it", zh="其他"),
        Column("itself", "bool", "", "what speaks against the file stands in the file itself", zh="自相矛盾"),
        Column(
            "apart",
            "float",
            "ratio",
            "the largest difference of a total, over the larger of the two numbers; all of it from another time",
            zh="相差",
        ),
        Column("totals", "int", "count", "totals that two files give differently", zh="合计项数"),
        Column("withheld", "bool", "", "of some table nothing is derived", zh="不予采用"),
    ),
    evidence=(Column("total", "float", "", "what the file gives; its unit is that of the total", zh="合计"),),
)
def disagreement(facts: Facts, params: Params) -> Observations:
    """Files of one recording that give the same total differently."""
    doubt = facts[DOUBT]
    if not doubt.compared and not doubt.disagreements:
        raise Unavailable(message("capture.nothing_in_common"), message("capture.whole_export"))
    found = doubt.disagreements
    worst = found[0] if found else None
    others = dict.fromkeys(one.other_file for one in found if worst is not None and one.file == worst.file)
    frame = row(
        file=worst.file if worst is not None else "",
        others=", ".join(others),
        itself=worst is not None and list(others) == [worst.file],
        apart=worst.off if worst is not None else 0.0,
        totals=len(found),
        withheld=bool(doubt.withheld),
    )

    def evidence(number: int) -> Sequence[Reference]:
        return [
            Metric(
                one.total,
                [{"file": one.file, "total": one.value}, {"file": one.other_file, "total": one.other}],
                {"total": one.unit},
            )
            for one in found[:_LISTED]
        ]

    return Observations(frame, evidence)


_LISTED = 10
"""Totals that are shown as evidence at most, those furthest apart first."""
