"""Checks of ``advisor rules check``: every mistake in every rule file, and what a reviewer would mention.

Mistakes are errors. The rest are warnings: a sentence that is missing in one language, a threshold typed into a text
(it would stay when ``--set`` changes the threshold) or into a condition, a severity that judges something else than the
condition, texts that are copies of each other. For a set that comes with its registry some of these are errors too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor_core.contracts.ledger_paths import LedgerPaths
from advisor_core.contracts.problems import Problem
from advisor_core.contracts.registry import Ruleset
from advisor_core.names.book import NameBook
from advisor_core.names.lint import name_problems, parameters_of, setting_problems
from advisor_core.rules.compiled import CompiledRule, Draft
from advisor_core.rules.files.ruleset import RuleLoader, displayed_files
from advisor_core.rules.files.yaml_file import KeyPath
from advisor_core.rules.language.expression import Expression
from advisor_core.rules.language.nodes import Constant, Node, Operation
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
_PERCENT = re.compile(r"\s*%")
_PLACEHOLDER = re.compile(r"\{\{\s*([\w.]+)")
_TOO_COMMON = {"0", "1", "2"}


def check_rules(
    paths: Sequence[Path],
    advisors: Mapping[str, Advisor],
    base: Sequence[Path | Ruleset] = (),
    names: NameBook | None = None,
    *,
    paths_of_ledger: LedgerPaths | None = None,
    vendors: Collection[str] | None = None,
    own: bool = False,
    trusted: Collection[str] = (),
) -> list[Problem]:
    """All that is wrong with the rule files under ``paths``, sorted by place; no errors among it: they can be used.

    ``base``: rule sets that the files may refer to or override; their own problems are not reported. ``names``: the
    registry that texts are checked against: a name that is not in it is mentioned where it is like one that is.
    ``paths_of_ledger``: what may be claimed. ``vendors``: those that rules may be for.

    ``own``: the files belong to a set that comes with its registry. Then every name must be in it, and what is left to
    the taste of others is an error: numbers typed into conditions and texts, and texts without Chinese.

    ``trusted``: the sets of ``base``, by name, that need no check as long as the files are in none of them.
    """
    roots = [(source.root if isinstance(source, Ruleset) else source).resolve() for source in base]
    inside = [path for path in paths if any(path.resolve().is_relative_to(root) for root in roots)]
    trusted = () if inside else trusted
    loader = RuleLoader(advisors, names or NameBook(), paths_of_ledger or LedgerPaths(), vendors, trusted)
    for source in (*base, *(path for path in paths if path not in inside)):
        loader.read(source)
    book = loader.finish()
    files = displayed_files(paths)
    drafts = [draft for draft in loader.drafts.values() if draft.document.file in files or _zh_file(draft) in files]
    rules = {rule.id: rule for rule in (*book.rules, *book.disabled)}
    house = [problem for draft in drafts for problem in _house_rules(draft, rules.get(draft.rule.id))]
    surprising = (p for d in drafts if d.rule.id in rules for p in _severity_of_other_columns(d, rules[d.rule.id]))
    review = [*_lint(drafts), *surprising, *(_lint_names(drafts, names, all_names=own) if names else ())]
    warnings = [replace(problem, severity="warning") for problem in (review if own else [*review, *house])]
    return sorted({*(p for p in (*book.problems, *(house if own else ())) if p.file in files), *warnings})


def _zh_file(draft: Draft) -> str:
    return draft.translation.file if draft.translation is not None else ""


def _lint(drafts: Sequence[Draft]) -> Iterator[Problem]:
    seen: dict[str, tuple[str, str]] = {}
    for draft in drafts:
        yield from _lint_rule(draft)
        yield from _copies(draft, seen)


def _word_problem(draft: Draft, path: KeyPath, lang: str, message: str, hint: str = "", **place: Any) -> Problem:
    """A problem with a text in one language."""
    document, where = draft.words(path, lang)
    return document.problem(where, message, hint, **place)


def _house_rules(draft: Draft, rule: CompiledRule | None) -> Iterator[Problem]:
    """Mistakes that only our own sets are checked for."""
    typed = _thresholds(draft.rule)
    for path, text in texts(draft.rule, ()):
        if text.en.strip() and not text.zh.strip():
            yield _word_problem(draft, path, "zh", "text has no Chinese: reports show the English")
        for lang, words in (("en", text.en), ("zh", text.zh)):
            prose = _NOT_PROSE.sub(lambda match: " " * len(match.group()), words)
            for found in _NUMBER.finditer(prose):
                percent = _PERCENT.match(prose, found.end()) is not None
                if name := typed.get(found.group() + " %" * percent, ""):
                    message = f"the number {found.group()} is the value of the parameter {name!r}"
                    hint = f"write {{{{ params.{name} }}}}"
                    yield _word_problem(draft, path, lang, message, hint, offset=found.start())
    for path, expression in _conditions(rule) if rule is not None else ():
        for number in _typed_numbers(expression):
            hint = "make it a parameter, with its unit and where it comes from"
            message = f"the number {number.source} is typed into a condition"
            yield draft.problem(path, message, hint, offset=number.start)


def _conditions(rule: CompiledRule) -> Iterator[tuple[KeyPath, Expression]]:
    named: list[tuple[KeyPath, Expression | None]] = [(("applies",), rule.applies), (("when",), rule.when)]
    named += [(("signs", name), sign) for name, sign in rule.signs.items()]
    named += [(("severity", level), condition) for level, condition in rule.severity]
    for index, advice in enumerate(rule.advice):
        named += [(("advice", index, "when"), advice.when), (("advice", index, "unless"), advice.unless)]
    yield from ((path, expression) for path, expression in named if expression is not None)


def _typed_numbers(expression: Expression) -> Iterator[Node]:
    """The numbers other than 0 and 1 that an expression has itself, not by a sign."""
    waiting = [expression.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Constant) and node.kind == "number" and node.value not in (0, 1):
            yield node
        elif isinstance(node, Operation):
            waiting += node.operands
            if any(not isinstance(option, str) and option not in (0, 1) for option in node.options):
                yield node


def _lint_names(drafts: Sequence[Draft], names: NameBook, *, all_names: bool) -> Iterator[Problem]:
    for draft in drafts:
        every = list(texts(draft.rule, ()))
        parameters = parameters_of([text.en for _, text in every], names)
        for path, text in every:
            for lang, words in (("en", text.en), ("zh", text.zh)):
                for offset, message, hint in name_problems(words, names, parameters):
                    if all_names or hint:
                        yield _word_problem(draft, path, lang, message, hint, offset=offset)
        for index, advice in enumerate(draft.rule.advice):
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
                        yield draft.problem((*place, *where), message, hint)


def _lint_rule(draft: Draft) -> Iterator[Problem]:
    for path, text in texts(draft.rule, ()):
        yield from _lint_text(draft, path, text)
    title = draft.rule.text.title
    for lang, words in (("en", title.en), ("zh", title.zh)):
        if len(words) > MAX_TITLE:
            yield _word_problem(draft, ("text", "title"), lang, f"title is longer than {MAX_TITLE} characters")


def _lint_text(draft: Draft, path: KeyPath, text: Text) -> Iterator[Problem]:
    if not text.en.strip():
        yield _word_problem(draft, path, "en", "text is empty")
    if not text.en.strip() or not text.zh.strip():
        return
    if text.en.strip() == text.zh.strip():
        yield _word_problem(draft, path, "zh", "Chinese text is the same as the English")
    elif not _HAN.search(text.zh):
        yield _word_problem(draft, path, "zh", "Chinese text has no Chinese in it")
    english, chinese = (set(_PLACEHOLDER.findall(words)) for words in (text.en, text.zh))
    if english != chinese:
        names = ", ".join(sorted(english ^ chinese))
        yield _word_problem(draft, path, "zh", f"the two languages quote different values: {names}")


def _severity_of_other_columns(draft: Draft, rule: CompiledRule) -> Iterator[Problem]:
    """A severity that depends on what the condition does not look at may surprise: the rule says why."""
    judged = {symbol.key for part in (rule.applies, rule.when) if part for symbol in part.symbols}
    graded = {symbol.key for _, condition in rule.severity for symbol in condition.symbols}
    others = sorted(name for name in graded - judged if "." not in name)
    if others and not draft.rule.severity.why:
        message = f"severity depends on what the condition does not look at: {', '.join(others)}"
        yield (draft.severity_from or draft.document).problem(("severity",), message, "say `why` in it", key=True)


def _thresholds(rule: Rule) -> dict[str, str]:
    """The values of parameters as a sentence shows them, each with the parameter's name."""
    found: dict[str, str] = {}
    for name, param in rule.params.items():
        if kind_of(param.value) != "number":
            continue
        number, _, unit = format_exact(param.value, param.unit).partition(" ")
        written = f"{number} %" if unit == "%" else number
        for number in (str(param.value), written, written.replace(",", "")):
            if number.removesuffix(" %") not in _TOO_COMMON:
                found.setdefault(number, name)
    return found


def _copies(draft: Draft, seen: dict[str, tuple[str, str]]) -> Iterator[Problem]:
    rule = draft.rule
    for key in ("title", "good", "why"):
        for lang in ("en", "zh"):
            words = " ".join(getattr(getattr(rule.text, key), lang).split())
            first = seen.setdefault(words, (rule.id, key)) if words else (rule.id, key)
            if first != (rule.id, key):
                message = f"the same words as {first[1]!r} of {first[0]}"
                yield _word_problem(draft, ("text", key), lang, message)


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
