"""Run the advisors that rules name, judge their rows, and make findings."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from advisor_core.contracts.advisor import Advisor, Scope
from advisor_core.contracts.cure import Cure
from advisor_core.contracts.ledger_paths import LedgerPath
from advisor_core.plugins.host import Host
from advisor_core.result.finding import CONFIDENCES, Finding, Impact, PartShare
from advisor_core.result.run import State
from advisor_core.rules.applicability import Job
from advisor_core.rules.book import RuleBook
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.judge import Context, Judged, Verdict, judge
from advisor_core.run.claims import Want
from advisor_core.run.finding_places import claimed_paths
from advisor_core.run.measurements import Measurements, RuleState, raised
from advisor_core.run.resolve_evidence import scalar
from advisor_core.text.base import Scalar, Text
from advisor_core.text.listed import listed
from advisor_core.text.messages import message


@dataclass(frozen=True)
class Draft:
    """A finding before the job is settled: with what it wants of the ledger of each rank, the caveat that it puts on
    others, and what its advice would change."""

    finding: Finding
    wants: Mapping[int, Sequence[Want]]
    caveat: Text | None
    cure: Cure | None = None


@dataclass
class RuleRun:
    """The states of the rules that were run, and what they found."""

    states: dict[str, RuleState] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)

    def fired(self, rules: Iterable[str]) -> dict[str, bool | None]:
        """Rule id to whether it found something, of these rules; ``None`` where it could not tell, or was not run."""
        return {rule: _FIRED.get(self.states[rule].state) if rule in self.states else None for rule in rules}


_FIRED: Mapping[State, bool] = {"fail": True, "pass": False, "not_applicable": False}


def run_rules(
    host: Host,
    book: RuleBook,
    scope: Scope,
    measurements: Measurements,
    rank: int | None,
    context: Mapping[str, Scalar],
    job: Job,
    vendors: Collection[str],
) -> RuleRun:
    """Judge every rule of the book whose advisor has this scope. ``rank``: ``None`` for a job. ``job``: what decides
    which advice holds. ``vendors``: those of the recordings; a rule for others is not judged. One advisor or rule that
    raises becomes the state ``error`` of that rule; the others run."""
    result = RuleRun()
    of_others: dict[tuple[str, tuple[str, ...]], RuleState] = {}
    for compiled in book:
        advisor = host.advisors[compiled.rule.advisor]
        if advisor.scope is not scope:
            continue
        if not compiled.judges(vendors):
            others = compiled.ruleset, compiled.vendors
            if others not in of_others:
                of_others[others] = RuleState("not_applicable", other_vendor(host, compiled, vendors))
            result.states[compiled.id] = of_others[others]
            continue
        with measurements.watch.of(f"advisor {advisor.name}"):
            frame = measurements.frame(advisor, compiled.measure_params)
        if isinstance(frame, RuleState):
            result.states[compiled.rule.id] = frame
            continue
        places = functools.partial(measurements.places, compiled) if scope is Scope.RANK else None
        judgement = Context(profile=context, fired=result.fired(compiled.after), job=job, places=places)
        try:
            with measurements.watch.of("judge"):
                verdict = judge(compiled, frame, judgement)
                if reason := _one_subject(advisor, verdict):
                    result.states[compiled.rule.id] = RuleState("error", reason)
                    continue
                against = measurements.caveats(advisor) if verdict.rows else ()
                drafts = [_draft(compiled, judged, measurements, rank, against) for judged in verdict.rows]
        except Exception as error:
            result.states[compiled.rule.id] = raised(host, advisor, compiled.rule.id, error)
            continue
        result.states[compiled.rule.id] = _settled(verdict, advisor, measurements)
        result.drafts += drafts
    return result


def other_vendor(host: Host, compiled: CompiledRule, vendors: Collection[str]) -> Text:
    """The reason why a rule is not judged for recordings of these vendors."""
    recorded = devices(host, sorted(vendors))
    return message(
        "engine.other_vendor", ruleset=compiled.ruleset, devices=devices(host, compiled.vendors), recorded=recorded
    )


def devices(host: Host, vendors: Sequence[str]) -> Text:
    """The name of the devices of these vendors."""
    return listed([host.vocabulary(vendor).called for vendor in vendors], " and ")


def _one_subject(advisor: Advisor, verdict: Verdict) -> Text | None:
    """The mistake of several rows at fault with the same subject: they would become one finding."""
    subjects = Counter(tuple(row.observation.get(column.name) for column in advisor.about) for row in verdict.rows)
    subject, rows = max(subjects.items(), key=lambda item: item[1], default=((), 0))
    if rows < 2:
        return None
    shown = ", ".join(f"{column.name} {value}" for column, value in zip(advisor.about, subject, strict=True)) or "-"
    return message("rule.same_subject", rows=rows, advisor=advisor.name, subject=shown)


def _settled(verdict: Verdict, advisor: Advisor, measurements: Measurements) -> RuleState:
    """The state after judging. What is not known of the rows is mostly what a fact that was wanted would have told:
    then its absence says what to collect."""
    if verdict.state != "cannot_answer":
        return RuleState(verdict.state, _reason(verdict))
    absent = [missing for key in advisor.wants if (missing := measurements.missing(key)) is not None]
    collect = next((missing.collect for missing in absent if missing.collect is not None), None)
    options = tuple(dict.fromkeys(option for missing in absent for option in missing.options))
    return RuleState("cannot_answer", _reason(verdict), collect, options)


def _reason(verdict: Verdict) -> Text | None:
    if verdict.dropped_rows:
        together = f"{verdict.dropped_ns / 1e6:.3f}"
        return message("engine.more_rows", count=verdict.dropped_rows, together=together)
    return verdict.reason


def _draft(
    compiled: CompiledRule, judged: Judged, measurements: Measurements, rank: int | None, against: Sequence[Text]
) -> Draft:
    finding = _doubted(_finding(compiled, judged, measurements, rank), against)
    paths = claimed_paths(compiled, judged.observation)
    parts = _parts(finding.impact.gross_ns_per_step, judged.idle_ns, paths)
    cure = measurements.cure(compiled.advisor, compiled.measure_params, judged.row)
    promised = cure.promised(finding.impact.gross_ns_per_step) if cure is not None else None
    return Draft(finding, {finding.rank: parts} if finding.rank is not None else {}, judged.caveat, promised)


def _doubted(finding: Finding, against: Sequence[Text]) -> Finding:
    """The finding with what other files of the recording say against what it was measured on."""
    if not against:
        return finding
    lower = CONFIDENCES[min(CONFIDENCES.index(finding.confidence) + 1, len(CONFIDENCES) - 1)]
    caveats = [*finding.caveats, *against]
    return finding.model_copy(update={"doubted": True, "confidence": lower, "caveats": caveats})


def _parts(total_ns: int, idle_ns: int | None, paths: Sequence[str]) -> list[Want]:
    """The claims of a finding on the ledger: where its rule tells idle time apart, each kind from its own
    entries."""
    if idle_ns is None:
        return [(total_ns, paths)]
    idle = [path for path in paths if LedgerPath(path).trunk == "idle"]
    other = [path for path in paths if path not in idle]
    idle_ns = min(idle_ns, total_ns)
    return [(total_ns - idle_ns, other), (idle_ns, idle)]


def _finding(compiled: CompiledRule, judged: Judged, measurements: Measurements, rank: int | None) -> Finding:
    rule, advisor, params = compiled.rule, compiled.advisor, compiled.measure_params
    ranks = [rank] if rank is not None else measurements.ranks(advisor, params, judged.row)
    rank = ranks[0] if ranks else None
    observed = judged.observation
    subject = {column.name: observed[column.name] for column in advisor.about if column.name in observed}
    impact = Impact(
        ns_per_step=0, gross_ns_per_step=max(0, judged.impact_ns), share_of_step=0.0, basis=rule.impact.basis
    )
    return Finding(
        rule=rule.id,
        name=rule.name,
        fingerprint=fingerprint(rule.id, subject),
        title=judged.title,
        why=judged.why,
        verify=judged.verify,
        not_a_problem_if=judged.not_a_problem_if,
        severity=judged.severity,
        confidence=judged.confidence,
        rank=rank,
        ranks=sorted(ranks),
        step=_step_of(judged.observation),
        subject=subject,
        impact=impact,
        observation=observed,
        units={name: column.unit for name, column in advisor.declared().items() if column.unit and name in observed},
        condition=compiled.condition,
        signs=list(judged.signs),
        evidence=measurements.evidence(advisor, params, judged.row, rank),
        advice=list(judged.advice),
        withheld=list(judged.withheld),
        references=list(rule.references),
        parts=[PartShare(part=at.part, phase=at.phase, share=round(at.share, 6)) for at in judged.places],
    )


def fingerprint(rule: str, subject: Mapping[str, Scalar]) -> str:
    """Twelve hex digits that name a finding across runs: the rule and what it is about, never what was measured."""
    about = json.dumps({name: scalar(value) for name, value in subject.items()}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(f"{rule}\0{about}".encode()).hexdigest()[:12]


def _step_of(observation: Mapping[str, Scalar]) -> int | None:
    value = observation.get("step")
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
