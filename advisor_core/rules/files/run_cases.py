"""Runs the cases of rules: each row must get the judgement that its case expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from advisor_core.contracts.problems import Problem, RuleFileError, nearest
from advisor_core.rules.applicability import Job
from advisor_core.rules.book import RuleBook
from advisor_core.rules.cases import Case, CaseJob, RuleCases
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.files.documents import read_document
from advisor_core.rules.files.ruleset import display, rule_files
from advisor_core.rules.files.yaml_file import Document, KeyPath, read_yaml
from advisor_core.rules.judge import Context, Verdict, judge
from advisor_core.rules.language.profile_names import PROFILE_NAMES
from advisor_core.rules.language.scope import KINDS, kind_of

_PLACE: KeyPath = ("examples",)


@dataclass(frozen=True)
class CaseFile:
    """The cases of one rule, with the document that they were read from."""

    cases: RuleCases
    document: Document


def read_cases(path: Path) -> list[CaseFile]:
    """The cases of a file, or of all files of a folder. Raises `RuleFileError` for files that cannot be read."""
    found = []
    problems: list[Problem] = []
    for file in rule_files(path):
        try:
            for document in read_yaml(file, display(file)):
                if isinstance(document.data, dict) and "cases" in document.data:
                    cases = read_document(document)
                    assert isinstance(cases, RuleCases)
                    found.append(CaseFile(cases, document))
        except RuleFileError as error:
            problems += error.problems
    if problems:
        raise RuleFileError(problems)
    return found


def run_cases(files: Sequence[CaseFile], book: RuleBook) -> Iterator[Problem]:
    """The mistakes: rules that do not exist, columns that the advisor does not have, and other judgements than
    expected."""
    for file in files:
        try:
            rule = book[file.cases.cases]
        except KeyError:
            hint = nearest(file.cases.cases, [rule.id for rule in (*book.rules, *book.disabled)])
            yield file.document.problem(("cases",), f"no rule {file.cases.cases!r}", hint)
            continue
        for number, case in enumerate(file.cases.examples):
            wrong = list(_misfits(rule, case, file.document, number))
            yield from wrong or _mismatches(rule, case, file.document, number)


def judge_case(rule: CompiledRule, case: Case) -> Verdict:
    """The judgement of the case's rows."""
    context = Context(profile=case.profile, fired=case.fired, job=_job(case.job, case.env))
    columns = list(dict.fromkeys(name for row in case.rows for name in row))
    return judge(rule, pd.DataFrame([{name: row.get(name) for name in columns} for row in case.rows]), context)


def _job(job: CaseJob, env: Mapping[str, str]) -> Job:
    def possible(values: Sequence[str] | None) -> frozenset[str] | None:
        return None if values is None else frozenset(values)

    return Job(
        phases=possible(job.phase),
        roles=possible(job.role),
        frameworks=possible(job.framework),
        chips=possible(job.chip),
        versions=job.versions,
        variables=env,
        features=job.features,
    )


def _misfits(rule: CompiledRule, case: Case, document: Document, number: int) -> Iterator[Problem]:
    declared = rule.advisor.declared()
    for index, row in enumerate(case.rows):
        for name, value in row.items():
            path = (*_PLACE, number, "rows", index, name)
            if name not in declared:
                message = f"advisor {rule.advisor.name!r} has no column {name!r}"
                yield document.problem(path, message, nearest(name, declared), key=True)
            elif value is not None and kind_of(value) != KINDS[declared[name].dtype]:
                yield document.problem(path, f"{value!r} is not {declared[name].dtype}, as the column is")
    for name in case.profile:
        if name not in PROFILE_NAMES:
            path = (*_PLACE, number, "profile", name)
            yield document.problem(path, f"no profile.{name}", nearest(name, PROFILE_NAMES), key=True)


def _mismatches(rule: CompiledRule, case: Case, document: Document, number: int) -> Iterator[Problem]:
    """Every part of the judgement that is another than expected."""
    verdict = judge_case(rule, case)
    got: dict[str, object] = {"state": verdict.state, "severity": None, "advice": None, "signs": None}
    if verdict.rows:
        first = verdict.rows[0]
        got |= {"severity": first.severity, "advice": first.advice_numbers[0], "signs": list(first.signs)}
    for key, wanted in case.expect.model_dump(exclude_unset=True).items():
        if got[key] != wanted:
            why = f"; {verdict.reason.en}" if key == "state" and verdict.reason else ""
            message = f"{rule.id}, {case.name!r}: expected {key} {wanted}, got {got[key]}{why}"
            yield document.problem((*_PLACE, number, "expect", key), message)
