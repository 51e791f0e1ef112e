"""One rule judged over a small recording, or on a few rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from advisor_core.contracts.advisor import Advisor, Observations, Reference
from advisor_core.contracts.keys import Answers
from advisor_core.contracts.missing import Missing, NotApplicable, Unanswered
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.registry import Ruleset
from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.context import context
from advisor_core.facts.job_store import JobStore
from advisor_core.facts.store import FactStore
from advisor_core.job.calls import COMPARED
from advisor_core.job.settle import settle
from advisor_core.rules.book import RuleBook
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.judge import Context, Judged, State, Verdict, judge
from advisor_core.run.job_context import job_of
from advisor_core.run.run_rules import other_vendor
from advisor_core.testing.tables import installed
from advisor_core.text.base import Scalar


@dataclass(frozen=True)
class JudgedRule:
    """The result of a rule. ``state``: ``fail``, ``pass``, ``not_applicable`` or ``cannot_answer``. ``verdict`` and
    ``observed``: what was judged and measured by the ``advisor``; ``None`` where it had no answer, and ``missing`` says
    why."""

    state: State
    verdict: Verdict | None = None
    observed: Observations | None = None
    missing: Missing | None = None
    advisor: Advisor | None = None

    @property
    def first(self) -> Judged:
        """The finding with the largest impact. Raises AssertionError where there is none."""
        assert self.verdict is not None and self.verdict.rows, f"nothing was found: {self.state}"
        return self.verdict.rows[0]

    def evidence(self) -> Sequence[Reference]:
        """That of the first finding. Raises TypeError for a column that the advisor does not declare."""
        assert self.observed is not None and self.advisor is not None, f"nothing was measured: {self.state}"
        return list(self.advisor.evidence_of(self.observed, self.first.row))


def judge_rule(
    rule: str, stores: FactStore | Mapping[int, FactStore], rules: Path | None = None, /, **overrides: Scalar
) -> JudgedRule:
    """The rule with this id or name over one rank; a rule of the job over several, by rank, whose collectives are
    compared first. Rules that it reads as ``fired.ID`` are judged before it. It is looked for among the rules that are
    installed, and with ``rules`` in this file or folder too. ``overrides``: parameters of its measurement, in base
    units (ns, bytes). Raises `RuleFileError` for ``rules`` that cannot be loaded, KeyError for a rule that there is
    not, and AssertionError for a finding without evidence."""
    return _judged(rule, stores, _installed_rules() if rules is None else _rules(rules), overrides)


def _judged(
    rule: str, stores: FactStore | Mapping[int, FactStore], book: RuleBook, overrides: Mapping[str, Scalar]
) -> JudgedRule:
    compiled = book[rule]
    advisor = compiled.advisor
    one = stores if isinstance(stores, FactStore) else next(iter(stores.values()))
    profile = one[PROFILE]
    if not compiled.judges({profile.vendor}):
        return JudgedRule("not_applicable", missing=Missing(other_vendor(installed(), compiled, {profile.vendor})))
    try:
        source = stores if isinstance(stores, FactStore) else _job(stores, advisor)
        facts = source.view(advisor.needs, advisor.wants)
        observed = advisor.measure(facts, {**compiled.measure_params, **overrides})
    except Unanswered as stopped:
        state: State = "not_applicable" if isinstance(stopped, NotApplicable) else "cannot_answer"
        return JudgedRule(state, missing=stopped.missing)
    before = {name: _judged(name, stores, book, {}) for name in compiled.after}
    names = dict(one.get(context) or {})
    job = job_of(names, profile.versions, profile.variables, profile.vocabulary.phase_of(profile.role))
    fired = {
        name: None if judged.state == "cannot_answer" else judged.state == "fail" for name, judged in before.items()
    }
    verdict = judge(compiled, advisor.conform(observed.frame), Context(profile=names, fired=fired, job=job))
    for row in verdict.rows:
        assert advisor.evidence_of(observed, row.row), f"{rule} gives no evidence for row {row.row}"
    return JudgedRule(verdict.state, verdict, observed, advisor=advisor)


def judge_rows(rules: Path, rule: str, rows: Iterable[Mapping[str, Scalar]], context: Context | None = None) -> Verdict:
    """Judge observations given as rows by the rule ``rule`` of a file or folder. Raises `RuleFileError`."""
    return judge(_rules(rules)[rule], pd.DataFrame(list(rows)), context)


def _rules(*more: Path) -> RuleBook:
    host = installed()
    sets: list[Path | Ruleset] = [*host.rulesets.values(), *more]
    return load_rules(
        sets,
        host.advisors,
        names=host.name_book(),
        paths=host.ledger_paths,
        vendors=host.vocabularies,
        trusted=host.checked_rulesets,
    )


@cache
def _installed_rules() -> RuleBook:
    return _rules()


def _job(stores: Mapping[int, FactStore], advisor: Advisor) -> JobStore:
    calls = {
        rank: found[list(COMPARED)]
        for rank, store in stores.items()
        if (found := store.get(recorded_calls)) is not None
    }
    sizes = [store[PROFILE].world_size or 0 for store in stores.values()]
    for rank, waits in settle(calls, max(sizes)).items():
        with contextlib.suppress(RuntimeError):  # these stores were settled for another rule
            stores[rank].settle(waits)
    ranks = {rank: Answers() for rank in stores}
    for rank, store in stores.items():
        for key in (*advisor.needs, *advisor.wants):
            ranks[rank].put(key, store.find(key))
    return JobStore(ranks)
