"""Choose the advice of a finding: what can hold for the job and is not done yet, safe advice first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor_core.names.book import NameBook
from advisor_core.result.finding import Advice
from advisor_core.rules.applicability import Job, conditions
from advisor_core.rules.compiled import CompiledAdvice
from advisor_core.rules.language.template import code_span
from advisor_core.text.base import Scalar, Text
from advisor_core.text.listed import listed
from advisor_core.text.messages import message

_SENTENCE = re.compile(r"^.*?(?=[.:;](?:\s|$)|[。；：]|$)", re.DOTALL)


@dataclass(frozen=True)
class Candidate:
    """An advice whose conditions on the row do not rule it out. ``when``, ``unless``: whether they hold; ``None`` where
    that is not known, or there is no such condition."""

    advice: CompiledAdvice
    when: bool | None
    unless: bool | None


def advise(
    candidates: Sequence[Candidate], values: Mapping[str, Scalar], job: Job, names: NameBook
) -> tuple[tuple[tuple[int, Advice], ...], tuple[Text, ...]]:
    """The advice of a finding, each with its number in the rule, and the advice left out although it could hold, with
    the reason.

    Left out in silence: what cannot hold for the job. With the reason: what the job has set already, and what excludes
    a setting or feature that the job uses. Advice with hazards comes behind all others, in the order of the rule."""
    given: list[tuple[int, Advice]] = []
    withheld: list[Text] = []
    for candidate in candidates:
        compiled = candidate.advice
        checks = conditions(compiled.holds_for, job, names.title_of)
        if checks is None:
            continue
        used = {name: job.uses(name) for name, _ in compiled.excludes}
        unknown = [shown for name, shown in compiled.excludes if used[name] is None]
        advice = _rendered(candidate, values, [*checks, *_without(unknown)], job.variables)
        barred = next((shown for name, shown in compiled.excludes if used[name]), None)
        if compiled.settings and all(setting.is_set(job.variables) for setting in compiled.settings):
            withheld.append(message("advice.withheld.set", advice=summary(advice)))
        elif barred is not None:
            withheld.append(message("advice.withheld.excluded", advice=summary(advice), used=barred))
        else:
            given.append((compiled.number, advice))
    given.sort(key=lambda numbered: bool(numbered[1].hazards))
    return tuple(given) or ((0, nothing_left()),), tuple(withheld)


def nothing_left() -> Advice:
    """The advice of a finding when all other advice is left out."""
    return Advice(kind="investigate", text=message("advice.nothing_left"))


def summary(advice: Advice) -> Text:
    """The advice in a few words: its settings, or how its text begins. Markdown."""
    if advice.set:
        settings = " ".join(code_span(f"{name}={value}") for name, value in advice.set.items())
        return Text(en=settings, zh=settings)
    return Text(en=f"“{_begin(advice.text.en)}”", zh=f"“{_begin(advice.text.zh)}”")


def _begin(text: str) -> str:
    found = _SENTENCE.match(text)
    return (found.group() if found else text).strip()


def _rendered(
    candidate: Candidate, values: Mapping[str, Scalar], checks: Sequence[Text], recorded: Mapping[str, str]
) -> Advice:
    """The advice for one row; what could not be decided is handed to the reader."""
    item = candidate.advice
    only_if = list(checks)
    if candidate.when is None and item.when:
        only_if.append(message("rule.only_if", condition=code_span(item.when.source)))
    undecided = candidate.unless is None and item.unless_text
    return Advice(
        kind=item.spec.kind,
        text=item.text.render(values),
        set={setting.name: setting.beside(recorded) for setting in item.settings},
        risk=item.risk.render(values) if item.risk else None,
        only_if=Text(en=" ".join(t.en for t in only_if), zh="".join(t.zh for t in only_if)) if only_if else None,
        unless=undecided.render(values) if undecided else None,
        hazards=list(item.spec.hazards),
        uses=list(item.uses),
        excludes=[name for name, _ in item.excludes],
    )


def _without(excluded: Sequence[Text]) -> list[Text]:
    if not excluded:
        return []
    return [message("advice.only.without", **dict(listed(excluded)))]
