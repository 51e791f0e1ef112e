"""One result of the outcomes of all ranks of a role: the rules of the job, who claims what, the plan, and what ran."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import metadata

from advisor_core.contracts.advisor import Scope
from advisor_core.facts.job_store import JobStore
from advisor_core.facts.steps.phases import phases
from advisor_core.facts.steps.steps import steps
from advisor_core.job.job_replay import JobReplay
from advisor_core.job.plan import plan
from advisor_core.job.slack import JobSlack
from advisor_core.plugins.host import Host
from advisor_core.result.finding import SEVERITIES, Finding
from advisor_core.result.layout import Layout
from advisor_core.result.run import (
    Contradiction,
    Environment,
    LedgerWindow,
    Profile,
    ReplayModel,
    RunResult,
    Tool,
)
from advisor_core.result.view import TableView, View
from advisor_core.rules.book import RuleBook
from advisor_core.run.api_totals import api_view
from advisor_core.run.balance import balance
from advisor_core.run.claims import claim_all, link, rank_findings
from advisor_core.run.compose_timeline import timeline
from advisor_core.run.diagnostics import Failure, diagnostics_of
from advisor_core.run.job_context import job_of
from advisor_core.run.link_matrix import link_matrix
from advisor_core.run.measurements import Measurements
from advisor_core.run.merge_roles import summed
from advisor_core.run.modelled import job_replay, joined
from advisor_core.run.rank_outcome import RankOutcome
from advisor_core.run.rule_outcomes import rule_outcomes
from advisor_core.run.run_rules import Draft, run_rules
from advisor_core.run.side_by_side import reasons_to_show, side_by_side, stage_passes
from advisor_core.run.spread import spreads
from advisor_core.run.step_views import phase_strip
from advisor_core.run.work_times import summed_work
from advisor_core.text.base import Scalar


def combine(
    host: Host,
    book: RuleBook,
    outcomes: Sequence[RankOutcome],
    failures: Sequence[Failure] = (),
    role: str | None = None,
) -> tuple[RunResult, JobReplay | None]:
    """One result from the outcomes of all ranks, and the replay that its plan is of. A pure function: the same outcomes
    give the same bytes."""
    known_first = sorted(outcomes, key=lambda outcome: outcome.source.coarse)
    context = _job_context(known_first)
    env = _common_variables(outcomes)
    first = known_first[0]
    known = job_of(context, first.source.versions, env)
    vendors = {outcome.vendor for outcome in outcomes}
    shared = _shared(outcomes)
    measurements = Measurements(host, lambda: (shared, {}), watch=shared.watch)
    job = run_rules(host, book, Scope.JOB, measurements, None, context, known, vendors)
    ledger = [step for outcome in outcomes for step in outcome.ledger]
    by_rank = {outcome.rank: outcome.rules for outcome in outcomes}
    in_depth_ranks = [outcome.rank for outcome in outcomes if not outcome.source.coarse]
    runs = [*by_rank.values(), job]
    drafts = _merge([draft for run in runs for draft in run.drafts], in_depth_ranks)
    explains = {rule.id: rule.explains for rule in book}
    claimed = claim_all([draft.finding for draft in drafts], [draft.wants for draft in drafts], explains, ledger)
    findings = link(rank_findings(_with_caveats(claimed, drafts, book)), explains)
    apart = _apart(findings, book)
    replayed = None if apart else job_replay(outcomes, job, findings)
    slack = None if replayed is None else JobSlack(replayed)
    works = {outcome.rank: outcome.work for outcome in outcomes if outcome.work is not None}
    links = {outcome.rank: outcome.links for outcome in outcomes if outcome.links is not None}
    matrix = None if apart else link_matrix(links, findings)
    world_size = max((o.world_size for o in outcomes if o.world_size), default=None)
    parallel = next((dict(outcome.parallel) for outcome in known_first if outcome.parallel), {})
    layout = Layout(parallel, world_size)
    planned = None if replayed is None else plan(replayed)
    path = [] if replayed is None else replayed.critical_path()
    balanced = None if apart else balance(ledger, slack, layout)
    lanes = {} if apart else {outcome.rank: outcome.lane for outcome in outcomes if outcome.lane is not None}
    reasons = reasons_to_show(lanes, balanced, planned, path, findings)
    clocks = joined(outcomes, replayed)
    beside, staged = side_by_side(lanes, reasons, clocks, layout), stage_passes(lanes, reasons, clocks, layout)
    result = RunResult(
        tool=_tool(host),
        inputs=[outcome.source for outcome in outcomes],
        environment=Environment(
            chip=_beside([outcome.chip for outcome in outcomes]) if apart else first.chip,
            variables=env,
            profiler=dict(first.profiler),
        ),
        profile=Profile(
            kind=str(context.get("phase") or "unknown"),
            window=_window(outcomes),
            ranks=[outcome.rank for outcome in outcomes],
            apart=apart,
            world_size=None if apart else world_size,
            software=str(context["software"] or "").split(),
            steps=[step for outcome in outcomes for step in outcome.steps],
            parallel=parallel,
            role=role,
        ),
        ledger=ledger,
        findings=findings,
        rules=rule_outcomes(host, book, vendors, by_rank, in_depth_ranks, job, findings, context),
        views=[
            *_phase_views(outcomes),
            *([] if apart else _api_views(outcomes)),
            *(view for outcome in outcomes for view in outcome.views),
        ],
        diagnostics=diagnostics_of(host, book, outcomes, failures),
        timings=summed([*(outcome.timings for outcome in outcomes), shared.watch.seconds()]),
        model=_model(outcomes, replayed),
        plan=planned,
        critical_path=path,
        slack=[] if slack is None else slack.of_work(),
        balance=balanced,
        side_by_side=[] if beside is None else [beside],
        pipelines=[] if staged is None else [staged],
        phases=[time for outcome in outcomes for time in outcome.phases],
        spread=[] if apart else spreads(ledger, works),
        links=[] if matrix is None else [matrix],
        work=[] if apart else summed_work(list(works.values())),
        memory=[outcome.memory for outcome in outcomes if outcome.memory is not None],
        timeline=timeline([outcome.timeline for outcome in outcomes], len(outcomes)),
    )
    return result, replayed


def _api_views(outcomes: Sequence[RankOutcome]) -> list[TableView]:
    found = {outcome.rank: outcome.work.apis for outcome in outcomes if outcome.work is not None}
    return api_view({rank: apis for rank, apis in found.items() if apis is not None})


def _apart(findings: Sequence[Finding], book: RuleBook) -> list[str]:
    """The findings that say that the ranks are not of one run."""
    rules = {rule.id: rule.rule for rule in book}
    return [finding.fingerprint for finding in findings if rules[finding.rule].separates in finding.signs]


def _beside(recorded: Sequence[Mapping[str, Scalar]]) -> dict[str, Scalar]:
    """The devices as the ranks record them; all of it where they differ."""
    values = {name: [each[name] for each in recorded if name in each] for each in recorded for name in each}
    return {
        name: found[0] if len(set(found)) == 1 else ", ".join(dict.fromkeys(map(str, found)))
        for name, found in values.items()
    }


def _window(outcomes: Sequence[RankOutcome]) -> LedgerWindow:
    """The window that the ledgers of all ranks are of; steps where the ranks differ."""
    windows = {outcome.window for outcome in outcomes if outcome.ledger}
    return windows.pop() if len(windows) == 1 else "step"


def _job_context(outcomes: Sequence[RankOutcome]) -> dict[str, Scalar]:
    known = [outcome.context for outcome in outcomes if outcome.context]
    context: dict[str, Scalar] = dict(known[0]) if known else {}
    sizes = [outcome.world_size for outcome in outcomes if outcome.world_size]
    context["world_size"] = max(sizes) if sizes else None
    context["ranks"] = len(outcomes)
    software = [name for one in known for name in str(one.get("software") or "").split()]
    context["software"] = " ".join(dict.fromkeys(software)) or None
    return context


def _common_variables(outcomes: Sequence[RankOutcome]) -> dict[str, str]:
    """Variables that all ranks record alike; where they differ the first rank's value stands, as in a launch script
    that exports one value."""
    variables: dict[str, str] = {}
    for outcome in reversed(outcomes):
        variables.update(outcome.variables)
    return dict(sorted(variables.items()))


NEARLY = 0.9
"""A rank that was read in depth stands for a finding, rather than one of which only sums are known, where it costs at
least this share of the most: its evidence tells more. Our choice; ranks that do the same work differ by less."""


def _merge(drafts: Sequence[Draft], in_depth_ranks: Container[int]) -> list[Draft]:
    """The same finding on several ranks becomes one, shown for the rank where it costs most; for one that was read in
    depth where that costs nearly as much."""
    groups: dict[str, list[Draft]] = {}
    for draft in drafts:
        groups.setdefault(draft.finding.fingerprint, []).append(draft)
    merged = []
    for group in groups.values():
        most = max(draft.finding.impact.gross_ns_per_step for draft in group)
        leader = max(group, key=lambda draft: _tells(draft, in_depth_ranks, NEARLY * most))
        ranks = sorted({rank for draft in group for rank in draft.finding.ranks})
        severity = min((draft.finding.severity for draft in group), key=SEVERITIES.index)
        finding = leader.finding.model_copy(update={"ranks": ranks, "severity": severity})
        wants = {rank: want for draft in group for rank, want in draft.wants.items()}
        merged.append(replace(leader, finding=finding, wants=wants))
    return merged


def _tells(draft: Draft, in_depth_ranks: Container[int], enough_ns: float) -> tuple[bool, int, int]:
    """The order of ranks to show a finding for."""
    rank, ns = draft.finding.rank or 0, draft.finding.impact.gross_ns_per_step
    return rank in in_depth_ranks and ns >= enough_ns, ns, -rank


def _with_caveats(findings: Sequence[Finding], drafts: Sequence[Draft], book: RuleBook) -> list[Finding]:
    """Put the caveat of each finding that has one on the findings of other rules, of the advisors that it casts doubt
    on; and the name of the finding, where it says that the recording is of a first pass."""
    rules = {rule.id: rule.rule for rule in book}
    doubts = [draft for draft in drafts if draft.caveat is not None]
    result = []
    for finding in findings:
        against = [
            draft
            for draft in doubts
            if draft.finding.rule != finding.rule
            and rules[finding.rule].advisor.startswith(tuple(rules[draft.finding.rule].caveats))
            and set(draft.finding.ranks) & set(finding.ranks)
        ]
        caveats = [draft.caveat for draft in against if draft.caveat is not None]
        first = next((draft.finding.fingerprint for draft in against if rules[draft.finding.rule].first_pass), None)
        changed = {"caveats": [*finding.caveats, *caveats], "first_pass": first}
        result.append(finding.model_copy(update=changed) if against else finding)
    return result


def _shared(outcomes: Sequence[RankOutcome]) -> JobStore:
    return JobStore({outcome.rank: outcome.shared for outcome in outcomes})


def _phase_views(outcomes: Sequence[RankOutcome]) -> list[View]:
    facts = _shared(outcomes).view((), (phases, steps))
    drawn = phase_strip(facts.ranks(phases), facts.ranks(steps))
    return [] if drawn is None else [drawn]


def _model(outcomes: Sequence[RankOutcome], replayed: JobReplay | None) -> ReplayModel | None:
    """The errors of the replay on the ranks that have launches."""
    explained = {outcome.rank: outcome.explained for outcome in outcomes if outcome.explained is not None}
    if not explained:
        return None
    return ReplayModel(
        nodes=sum(rank.nodes for rank in explained.values()),
        edges=sum(rank.edges for rank in explained.values()),
        inferred_edges=sum(rank.inferred_edges for rank in explained.values()),
        violated_edges=sum(rank.violated_edges for rank in explained.values()),
        error_share_by_rank={number: round(rank.error_share, 6) for number, rank in explained.items()},
        joined_calls=0 if replayed is None else int(replayed.job.calls["call"].nunique()),
        contradictions=[
            Contradiction.model_validate({"rank": number, **asdict(found)})
            for number, rank in explained.items()
            for found in rank.contradictions
        ],
    )


def _tool(host: Host) -> Tool:
    plugins = {plugin.name: plugin.version for plugin in host.plugins if plugin.distribution != "npu-advisor"}
    return Tool(name="npu-advisor", version=metadata.version("npu-advisor"), plugins=plugins)
