"""The order of a run: find the ranks, run each, run the job, settle who claims what, and write it down."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from advisor_core.contracts.advisor import Scope
from advisor_core.contracts.facts import Facts, NotApplicable, Unavailable
from advisor_core.contracts.profile import InputError, Loader, RankInput
from advisor_core.job.cross_rank_waits import rebooked, settle
from advisor_core.loaders.discover import discover
from advisor_core.loaders.roles import role_of
from advisor_core.plugins.guarded_loaders import LoaderError, loaders, said
from advisor_core.plugins.host import Host
from advisor_core.result.finding import SEVERITIES, Finding
from advisor_core.result.run import Diagnostic, Environment, Profile, RuleOutcome, RunResult, State, Tool
from advisor_core.result.view import View
from advisor_core.rules.files.ruleset import RuleBook
from advisor_core.run.claims import claim_all, link, rank_findings
from advisor_core.run.compatible_advice import combinable
from advisor_core.run.compose import compose
from advisor_core.run.job_context import job_of
from advisor_core.run.merge_roles import joined, of_role
from advisor_core.run.rank import RankOutcome, RunOptions, prepared, run_rank
from advisor_core.run.run_rules import Draft, RuleRun, RuleState, run_rules
from advisor_core.run.step_views import phase_strip
from advisor_core.text.base import Scalar
from advisor_core.text.messages import message

PARALLEL_BYTES = 64 << 20
"""Below this much input a second process costs more (about half a second of imports) than it saves."""

Progress = Callable[[str], None]


class StepError(Exception):
    """``--step`` or ``--rank`` names something that the profile does not have. Exit code 2."""


def run(
    paths: Sequence[Path],
    options: RunOptions,
    *,
    rank: int | None = None,
    roles: Sequence[str] = (),
    jobs: int | None = None,
    progress: Progress = lambda line: None,
) -> RunResult:
    """Analyse the profiles at ``paths`` as one job. ``roles``: only those in directories of these names, of a job that
    profiles each role by itself; all of its roles are the roles of one result. ``jobs``: processes, by default as many
    as pay.

    Raises `InputError` (nothing to read), `StepError` (a rank or step that is not there), `RoleError` (a role that is
    not there) and `RuleFileError`.
    """
    began = time.perf_counter()
    host, book = prepared(options)
    asked = loaders(host)
    sources = _sources(asked, paths, rank, roles)
    outcomes, failures = _run_ranks(sources, options, jobs, progress)
    if not outcomes:
        raise failures[0][1]
    _require_step(outcomes, options)
    role = role_of(sources[0]) if len(roles) == 1 else None
    result = _of_roles(host, book, outcomes, failures, role)
    result = compose(result.model_copy(update={"findings": combinable(result.findings)}))
    timings = {**result.timings, "total_s": round(time.perf_counter() - began, 3)}
    return result.model_copy(update={"timings": timings, "diagnostics": [*said(asked), *result.diagnostics]})


def _sources(asked: Sequence[Loader], paths: Sequence[Path], rank: int | None, roles: Sequence[str]) -> list[RankInput]:
    try:
        found = discover(asked, *paths, roles=roles)
    except InputError as error:
        raise InputError("; ".join([str(error), *(problem.message.en for problem in said(asked))])) from None
    ranks = {source.rank for source in found}
    if rank is not None and rank not in ranks:
        raise StepError(f"rank {rank} is not in the profile; it has {', '.join(map(str, sorted(ranks)))}")
    return [source for source in found if rank in (None, source.rank)]


def _of_roles(
    host: Host,
    book: RuleBook,
    outcomes: Sequence[RankOutcome],
    failures: Sequence[tuple[RankInput, InputError]],
    role: str | None,
) -> RunResult:
    """One result; the ranks of a role are compared with one another, and with those of no other role."""
    roles = {outcome.role for outcome in outcomes} | {source.role for source, _ in failures}
    if len(roles) == 1:
        return combine(host, book, outcomes, failures, role)
    parts = []
    for role in sorted(roles):
        own = [outcome for outcome in outcomes if outcome.role == role]
        failed = [failure for failure in failures if failure[0].role == role]
        if own:
            parts.append((role, of_role(combine(host, book, own, failed), role)))
    unread = [failure for failure in failures if failure[0].role not in dict(parts)]
    unheard = [_unreadable(failure).model_copy(update={"role": failure[0].role}) for failure in unread]
    return joined(parts, unheard)


def _run_ranks(
    sources: Sequence[RankInput], options: RunOptions, jobs: int | None, progress: Progress
) -> tuple[list[RankOutcome], list[tuple[RankInput, InputError]]]:
    """Ranks that could be read, in order, and those that could not."""
    workers = min(len(sources), jobs or _default_jobs(sources))
    outcomes: list[RankOutcome] = []
    failures: list[tuple[RankInput, InputError]] = []

    def keep(source: RankInput, outcome: Callable[[], RankOutcome]) -> None:
        role = f"{source.role}, " if source.role else ""
        progress(f"{role}rank {source.rank}: {source.directory}")
        try:
            outcomes.append(outcome())
        except InputError as error:
            failures.append((source, error))

    if workers <= 1:
        for source in sources:
            keep(source, lambda source=source: run_rank(source, options))  # type: ignore[misc]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            futures = [pool.submit(run_rank, source, options) for source in sources]
            for source, future in zip(sources, futures, strict=True):
                keep(source, future.result)
    return outcomes, failures


def _default_jobs(sources: Sequence[RankInput]) -> int:
    total = sum(source.bytes for source in sources)
    return 1 if total < PARALLEL_BYTES else len(os.sched_getaffinity(0))


def _require_step(outcomes: Sequence[RankOutcome], options: RunOptions) -> None:
    if options.step is not None and not any(outcome.steps for outcome in outcomes):
        reasons = [d.message.en for outcome in outcomes for d in outcome.diagnostics if d.severity == "error"]
        raise StepError(reasons[0] if reasons else f"step {options.step} is not in the profile")


class JobFacts:
    """The shared facts of all ranks: each is a mapping of rank to value, for the ranks that have it."""

    def __init__(self, outcomes: Sequence[RankOutcome]) -> None:
        self._outcomes = outcomes

    def _get(self, name: str) -> dict[int, object]:
        values, reasons = {}, []
        for outcome in self._outcomes:
            value = outcome.shared.get(name, Unavailable(message("fact.unknown", name=name)))
            if isinstance(value, Unavailable | NotApplicable):
                reasons.append(value)
            else:
                values[outcome.rank] = value
        if not values and reasons:
            raise reasons[0]
        return values

    def view(self, needs: tuple[str, ...], wants: tuple[str, ...]) -> Facts:
        values: dict[str, object] = {name: self._get(name) for name in needs}
        for name in wants:
            try:
                values[name] = self._get(name)
            except (Unavailable, NotApplicable):
                continue
        return Facts(values, (*needs, *wants))


def combine(
    host: Host,
    book: RuleBook,
    outcomes: Sequence[RankOutcome],
    failures: Sequence[tuple[RankInput, InputError]] = (),
    role: str | None = None,
) -> RunResult:
    """One result from the outcomes of all ranks. A pure function: the same outcomes give the same bytes."""
    outcomes = _compared(outcomes)
    context = _job_context(outcomes)
    env = _common_variables(outcomes)
    known = job_of(context, outcomes[0].source.versions, env)
    job = run_rules(host, book, Scope.JOB, JobFacts(outcomes), None, context, known)
    ledger = [step for outcome in outcomes for step in outcome.ledger]
    runs = [outcome.rules for outcome in outcomes] + [job]
    drafts = _merge([draft for run in runs for draft in run.drafts])
    explains = {rule.id: rule.explains for rule in book}
    claimed = claim_all([draft.finding for draft in drafts], [draft.wants for draft in drafts], explains, ledger)
    findings = link(rank_findings(_with_caveats(claimed, drafts, book)), explains)
    return RunResult(
        tool=_tool(host),
        inputs=[outcome.source for outcome in outcomes],
        environment=Environment(chip=outcomes[0].chip, variables=env, profiler=dict(outcomes[0].profiler)),
        profile=Profile(
            kind=str(context.get("phase") or "unknown"),
            ranks=[outcome.rank for outcome in outcomes],
            world_size=max((o.world_size for o in outcomes if o.world_size), default=None),
            steps=[step for outcome in outcomes for step in outcome.steps],
            parallel=dict(outcomes[0].parallel),
            role=role,
        ),
        ledger=ledger,
        findings=findings,
        rules=_rule_outcomes(book, runs, findings, context),
        views=[*_phase_views(outcomes), *(view for outcome in outcomes for view in outcome.views)],
        diagnostics=_diagnostics(host, book, outcomes, failures),
        timings=_timings(outcomes),
        phases=[time for outcome in outcomes for time in outcome.phases],
    )


def _compared(outcomes: Sequence[RankOutcome]) -> list[RankOutcome]:
    """The outcomes with what only the comparison of ranks tells: who arrived last in each collective."""
    settled = settle({outcome.rank: outcome.shared for outcome in outcomes})
    compared = []
    for outcome in outcomes:
        shared = settled[outcome.rank]
        if shared.get("ledger") is not outcome.shared.get("ledger"):
            outcome = replace(outcome, ledger=rebooked(outcome.ledger, shared["ledger"]))
        compared.append(replace(outcome, shared=shared))
    return compared


def _job_context(outcomes: Sequence[RankOutcome]) -> dict[str, Scalar]:
    known = [outcome.context for outcome in outcomes if outcome.context]
    context: dict[str, Scalar] = dict(known[0]) if known else {}
    sizes = [outcome.world_size for outcome in outcomes if outcome.world_size]
    context["world_size"] = max(sizes) if sizes else None
    context["ranks"] = len(outcomes)
    return context


def _common_variables(outcomes: Sequence[RankOutcome]) -> dict[str, str]:
    """Variables that all ranks record alike; where they differ the first rank's value stands, as in a launch script
    that exports one value."""
    variables: dict[str, str] = {}
    for outcome in reversed(outcomes):
        variables.update(outcome.variables)
    return dict(sorted(variables.items()))


def _merge(drafts: Sequence[Draft]) -> list[Draft]:
    """The same finding on several ranks becomes one, shown for the rank where it costs most."""
    groups: dict[str, list[Draft]] = {}
    for draft in drafts:
        groups.setdefault(draft.finding.fingerprint, []).append(draft)
    merged = []
    for group in groups.values():
        leader = max(group, key=lambda d: (d.finding.impact.gross_ns_per_step, -(d.finding.rank or 0)))
        ranks = sorted({rank for draft in group for rank in draft.finding.ranks})
        severity = min((draft.finding.severity for draft in group), key=SEVERITIES.index)
        finding = leader.finding.model_copy(update={"ranks": ranks, "severity": severity})
        wants = {rank: want for draft in group for rank, want in draft.wants.items()}
        merged.append(replace(leader, finding=finding, wants=wants))
    return merged


def _with_caveats(findings: Sequence[Finding], drafts: Sequence[Draft], book: RuleBook) -> list[Finding]:
    """Put the caveat of each capture-quality finding on the findings of the advisors that it casts doubt on."""
    rules = {rule.id: rule.rule for rule in book}
    doubts = [
        (draft.caveat, tuple(rules[draft.finding.rule].caveats), set(draft.finding.ranks))
        for draft in drafts
        if draft.caveat is not None
    ]
    result = []
    for finding in findings:
        caveats = [
            text
            for text, prefixes, ranks in doubts
            if rules[finding.rule].advisor.startswith(prefixes) and ranks & set(finding.ranks)
        ]
        result.append(finding.model_copy(update={"caveats": [*finding.caveats, *caveats]}) if caveats else finding)
    return result


_WORST_FIRST: tuple[State, ...] = ("fail", "error", "cannot_answer", "pass", "not_applicable")


def _rule_outcomes(
    book: RuleBook, runs: Sequence[RuleRun], findings: Sequence[Finding], context: Mapping[str, Scalar]
) -> list[RuleOutcome]:
    outcomes = []
    for compiled in book:
        rule = compiled.rule
        states = [run.states[rule.id] for run in runs if rule.id in run.states]
        worst = min(states, key=lambda state: _WORST_FIRST.index(state.state), default=None)
        state = worst or RuleState("not_applicable", message("engine.no_rank"))
        own = [finding for finding in findings if finding.rule == rule.id]
        outcomes.append(
            RuleOutcome(
                rule=rule.id,
                name=rule.name,
                title=compiled.good_text(context),
                state=state.state,
                reason=state.reason,
                collect=state.collect,
                options=sorted({option for s in states if s.state == state.state for option in s.options}),
                severity=min((finding.severity for finding in own), key=SEVERITIES.index, default=None),
                findings=len(own),
                condition=compiled.when.source,
                params=dict(compiled.params),
                set_by={name: Path(origin).name for name, origin in compiled.set_by.items()},
            )
        )
    outcomes += [
        RuleOutcome(
            rule=compiled.id,
            name=compiled.rule.name,
            title=compiled.good_text(context),
            state="left_out",
            reason=book.left_out.get(compiled.id),
            condition=compiled.when.source,
        )
        for compiled in book.disabled
    ]
    return sorted(outcomes, key=lambda outcome: outcome.rule)


def _phase_views(outcomes: Sequence[RankOutcome]) -> list[View]:
    facts = JobFacts(outcomes).view((), ("phases", "steps"))
    if "phases" not in facts or "steps" not in facts:
        return []
    drawn = phase_strip(facts["phases"], facts["steps"])
    return [] if drawn is None else [drawn]


def _diagnostics(
    host: Host,
    book: RuleBook,
    outcomes: Sequence[RankOutcome],
    failures: Sequence[tuple[RankInput, InputError]],
) -> list[Diagnostic]:
    found = [
        Diagnostic(
            severity="error",
            source=plugin.name,
            about="tool",
            message=message("engine.plugin", plugin=f"{plugin.distribution} {plugin.version}", problem=plugin.problem),
        )
        for plugin in host.plugins
        if plugin.problem
    ]
    for problem in book.problems:
        name = Path(problem.file).name
        text = message("engine.rule_left_out", line=problem.line, problem=problem.message)
        found.append(Diagnostic(severity="error", source=name, message=text, about="tool"))
    for compiled in book:
        if compiled.replaces:
            file, other = Path(compiled.file).name, Path(compiled.replaces).name
            text = message("rule.replaced", rule=compiled.id, file=file, other=other)
            found.append(Diagnostic(severity="info", source=file, message=text))
    found += [_unreadable(failure) for failure in failures]
    for outcome in outcomes:
        for diagnostic in outcome.diagnostics:
            where = f"rank {outcome.rank}: {diagnostic.source}" if len(outcomes) > 1 else diagnostic.source
            found.append(diagnostic.model_copy(update={"source": where}))
    order = ("error", "warning", "info")
    return sorted(found, key=lambda diagnostic: order.index(diagnostic.severity))


def _unreadable(failure: tuple[RankInput, InputError]) -> Diagnostic:
    source, error = failure
    # a report leaves the machine: without the directories of this one
    said = str(error).replace(str(source.directory), source.directory.name)
    text = message("engine.rank_unreadable", rank=source.rank, error=said)
    about: Literal["input", "tool"] = "tool" if isinstance(error, LoaderError) else "input"
    return Diagnostic(severity="error", source=source.directory.name, message=text, about=about)


def _timings(outcomes: Sequence[RankOutcome]) -> dict[str, float]:
    names = sorted({name for outcome in outcomes for name in outcome.timings})
    return {name: round(sum(outcome.timings.get(name, 0.0) for outcome in outcomes), 3) for name in names}


def _tool(host: Host) -> Tool:
    plugins = {plugin.name: plugin.version for plugin in host.plugins if plugin.distribution != "npu-advisor"}
    return Tool(name="npu-advisor", version=metadata.version("npu-advisor"), plugins=plugins)
