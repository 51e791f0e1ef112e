"""Leave out advice of a report that excludes an advice before it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from advisor_core.names.settings import clash
from advisor_core.result.finding import Advice, Finding
from advisor_core.rules.advising import nothing_left, summary
from advisor_core.text.base import Text
from advisor_core.text.messages import message


def combinable(findings: Sequence[Finding], alternatives: Collection[str] = ()) -> list[Finding]:
    """The findings without advice that excludes other advice of the report; what is left out is told, with the reason.

    The first advice of every finding comes before the second of any; among those the order of the findings decides.
    ``alternatives``: fingerprints of findings in whose place others are cured: they come last."""
    order = sorted(
        (finding.fingerprint in alternatives, place, number)
        for number, finding in enumerate(findings)
        for place in range(len(finding.advice))
    )
    kept: list[tuple[int, Advice]] = []
    withheld: dict[int, list[Text]] = {}
    for _, place, number in order:
        advice = findings[number].advice[place]
        barred = next((other for other in kept if _clash(advice, other[1])), None)
        if barred is None:
            kept.append((number, advice))
        else:
            rule = None if barred[0] == number else findings[barred[0]].rule
            withheld.setdefault(number, []).append(_reason(advice, barred[1], rule))
    return [
        finding.model_copy(
            update={
                "advice": [advice for owner, advice in kept if owner == number] or [nothing_left()],
                "withheld": [*finding.withheld, *withheld[number]],
            }
        )
        if number in withheld
        else finding
        for number, finding in enumerate(findings)
    ]


def exclusive(one: Finding, other: Finding) -> bool:
    """True where only one of two findings can be cured: whatever changes something for the one clashes with whatever
    does for the other."""
    own, others = ([advice for advice in finding.advice if advice.kind != "investigate"] for finding in (one, other))
    return bool(own and others) and all(_clash(advice, rival) for advice in own for rival in others)


def _clash(advice: Advice, other: Advice) -> bool:
    return clash(advice.uses, advice.excludes, other.uses, other.excludes)


def _reason(advice: Advice, other: Advice, rule: str | None) -> Text:
    """The reason for leaving an advice out; ``rule``: of the finding that has the other one, ``None`` for the same."""
    name = "advice.withheld.same" if rule is None else "advice.withheld.other"
    return message(name, advice=summary(advice), other=summary(other), rule=rule)
