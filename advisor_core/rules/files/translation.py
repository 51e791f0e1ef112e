"""Puts the Chinese texts of a document of their own into the rule that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from advisor_core.contracts.problems import Problem
from advisor_core.rules.compiled import Draft
from advisor_core.rules.files.yaml_file import Document, KeyPath
from advisor_core.rules.model import Rule, RuleTranslation


def translate(draft: Draft, document: Document, translation: RuleTranslation) -> Iterator[Problem]:
    """Fill in the texts; what does not fit the rule is told and left out."""
    rule = draft.rule.model_dump(exclude_unset=True)
    for key, given in (("advice", len(translation.advice)), ("exceptions", len(translation.exceptions))):
        if given and given != (wanted := len(rule.get(key, ()))):
            message = f"{given} {key}, but the rule has {wanted}"
            yield document.problem((key,), message, "give one for each, in the order of the rule", key=True)
            return
    for path, words in _texts(translation):
        text = _at(rule, path)
        if text is None:
            yield document.problem(path, f"{draft.rule.id} has no such text", key=True)
        elif text.get("zh"):
            yield document.problem(path, "the text is Chinese in the rule already", key=True)
        else:
            text["zh"] = words
    draft.rule = Rule.model_validate(rule)
    draft.translation = document


def _texts(translation: RuleTranslation) -> Iterator[tuple[KeyPath, str]]:
    for key, words in translation.text.model_dump(exclude_none=True).items():
        yield ("text", key), words
    for index, advice in enumerate(translation.advice):
        for key, words in advice.model_dump(exclude_none=True).items():
            yield ("advice", index, key), words
    for index, exception in enumerate(translation.exceptions):
        yield ("exceptions", index, "text"), exception.text
    if translation.caveat is not None:
        yield ("caveat",), translation.caveat


def _at(rule: dict[str, Any], path: KeyPath) -> dict[str, str] | None:
    found: Any = rule
    for step in path:
        found = found[step] if isinstance(step, int) else found.get(step)
        if found is None:
            return None
    return found if isinstance(found, dict) else None
