"""A rule as text, for ``advisor rules show``."""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.rules.compiled import CompiledException, CompiledRule
from advisor_core.rules.model import HoldsFor


def describe(compiled: CompiledRule) -> str:
    """The description of a rule: its subject, its thresholds and its advice."""
    return "\n".join(_lines(compiled))


def describe_holds(holds: HoldsFor) -> str:
    """For whom an advice holds, in words: every key with its values."""
    keys = ("phase", "role", "framework", "software", "chip")
    parts = [f"{key} {' or '.join(values)}" for key in keys if (values := getattr(holds, key))]
    return "; ".join([*parts, *(f"{name} {wanted}" for name, wanted in holds.versions.items())])


def _conditions(exception: CompiledException) -> Iterator[str]:
    if holds := describe_holds(exception.holds_for):
        yield holds
    if exception.when is not None:
        yield exception.when.source


def _lines(compiled: CompiledRule) -> Iterator[str]:
    rule = compiled.rule
    yield f"{rule.id} {rule.name} ({rule.status})   {compiled.file}:{compiled.line}"
    yield f"  {rule.text.title.en}"
    yield f"  advisor: {rule.advisor}: {compiled.advisor.meaning}"
    if compiled.applies is not None:
        yield f"  applies: {compiled.applies.source}"
    for name, sign in compiled.signs.items():
        yield f"  sign {name}: {sign.source}"
    yield f"  when: {compiled.when.source}"
    for level, condition in compiled.severity:
        yield f"  severity {level}: {condition.source}"
    idle = f", of it idle: {compiled.idle.source}" if compiled.idle is not None else ""
    claims = ", ".join(rule.claims) or "nothing"
    yield f"  impact: {compiled.impact.source}{idle} ({rule.impact.basis}), claims {claims}"
    for name, param in rule.params.items():
        origin = f"; set by {compiled.set_by[name]}" if name in compiled.set_by else ""
        yield f"  params.{name} = {param.value} {param.unit}: {param.why}{origin}"
    for column in compiled.advisor.declared().values():
        yield f"  column {column.name} [{column.unit or column.dtype}]: {column.meaning}"
    for made in compiled.advice:
        item = made.spec
        settings = " ".join(f"{name}={value}" for name, value in item.set.items())
        yield f"  advice ({item.kind}) {settings}: {item.text.en}"
        excludes = [name for name, _ in made.excludes]
        details = {
            "holds for": describe_holds(made.holds_for),
            "when": item.when,
            "unless": item.unless,
            "not together with": ", ".join(excludes),
            "hazards": ", ".join(item.hazards),
            "risk": item.risk.en if item.risk else "",
        }
        yield from (f"    {word}: {value}" for word, value in details.items() if value)
    for exception in compiled.exceptions:
        conditions = " and ".join(_conditions(exception))
        yield f"  no problem, told for {conditions}: {exception.spec.text.en}"
    for reference in rule.references:
        yield f"  source: {reference.title} {reference.url or ''}".rstrip()
