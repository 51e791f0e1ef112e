"""Whether rules judge the rows of their cases as these expect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor_core.contracts.problems import Problem, RuleFileError
from advisor_core.contracts.registry import Ruleset
from advisor_core.plugins.host import Host, load_host
from advisor_core.rules.book import RuleBook
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.files.run_cases import read_cases, run_cases


@dataclass(frozen=True)
class CaseReport:
    """``problems``: where rows are judged otherwise than expected, or cannot be judged. ``without``: rules of the files
    that have no cases. ``rules`` and ``cases``: how many were run."""

    problems: tuple[Problem, ...]
    without: tuple[str, ...]
    rules: int
    cases: int


def check_cases(path: Path, host: Host | None = None) -> CaseReport:
    """Run all cases of a file or folder, on the rules in it and on the installed ones."""
    host = host or load_host()
    try:
        files = read_cases(path)
        book = _book(path, host)
    except RuleFileError as error:
        return CaseReport(tuple(sorted(error.problems)), (), 0, 0)
    have = {file.cases.cases for file in files}
    here = path.resolve()
    own = [rule.id for rule in (*book.rules, *book.disabled) if Path(rule.file).resolve().is_relative_to(here)]
    return CaseReport(
        tuple(sorted(run_cases(files, book))),
        tuple(sorted(set(own) - have)),
        len(have),
        sum(len(file.cases.examples) for file in files),
    )


def _book(path: Path, host: Host) -> RuleBook:
    installed: list[Path | Ruleset] = list(host.rulesets.values())
    roots = [ruleset.root.resolve() for ruleset in host.rulesets.values()]
    inside = any(path.resolve().is_relative_to(root) for root in roots)
    sources = installed if inside else [*installed, path]
    trusted = [] if inside else host.checked_rulesets
    return load_rules(sources, host.advisors, names=host.name_book(), vendors=host.vocabularies, trusted=trusted)
