"""The state of each rule of a run: of all ranks together, with the ranks that each state holds for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from advisor_core.plugins.host import Host
from advisor_core.result.finding import SEVERITIES, Finding
from advisor_core.result.run import RuleOutcome, State
from advisor_core.rules.book import RuleBook
from advisor_core.rules.compiled import CompiledRule
from advisor_core.run.measurements import RuleState
from advisor_core.run.run_rules import RuleRun, devices, other_vendor
from advisor_core.text.base import Scalar, Text
from advisor_core.text.messages import message

_STATES_IN_ORDER: tuple[State, ...] = ("fail", "error", "pass", "cannot_answer", "not_applicable")
"""Of the states of a rule on several ranks this one stands for all, and each is told with its ranks: a job of which two
ranks lack a file has answers, and says for which ranks."""


def rule_outcomes(
    host: Host,
    book: RuleBook,
    vendors: Collection[str],
    by_rank: Mapping[int, RuleRun],
    in_depth: Collection[int],
    job: RuleRun,
    findings: Sequence[Finding],
    context: Mapping[str, Scalar],
) -> list[RuleOutcome]:
    """The outcome of every rule, those that are left out and those for other vendors too, by id. ``by_rank``: the rules
    as judged on each rank; ranks that are not ``in_depth``, of which only sums were read, decide a state only where no
    other rank does; ``job``: on the job; ``vendors``: of the devices that were recorded."""
    others = _Others(host, vendors)
    outcomes = [others.outcome(rule, "not_applicable") for rule in book if not rule.judges(vendors)]
    outcomes += [others.outcome(rule, "left_out") for rule in book.disabled if not rule.judges(vendors)]
    for compiled in (compiled for compiled in book if compiled.judges(vendors)):
        rule = compiled.rule
        told = {rank: run.states[rule.id] for rank, run in by_rank.items() if rule.id in run.states}
        deciding = [told[rank] for rank in told if rank in in_depth] or list(told.values())
        states = [*deciding, *([job.states[rule.id]] if rule.id in job.states else [])]
        first = min(states, key=lambda state: _STATES_IN_ORDER.index(state.state), default=None)
        state = first or RuleState("not_applicable", message("engine.no_rank"))
        unanswered = next((s for s in states if s.state == "cannot_answer"), None)
        own = [finding for finding in findings if finding.rule == rule.id]
        outcomes.append(
            RuleOutcome(
                rule=rule.id,
                name=rule.name,
                ruleset=compiled.ruleset,
                title=compiled.good_text(context),
                state=state.state,
                ranks={
                    name: ranks for name in _STATES_IN_ORDER if (ranks := [r for r in told if told[r].state == name])
                },
                reason=state.reason,
                collect=unanswered.collect if unanswered else state.collect,
                options=sorted({option for s in states if s.state == "cannot_answer" for option in s.options}),
                severity=min((finding.severity for finding in own), key=SEVERITIES.index, default=None),
                findings=len(own),
                condition=compiled.condition,
                params=dict(compiled.params),
                set_by={name: Path(origin).name for name, origin in compiled.set_by.items()},
            )
        )
    outcomes += [
        RuleOutcome(
            rule=compiled.id,
            name=compiled.rule.name,
            ruleset=compiled.ruleset,
            title=compiled.good_text(context),
            state="left_out",
            reason=book.left_out.get(compiled.id),
            condition=compiled.condition,
        )
        for compiled in book.disabled
        if compiled.judges(vendors)
    ]
    return sorted(outcomes, key=lambda outcome: outcome.rule)


class _Others:
    """Rules for devices of which none was recorded: nothing that one says of its own devices stands in the result."""

    def __init__(self, host: Host, vendors: Collection[str]) -> None:
        self._host = host
        self._vendors = vendors
        self._words: dict[tuple[str, tuple[str, ...]], tuple[Text, Text]] = {}

    def outcome(self, compiled: CompiledRule, state: State) -> RuleOutcome:
        """The outcome of one of them."""
        reason, only_for = self._of(compiled)
        return RuleOutcome(
            rule=compiled.id,
            name=compiled.rule.name,
            ruleset=compiled.ruleset,
            only_for=only_for,
            title=reason,
            state=state,
            reason=reason if state == "not_applicable" else None,
        )

    def _of(self, compiled: CompiledRule) -> tuple[Text, Text]:
        """The reason, and the devices that the rule is for: the same for all rules of a set and its vendors."""
        about = compiled.ruleset, compiled.vendors
        if about not in self._words:
            reason = other_vendor(self._host, compiled, self._vendors)
            self._words[about] = reason, devices(self._host, compiled.vendors)
        return self._words[about]
