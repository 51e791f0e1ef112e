"""The rules of a run: in the order in which they are judged, and those that are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from advisor_core.contracts.problems import Problem, RuleFileError, nearest
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.model import Rule
from advisor_core.text.base import Text
from advisor_core.text.messages import message


@dataclass(frozen=True)
class RuleBook:
    """Rules in the order in which they are judged. ``disabled``: those that are left out, by a document or an option;
    ``left_out`` says by which, by rule id. ``problems``: why documents were left out, if loading was not strict."""

    rules: tuple[CompiledRule, ...]
    disabled: tuple[CompiledRule, ...] = ()
    problems: tuple[Problem, ...] = ()
    left_out: Mapping[str, Text] = field(default_factory=dict)

    def __iter__(self) -> Iterator[CompiledRule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __getitem__(self, name: str) -> CompiledRule:
        """The rule with this id, name or alias."""
        for rule in (*self.rules, *self.disabled):
            if name in names_of(rule.rule):
                return rule
        raise KeyError(name)

    def select(self, names: Iterable[str]) -> RuleBook:
        """Only the rules with these ids, names, aliases or id prefixes (``HD``). Raises `RuleFileError`."""
        chosen = self._matching(names, "--select")
        return self._without({rule.id for rule in self.rules} - chosen, "--select")

    def ignore(self, names: Iterable[str]) -> RuleBook:
        """All rules but these, named as in `select`. Raises `RuleFileError`."""
        return self._without(self._matching(names, "--ignore"), "--ignore")

    def _without(self, ids: set[str], option: str) -> RuleBook:
        kept = tuple(rule for rule in self.rules if rule.id not in ids)
        dropped = tuple(rule for rule in self.rules if rule.id in ids)
        reason = message("rule.left_out_by_option", option=option)
        left_out = {**self.left_out, **{rule.id: reason for rule in dropped}}
        return RuleBook(kept, (*self.disabled, *dropped), self.problems, left_out)

    def _matching(self, names: Iterable[str], option: str) -> set[str]:
        every = (*self.rules, *self.disabled)
        found: set[str] = set()
        problems = []
        for name in names:
            is_prefix = re.fullmatch(r"[A-Z]+\d*", name) is not None
            ids = {r.id for r in every if name in names_of(r.rule) or (is_prefix and r.id.startswith(name))}
            if not ids:
                known = [known for rule in every for known in names_of(rule.rule)]
                problems.append(Problem(option, 0, 0, f"no rule {name!r}", nearest(name, known)))
            found |= ids
        if problems:
            raise RuleFileError(problems)
        return found


def names_of(rule: Rule) -> tuple[str, ...]:
    """The names that a rule goes by: its id, its name and its former ones."""
    return (rule.id, rule.name, *rule.aliases)
