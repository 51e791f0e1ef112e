"""The reading of a result that all renderers share: which ranks to show, what belongs under what, what stays open.

Nothing here knows a format. Times are ns per step, means over the steps of a rank.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from advisor_core.api import Text
from advisor_core.api.renderers import (
    SEVERITIES,
    Advice,
    MeanStep,
    RuleOutcome,
    RunResult,
    State,
    TableView,
    Unexplained,
    View,
    places,
)
from reports.ledgers import Ledger, LedgerRow, extremes, ledger_rows, ledgers, together
from reports.problems import Item, items

TOP = 3
ALL_RANKS = 6
"""Up to so many ranks a table has a column for each."""

STATE_ORDER: tuple[State, ...] = ("fail", "error", "cannot_answer", "not_applicable", "pass", "left_out")
assert set(STATE_ORDER) == set(get_args(State))

_NOTHING = Ledger(MeanStep(role=None, rank=None, steps=0, wall_ns=0, entries={}))


@dataclass(frozen=True)
class ForOthers:
    """``rules`` of a rule set that were not judged: they are for ``devices``, and none of these was recorded."""

    ruleset: str
    devices: Text
    rules: int


@dataclass(frozen=True)
class Outline:
    """A result, read."""

    result: RunResult

    @cached_property
    def _ledgers(self) -> list[Ledger]:
        return ledgers(self.result)

    @cached_property
    def by_rank(self) -> list[Ledger]:
        return [ledger for ledger in self._ledgers if ledger.rank is not None]

    @cached_property
    def by_role(self) -> tuple[Ledger, ...]:
        """The mean step of each role; of a job that is profiled as one, none."""
        return tuple(ledger for ledger in self._ledgers if ledger.rank is None and ledger.role is not None)

    @property
    def one_run(self) -> bool:
        """Whether the ranks are of one run as far as is known; else nothing is a mean over them."""
        return not self.result.profile.apart

    @property
    def has_roles(self) -> bool:
        """Whether the roles of a job were profiled one by one: the report then goes by roles, not by ranks."""
        return bool(self.result.profile.roles)

    @cached_property
    def mean(self) -> Ledger:
        """The mean step of all ranks; of several roles, the iteration that they make up; nothing where the ranks are
        not of one run."""
        return self._ledgers[0] if self._ledgers and self.one_run else _NOTHING

    @cached_property
    def shown(self) -> tuple[Ledger, ...]:
        """The ranks the first screen shows, or the roles."""
        return self.by_role if self.has_roles else extremes(self.by_rank)

    @cached_property
    def detailed(self) -> tuple[Ledger, ...]:
        """The ranks whose largest stretches are listed: those shown, or the slowest of each role."""
        if not self.has_roles:
            return self.shown
        ordered = sorted(self.by_rank, key=lambda ledger: -ledger.wall_ns)
        return tuple(next(led for led in ordered if led.role == role.role) for role in self.shown)

    @property
    def ranks(self) -> int:
        return len({ledger.rank for ledger in self.by_rank})

    @cached_property
    def columns(self) -> tuple[Ledger, ...]:
        """The columns of the ledger table: every rank, or the mean and the extremes of many."""
        if len(self.by_rank) <= 1:
            return tuple(self.by_rank)
        if self.has_roles:
            return (self.mean, *self.shown)
        if not self.one_run:
            return self.shown
        return (self.mean, *(self.by_rank if len(self.by_rank) <= ALL_RANKS else self.shown))

    @cached_property
    def rows(self) -> list[LedgerRow]:
        return ledger_rows(self.columns, self.mean if self.one_run else together(self.by_rank))

    @cached_property
    def items(self) -> list[Item]:
        return items(self.result)

    @cached_property
    def _by_number(self) -> dict[str, Item]:
        return {item.number: item for root in self.items for item in root.walk()}

    @cached_property
    def numbers(self) -> dict[str, str]:
        """The number of the problem that each finding is, by its fingerprint."""
        return self.result.numbers

    def item(self, number: str) -> Item:
        return self._by_number[number]

    def actor(self, item: Item) -> Item:
        """The problem whose advice to follow first."""
        return self.item(item.problem.actor)

    def advice(self, item: Item) -> Advice:
        """The first thing to do."""
        return self.actor(item).finding.advice[0]

    @cached_property
    def anchors(self) -> dict[str, str]:
        """The first finding of each rule that fired."""
        anchors: dict[str, str] = {}
        for root in self.items:
            for item in root.walk():
                anchors.setdefault(item.finding.rule, item.anchor)
        return anchors

    @cached_property
    def kinds(self) -> list[tuple[Item, int]]:
        """The first tree of each rule, in the order the engine ranked them, and how many trees of that rule follow."""
        return _by_rule(self.items)

    @property
    def timeline(self) -> str:
        """The file beside the report that shows the timeline, '' for none."""
        return self.result.timeline.files.get("timeline", "") if self.result.timeline is not None else ""

    @cached_property
    def located(self) -> frozenset[str]:
        """The fingerprints of the findings that have a place in that file."""
        return frozenset(places(self.result)) if self.timeline else frozenset()

    @cached_property
    def planned(self) -> frozenset[str]:
        """The numbers of the problems whose time the plan wins."""
        plan = self.result.plan
        if plan is None:
            return frozenset()
        covered = (self.numbers[fingerprint] for action in plan.actions for fingerprint in action.covers)
        return frozenset([*(action.problem for action in plan.actions), *covered])

    @cached_property
    def beside_plan(self) -> list[tuple[Item, int]]:
        """Problems that have no place in the plan, one of each rule, and how many of that rule follow. Where
        nothing was planned, in the order of the engine; else the most severe first: causes that the plan leaves out
        stand here in place of a symptom of which it wins a part."""
        found = [item for root in self.items for item in self._unplanned(root)]
        if self.planned:
            found.sort(key=lambda item: (SEVERITIES.index(item.problem.severity), -item.problem.stake_ns))
        return _by_rule(found)

    def _unplanned(self, item: Item) -> Iterator[Item]:
        """The problem, if the plan wins nothing of its tree; else the causes below it of which that holds, apart from
        those of low severity."""
        if not any(below.number in self.planned for below in item.walk()):
            if item.problem.parent is None or item.problem.severity != "low":
                yield item
        elif item.number not in self.planned:
            for cause in item.causes:
                yield from self._unplanned(cause)

    @property
    def top(self) -> list[tuple[Item, int]]:
        """The first problems beside the plan: different ones, not one problem on many ranks."""
        return self.beside_plan[:TOP]

    @cached_property
    def rules(self) -> dict[State, list[RuleOutcome]]:
        """Every rule by its state, apart from those that are for other devices; the states that want attention first.
        Stages for which a rule says the same of itself share one entry, with their names as its ``role``."""
        groups: dict[State, list[RuleOutcome]] = {state: [] for state in STATE_ORDER}
        for outcome in _together([outcome for outcome in self.result.rules if outcome.only_for is None]):
            groups[outcome.state].append(outcome)
        return {state: sorted(outcomes, key=lambda outcome: outcome.rule) for state, outcomes in groups.items()}

    @cached_property
    def for_others(self) -> list[ForOthers]:
        """The sets, or parts of sets, that are for devices of which none was recorded."""
        judged = {outcome.rule for outcome in self.result.rules if outcome.only_for is None}
        rules_by_set: dict[tuple[str, str], tuple[Text, set[str]]] = {}
        for outcome in self.result.rules:
            if outcome.only_for is not None and outcome.rule not in judged:
                rules_by_set.setdefault((outcome.ruleset, outcome.only_for.en), (outcome.only_for, set()))[1].add(
                    outcome.rule
                )
        return [ForOthers(ruleset, devices, len(rules)) for (ruleset, _), (devices, rules) in rules_by_set.items()]

    @property
    def outcomes(self) -> int:
        """Rules that were asked: without those that were left out, or are for other devices."""
        return sum(len(outcomes) for state, outcomes in self.rules.items() if state != "left_out")

    @property
    def unanswered(self) -> int:
        return len(self.rules["cannot_answer"]) + len(self.rules["error"])

    @cached_property
    def unexplained(self) -> list[tuple[Unexplained, int]]:
        """Entries that no finding claims, largest first. Of many ranks each entry stands once, for the rank with most
        of it, with how many ranks have it."""
        entries = self.result.unexplained
        if len(self.by_rank) <= ALL_RANKS:
            return [(entry, 1) for entry in entries]
        count = Counter((entry.role, entry.path) for entry in entries)
        most: dict[tuple[str | None, str], Unexplained] = {}
        for entry in entries:
            most.setdefault((entry.role, entry.path), entry)
        return [(entry, count[key]) for key, entry in most.items()]

    @cached_property
    def views(self) -> list[View]:
        """What is drawn: of roles, whose views are many, those of the slowest rank alone."""
        if not self.has_roles:
            return self.result.views
        slowest = {ledger.lane for ledger in self.detailed}
        return [view for view in self.result.views if view.rank is None or (view.role, view.rank) in slowest]

    @cached_property
    def settings(self) -> list[TableView]:
        """The tables of what environment variables mean for the job: of the first rank that has one, of each role."""
        by_role: dict[str | None, TableView] = {}
        for view in self.result.views:
            if isinstance(view, TableView) and view.purpose == "settings":
                by_role.setdefault(view.role, view)
        return list(by_role.values())

    def advised_in(self, variable: str) -> list[str]:
        """The numbers of the problems whose advice sets or names an environment variable."""
        numbers = self.numbers
        word = re.compile(rf"(?<!\w){re.escape(variable)}(?!\w)")
        naming = (
            numbers[finding.fingerprint]
            for finding in self.result.findings
            if finding.fingerprint in numbers
            and any(variable in advice.set or word.search(advice.text.en) for advice in finding.advice)
        )
        return list(dict.fromkeys(naming))

    @property
    def unrecorded(self) -> list[str]:
        """Environment variables that an advice names and the profile does not record."""
        advised = {
            name
            for finding in self.result.findings
            for advice in finding.advice
            if advice.kind == "env"
            for name in advice.set
        }
        return sorted(advised - self.result.environment.variables.keys())


def _by_rule(found: Sequence[Item]) -> list[tuple[Item, int]]:
    """The first problem of each rule, and how many of that rule follow."""
    first: dict[str, Item] = {}
    for item in found:
        first.setdefault(item.finding.rule, item)
    count = Counter(item.finding.rule for item in found)
    return [(item, count[rule] - 1) for rule, item in first.items()]


def _together(outcomes: Sequence[RuleOutcome]) -> list[RuleOutcome]:
    groups: dict[tuple[object, ...], list[RuleOutcome]] = {}
    for outcome in outcomes:
        ranks = repr(outcome.ranks) if len(outcome.ranks) > 1 else ""
        about = (outcome.rule, outcome.state, repr(outcome.reason), repr(outcome.collect), ranks)
        groups.setdefault(about if outcome.role is not None else (*about, len(groups)), []).append(outcome)
    return [
        members[0]
        if len(members) == 1
        else members[0].model_copy(
            update={
                "role": ", ".join(outcome.role or "" for outcome in members),
                "findings": sum(outcome.findings for outcome in members),
                "severity": min((o.severity for o in members if o.severity), key=SEVERITIES.index, default=None),
            }
        )
        for members in groups.values()
    ]
