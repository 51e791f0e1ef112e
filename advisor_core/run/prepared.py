"""The beginning of every run: its options, the installed plugins and the rules."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from advisor_core.contracts.problems import Problem, RuleFileError
from advisor_core.plugins.host import Host, load_host
from advisor_core.rules.book import ON_COMMAND_LINE, RuleBook
from advisor_core.rules.files.ruleset import displayed_files, load_rules, setting_name
from advisor_core.rules.origins import Origins
from advisor_core.text.base import Scalar


@dataclass(frozen=True)
class RunOptions:
    """The options of a run. Hashable and picklable, so that a process reads the rules once."""

    rulesets: tuple[Path, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    overrides: tuple[tuple[str, Scalar], ...] = ()
    origins: Origins = ON_COMMAND_LINE
    step: int | None = None
    phase_marks: tuple[tuple[str, str], ...] = ()
    timings: bool = False
    """True: the result tells what each fact and advisor took, and each is asked."""

    timeline: bool = False
    """True: the result has the lanes of a timeline."""

    cache_bytes: int = 0
    """Bytes that the ranks kept from one run to the next may take together; 0: none is kept or taken from there."""


@functools.cache
def installed_host() -> Host:
    """All installed plugins, loaded once per process."""
    return load_host()


@functools.cache
def prepared(options: RunOptions) -> tuple[Host, RuleBook]:
    """The host and the selected rules, once per process. Raises `RuleFileError`."""
    return installed_host(), _selected(_installed_rules(options.rulesets, options.overrides, options.origins), options)


@functools.cache
def _installed_rules(
    rulesets: tuple[Path, ...], overrides: tuple[tuple[str, Scalar], ...], origins: Origins
) -> RuleBook:
    """All rules, whichever are selected: those who serve several questions of a job read them once."""
    return _loaded(installed_host(), RunOptions(rulesets=rulesets, overrides=overrides, origins=origins))


def forget_rules() -> None:
    """The next run of this process reads the rules anew."""
    prepared.cache_clear()
    _installed_rules.cache_clear()


def rule_book(host: Host, options: RunOptions) -> RuleBook:
    """The rules of the host's rule sets and the user's, in order of judging. A rule that cannot be used is left out
    and told in the book's ``problems``. Our own sets, which tests check, are taken on trust, but for rules that others
    change. Raises `RuleFileError` for options about rules that do not fit."""
    return _selected(_loaded(host, options), options)


def _loaded(host: Host, options: RunOptions) -> RuleBook:
    """All rules, with the thresholds that the user set. Raises `RuleFileError` for one that does not fit."""
    book = load_rules(
        [*host.rulesets.values(), *options.rulesets],
        host.advisors,
        dict(options.overrides),
        origins=options.origins,
        names=host.name_book(),
        paths=host.ledger_paths,
        vendors=host.vocabularies,
        strict=False,
        trusted=host.checked_rulesets,
    )
    settings = {setting_name(key, options.origins.of_setting(key)) for key, _ in options.overrides}
    if any(problem.file in settings for problem in book.problems):
        raise RuleFileError(book.problems)
    return book


def _selected(book: RuleBook, options: RunOptions) -> RuleBook:
    """The rules of the book that the options leave. Raises `RuleFileError` for a name that no rule has."""
    if options.select:
        book = book.select(options.select, options.origins)
    return book.ignore(options.ignore, options.origins) if options.ignore else book


def own_problems(options: RunOptions) -> list[Problem]:
    """The problems of the rule files that the user named, as opposed to those of installed plugins."""
    if not options.rulesets:
        return []
    files = displayed_files(options.rulesets)
    return sorted(problem for problem in prepared(options)[1].problems if problem.file in files)
