"""Explain a problem, a finding, a rule's state, a rank, a ledger entry, an operator or a collective, from the report
alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from advisor_core.contracts.ledger_paths import LedgerPath
from advisor_core.result.finding import Finding
from advisor_core.result.problem import Problem
from advisor_core.result.run import RuleOutcome, RunResult
from advisor_core.run.explain_rank import explain_rank
from advisor_core.run.explain_work import explain_work
from advisor_core.text.base import Scalar
from advisor_core.text.units import format_quantity

_RANK = re.compile(r"rank[ _]?(?P<rank>\d+)")


def explain(result: RunResult, what: str, lang: str) -> str:
    """Text about ``what``: the number of a problem, a fingerprint, a rule id or name, a rank (``rank 3``), a ledger
    path, an operator type or a collective. Raises LookupError."""
    numbered = {problem.number.lower(): problem for problem in result.problems}
    if problem := numbered.get(what.lower()):
        return "\n".join(_problem(result, problem, lang))
    if problems := [p for p in result.problems if what in _names(_finding_of(result, p))]:
        return "\n\n".join("\n".join(_problem(result, problem, lang)) for problem in problems)
    if outcomes := [outcome for outcome in result.rules if what in (outcome.rule, outcome.name)]:
        return "\n\n".join("\n".join(_outcome(outcome, lang)) for outcome in outcomes)
    if match := _RANK.fullmatch(what):
        lines = list(explain_rank(result, int(match["rank"]), lang))
    else:
        lines = list(_ledger(result, what, lang)) or list(explain_work(result, what, lang))
    if lines:
        return "\n".join(lines)
    raise LookupError(
        f"{what!r} is not a problem, fingerprint, rule, rank, ledger path, operator or collective of this report"
    )


def _names(finding: Finding) -> tuple[str, ...]:
    return (finding.fingerprint, finding.rule, finding.name)


def _finding_of(result: RunResult, problem: Problem) -> Finding:
    return next(finding for finding in result.findings if finding.fingerprint == problem.findings[0])


def _problem(result: RunResult, problem: Problem, lang: str) -> Iterator[str]:
    """The place of a problem among the others and its numbers, then its finding."""
    finding = _finding_of(result, problem)
    numbered = {other.number: other for other in result.problems}
    roots = [other.number for other in result.problems if other.parent is None]
    root = problem
    while root.parent is not None:
        root = numbered[root.parent]
    yield f"{problem.number}: {finding.title.of(lang)}"
    place = f"  problem {roots.index(root.number) + 1} of {len(roots)}"
    yield f"{place}, a cause of {problem.parent}" if problem.parent else place
    yield (
        f"  severity {problem.severity}, the highest of it and its causes"
        if problem.causes
        else (f"  severity {problem.severity}")
    )
    yield f"  at stake: {_stake(problem, lang)}"
    if problem.causes:
        yield f"  of which its own finding: {format_quantity(problem.own_ns, 'ns', lang)}"
    for word, numbers in (
        ("cause", problem.causes),
        ("cause that stands elsewhere", problem.also_causes),
        ("a cause of", problem.symptoms),
    ):
        for number in numbers:
            title = _finding_of(result, numbered[number]).title.of(lang)
            yield f"  {word} {number}: {_stake(numbered[number], lang)}: {title}"
    actor = numbered[problem.actor]
    yield f"  first thing to do ({actor.number}): {_finding_of(result, actor).advice[0].text.of(lang)}"
    outcome = next(o for o in result.rules if (o.rule, o.role) == (finding.rule, finding.role))
    yield from _finding(result, finding, outcome, lang)


def _stake(problem: Problem, lang: str) -> str:
    if problem.time == "counted_elsewhere":
        return "no time, as all of it is counted under other findings"
    if problem.time == "none":
        return "no time"
    ns, share = format_quantity(problem.stake_ns, "ns", lang), format_quantity(problem.share_of_step, "ratio", lang)
    return f"{ns}, {share} of the step of rank {problem.rank} ({problem.basis})"


def _outcome(outcome: RuleOutcome, lang: str) -> Iterator[str]:
    role = f" (role {outcome.role})" if outcome.role else ""
    yield f"{outcome.rule} {outcome.name}{role}: {outcome.state}"
    if len(outcome.ranks) > 1:
        yield from (f"  {state} on ranks {', '.join(map(str, ranks))}" for state, ranks in outcome.ranks.items())
    if outcome.reason:
        yield f"  {outcome.reason.of(lang)}"
    if outcome.collect:
        yield f"  {outcome.collect.of(lang)}"
    if outcome.only_for is None:
        yield f"  when: {outcome.condition}"
    yield from _params(outcome)


def _params(outcome: RuleOutcome) -> Iterator[str]:
    for name, value in outcome.params.items():
        origin = f"   set by {outcome.set_by[name]}" if name in outcome.set_by else ""
        yield f"    params.{name} = {value}{origin}"


def _finding(result: RunResult, finding: Finding, outcome: RuleOutcome, lang: str) -> Iterator[str]:
    impact = finding.impact
    yield f"{finding.fingerprint}  {finding.rule} {finding.name}: {finding.title.of(lang)}"
    if finding.role:
        yield f"  role {finding.role}"
    yield f"  severity {finding.severity}, confidence {finding.confidence}, ranks {finding.ranks}"
    yield f"  when: {finding.condition}"
    yield from (f"  {line}" for line in _derivation(result, finding, outcome, lang))
    yield from _params(outcome)
    yield "  observed:"
    for name, value in finding.observation.items():
        unit = finding.units.get(name, "")
        shown = f"   ({format_quantity(value, unit, lang)})" if unit and _is_number(value) else ""
        yield f"    {name} = {value}{shown}"
    yield (
        f"  impact: {format_quantity(impact.gross_ns_per_step, 'ns', lang)} per step measured ({impact.basis}), "
        f"{format_quantity(impact.ns_per_step, 'ns', lang)} claimed:"
    )
    for claim in impact.claims:
        yield f"    rank {claim.rank} {claim.path}: {format_quantity(claim.ns, 'ns', lang)}"
    yield "  evidence:"
    for item in finding.evidence:
        place = ""
        if item.source is not None:
            position = next((v for v in (item.source.line, item.source.offset, item.source.rowid) if v is not None), "")
            place = f"   {item.source.file}:{position}"
        yield f"    {item.kind}: {item.title.of(lang)}{place}"
    for word, others in (("explains", finding.explains), ("explained by", finding.explained_by)):
        for other in others:
            title = next(f.title.of(lang) for f in result.findings if f.fingerprint == other)
            yield f"  {word} {other}: {title}"


def _derivation(result: RunResult, finding: Finding, outcome: RuleOutcome, lang: str) -> Iterator[str]:
    """Each part of the condition with its value, if the rule is installed as the report knew it."""
    from advisor_core.contracts.problems import RuleFileError
    from advisor_core.rules.applicability import Job
    from advisor_core.rules.judge import Context, explain_row
    from advisor_core.rules.places import Place, kind_and_part
    from advisor_core.run.prepared import RunOptions, prepared

    try:
        compiled = prepared(RunOptions())[1][finding.rule]
    except (KeyError, RuleFileError):
        return
    if compiled.condition != finding.condition:
        return
    import dataclasses

    known = dataclasses.replace(compiled, params=outcome.params)
    environment = result.role_environments.get(finding.role or "", result.environment)
    kind = result.profile.roles.get(finding.role or "", result.profile.kind)
    places = [Place(at.part, at.phase, "", at.share) for at in finding.parts]
    of_part, phase = kind_and_part(places)
    profile = {"kind": of_part or kind, "phase": phase}
    context = Context(profile=profile, job=Job(variables=environment.variables))
    for name, part in explain_row(known, finding.observation, context).items():
        if not name.startswith("advice"):
            yield f"{name}:"
            yield from (f"  {line}" for line in part.lines(lang))


def _ledger(result: RunResult, path: str, lang: str) -> Iterator[str]:
    for step in result.ledger:
        inside = [entry for entry in step.entries if LedgerPath(path).covers(entry.path)]
        if not inside:
            continue
        total = sum(entry.ns for entry in inside)
        share = f"{total / step.wall_ns:.1%}" if step.wall_ns else "-"
        name = "-" if step.step is None else step.step
        role = f"role {step.role} " if step.role else ""
        yield f"{role}rank {step.rank} step {name}: {path} {format_quantity(total, 'ns', lang)} ({total} ns, {share})"
        for entry in inside:
            yield f"  {entry.path} {entry.ns} ns"
            for piece in entry.pieces:
                yield from (f"    {line}" for line in _piece(piece, lang))


def _piece(piece: Mapping[str, Scalar], lang: str) -> Iterator[str]:
    """A stretch of time, the gap it lies in, and each thing it is about with the place where that was read."""
    start, ns = piece.get("start_ns"), piece.get("ns")
    yield f"{format_quantity(ns, 'ns', lang)} ({ns} ns) from {start} ns"
    if "gap_start_ns" in piece:
        yield f"  gap from {piece['gap_start_ns']} ns to {piece['gap_end_ns']} ns"
    for word, file in ((name.removesuffix("_file"), value) for name, value in piece.items() if name.endswith("_file")):
        table = f" {piece[f'{word}_table']}" if f"{word}_table" in piece else ""
        place = next(
            f"{kind} {piece[f'{word}_{kind}']}" for kind in ("line", "offset", "rowid") if f"{word}_{kind}" in piece
        )
        yield f"  {word.replace('_', ' ')} {piece[word]}: {file}{table} {place}"


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
