"""Checks of ``advisor rules check``: every mistake in every rule file, and what a reviewer would mention.

Mistakes are errors. The rest are warnings: a sentence that is missing in one language, a threshold typed into a text
(it would stay when ``--set`` changes the threshold), texts that are copies of each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor_core.contracts.ledger_paths import LedgerPaths
from advisor_core.contracts.problems import Problem, RuleFileError
from advisor_core.names.book import NameBook
from advisor_core.names.lint import name_problems, parameters_of, setting_problems
from advisor_core.rules.files.documents import read_document
from advisor_core.rules.files.ruleset import display, load_rules, rule_files
from advisor_core.rules.files.yaml_file import Document, KeyPath, read_yaml
from advisor_core.rules.language.scope import kind_of
from advisor_core.rules.model import Rule
from advisor_core.text.base import Model, Text
from advisor_core.text.units import format_exact

if TYPE_CHECKING:
    from advisor_core.contracts.advisor import Advisor

MAX_TITLE = 100

_HAN = re.compile(r"[\u3400-\u9fff]")
_NUMBER = re.compile(r"(?<![\w.=,/-])\d[\d,]*(?:\.\d+)?(?![\w=/]|[.,]\d)")
_NOT_PROSE = re.compile(r"\{\{.*?\}\}|`[^`]*`|\]\([^)]*\)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{\s*([\w.]+)")
_TOO_COMMON = {"0", "1", "2"}


def check_rules(
    paths: Sequence[Path],
    advisors: Mapping[str, Advisor],
    base: Sequence[Path] = (),
    names: NameBook | None = None,
    *,
    paths_of_ledger: LedgerPaths | None = None,
    all_names: bool = False,
) -> list[Problem]:
    """All that is wrong with the rule files under ``paths``, sorted by place; no errors among it: they can be used.

    ``base``: rule sets that the files may refer to or override; their own problems are not reported. ``names``: the
    registry that texts are checked against: a name that is not in it is mentioned where it is like one that is, or,
    with ``all_names``, always. ``paths_of_ledger``: what may be claimed.
    """
    book = load_rules([*base, *paths], advisors, names=names, paths=paths_of_ledger, installed=len(base), strict=False)
    files = {display(file) for path in paths for file in _files(path)}
    files |= {display(path) for path in paths}
    errors = [problem for problem in book.problems if problem.file in files]
    lint = (*_lint(paths), *(_lint_names(paths, names, all_names=all_names) if names else ()))
    return sorted({*errors, *(replace(problem, severity="warning") for problem in lint)})


def _files(path: Path) -> list[Path]:
    try:
        return rule_files(path)
    except RuleFileError:
        return []  # reported by load_rules


def _lint(paths: Sequence[Path]) -> Iterator[Problem]:
    seen: dict[str, tuple[str, str]] = {}
    for document, rule in _rules(paths):
        yield from _lint_rule(document, rule)
        yield from _copies(document, rule, seen)


def _rules(paths: Sequence[Path]) -> Iterator[tuple[Document, Rule]]:
    """The rules that can be read; the rest is reported by load_rules."""
    for file in (file for path in paths for file in _files(path)):
        try:
            documents = read_yaml(file, display(file))
        except RuleFileError:
            continue
        for document in documents:
            try:
                rule = read_document(document)
            except RuleFileError:
                continue
            if isinstance(rule, Rule):
                yield document, rule


def _lint_names(paths: Sequence[Path], names: NameBook, *, all_names: bool) -> Iterator[Problem]:
    for document, rule in _rules(paths):
        every = list(texts(rule, ()))
        parameters = parameters_of([text.en for _, text in every], names)
        for path, text in every:
            for lang, words in (("en", text.en), ("zh", text.zh)):
                for offset, message, hint in name_problems(words, names, parameters):
                    if all_names or hint:
                        yield document.problem((*path, lang), message, hint, offset=offset)
        for index, advice in enumerate(rule.advice):
            place: KeyPath = ("advice", index)
            listed: list[tuple[KeyPath, str, str | None]] = [
                (("set", name), name, value) for name, value in advice.set.items()
            ]
            for key, items in (("uses", advice.uses), ("excludes", advice.excludes)):
                listed += [
                    ((key, number), item.partition("=")[0], item.partition("=")[2] or None)
                    for number, item in enumerate(items)
                ]
            for where, name, value in listed:
                for message, hint in setting_problems(name, value, names):
                    if all_names or hint:
                        yield document.problem((*place, *where), message, hint)


def _lint_rule(document: Document, rule: Rule) -> Iterator[Problem]:
    typed = _thresholds(rule)
    for path, text in texts(rule, ()):
        yield from _lint_text(document, path, text)
        for lang, words in (("en", text.en), ("zh", text.zh)):
            for found in _NUMBER.finditer(_NOT_PROSE.sub(lambda match: " " * len(match.group()), words)):
                if found.group() in typed:
                    name = typed[found.group()]
                    message = f"the number {found.group()} is the value of the parameter {name!r}"
                    hint = f"write {{{{ params.{name} }}}}"
                    yield document.problem((*path, lang), message, hint, offset=found.start())
    for lang, title in (("en", rule.text.title.en), ("zh", rule.text.title.zh)):
        if len(title) > MAX_TITLE:
            yield document.problem(("text", "title", lang), f"title is longer than {MAX_TITLE} characters")


def _lint_text(document: Document, path: KeyPath, text: Text) -> Iterator[Problem]:
    for lang, words in (("en", text.en), ("zh", text.zh)):
        if not words.strip():
            yield document.problem((*path, lang), f"text is empty in {lang!r}")
    if not text.en.strip() or not text.zh.strip():
        return
    if text.en.strip() == text.zh.strip():
        yield document.problem((*path, "zh"), "Chinese text is the same as the English")
    elif not _HAN.search(text.zh):
        yield document.problem((*path, "zh"), "Chinese text has no Chinese in it")
    english, chinese = (set(_PLACEHOLDER.findall(words)) for words in (text.en, text.zh))
    if english != chinese:
        names = ", ".join(sorted(english ^ chinese))
        yield document.problem((*path, "zh"), f"the two languages quote different values: {names}")


def _thresholds(rule: Rule) -> dict[str, str]:
    """How the values of parameters would look in a sentence, each with the parameter's name."""
    found: dict[str, str] = {}
    for name, param in rule.params.items():
        if kind_of(param.value) != "number":
            continue
        written = format_exact(param.value, param.unit).split(" ")[0]
        for number in (str(param.value), written, written.replace(",", "")):
            if number not in _TOO_COMMON:
                found.setdefault(number, name)
    return found


def _copies(document: Document, rule: Rule, seen: dict[str, tuple[str, str]]) -> Iterator[Problem]:
    for key in ("title", "good", "why"):
        for lang in ("en", "zh"):
            words = " ".join(getattr(getattr(rule.text, key), lang).split())
            first = seen.setdefault(words, (rule.id, key)) if words else (rule.id, key)
            if first != (rule.id, key):
                message = f"the same words as {first[1]!r} of {first[0]}"
                yield document.problem(("text", key, lang), message)


def texts(model: Model, path: KeyPath) -> Iterator[tuple[KeyPath, Text]]:
    """Every text in a rule, with its place."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        for step, item in _items(value):
            place = (*path, name, *step)
            if isinstance(item, Text):
                yield place, item
            elif isinstance(item, Model):
                yield from texts(item, place)


def _items(value: object) -> Iterator[tuple[KeyPath, object]]:
    """A value, or what is in it."""
    if isinstance(value, list):
        yield from (((index,), item) for index, item in enumerate(value))
    elif isinstance(value, dict):
        yield from (((key,), item) for key, item in value.items())
    else:
        yield (), value
