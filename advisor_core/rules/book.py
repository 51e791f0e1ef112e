"""The rules of a run: in the order in which they are judged, and those that are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from advisor_core.contracts.problems import Problem, RuleFileError, nearest
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.language.template import escape_markdown
from advisor_core.rules.model import Rule
from advisor_core.rules.origins import Origins
from advisor_core.text.base import Text
from advisor_core.text.messages import message

ON_COMMAND_LINE = Origins()


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

    def select(self, names: Sequence[str], origins: Origins = ON_COMMAND_LINE) -> RuleBook:
        """Only the rules with these ids, names, aliases or id prefixes (``HD``). Raises `RuleFileError`."""
        chosen = self._matching(names, origins.select)
        others = {rule.id for rule in self.rules} - set(chosen)
        return self._without(dict.fromkeys(others, _reason(origins.select, origins, names)))

    def ignore(self, names: Sequence[str], origins: Origins = ON_COMMAND_LINE) -> RuleBook:
        """All rules but these, named as in `select`. Raises `RuleFileError`."""
        chosen = self._matching(names, origins.ignore)
        return self._without({id_: _reason(origins.ignore, origins, given) for id_, given in chosen.items()})

    def _without(self, reasons: Mapping[str, Text]) -> RuleBook:
        """The book without these rules; ``reasons`` by id."""
        kept = tuple(rule for rule in self.rules if rule.id not in reasons)
        dropped = tuple(rule for rule in self.rules if rule.id in reasons)
        left_out = {**self.left_out, **{rule.id: reasons[rule.id] for rule in dropped}}
        return RuleBook(kept, (*self.disabled, *dropped), self.problems, left_out)

    def _matching(self, names: Sequence[str], origin: str) -> dict[str, list[str]]:
        """The ids of the rules that are meant, each with the names that mean it."""
        every = (*self.rules, *self.disabled)
        found: dict[str, list[str]] = {}
        problems = []
        for name in names:
            is_prefix = re.fullmatch(r"[A-Z]+\d*", name) is not None
            ids = {r.id for r in every if name in names_of(r.rule) or (is_prefix and r.id.startswith(name))}
            if not ids:
                known = [known for rule in every for known in names_of(rule.rule)]
                problems.append(Problem(origin, 0, 0, f"no rule {name!r}", nearest(name, known)))
            for id_ in ids:
                found.setdefault(id_, []).append(name)
        if problems:
            raise RuleFileError(problems)
        return found


def _reason(option: str, origins: Origins, names: Sequence[str]) -> Text:
    """Why an option, or an entry of a settings file, leaves a rule out; ``names``: those that were given."""
    place, why = origins.reason(names)
    if not place:
        return message("rule.left_out_by_option", option=option)
    said = escape_markdown(why) if why else ""
    because = Text(en=said and f": {said}", zh=said and f"：{said}")
    return message("rule.left_out_by_settings", place=escape_markdown(place), why=because)


def names_of(rule: Rule) -> tuple[str, ...]:
    """The names that a rule goes by: its id, its name and its former ones."""
    return (rule.id, rule.name, *rule.aliases)
