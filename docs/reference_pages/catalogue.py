"""Where the reference has each rule, advisor, fact and table, for links between pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from advisor_core.contracts import tables
from advisor_core.contracts.advisor import Advisor
from advisor_core.contracts.facts import Fact
from advisor_core.contracts.keys import AnyKey
from advisor_core.plugins.host import Host
from advisor_core.rules.compiled import CompiledRule
from reference_pages.markdown import ROOT, to


class Catalogue:
    """What the pages link to: which page has which rule, advisor, fact and table."""

    def __init__(self, host: Host, book: Sequence[CompiledRule]) -> None:
        self.host = host
        self.rules = {compiled.id: compiled for compiled in book}
        self.rule_page = {compiled.id: self._page(compiled) for compiled in book}

    def _page(self, compiled: CompiledRule) -> str:
        return f"{Path(self.rule_file(compiled)).parent.as_posix()}.md".replace("rulesets/", "rules/", 1)

    def rule_file(self, compiled: CompiledRule) -> str:
        return Path(compiled.file).resolve().relative_to(ROOT).as_posix()

    def rule(self, name: str, start: str) -> str:
        return to(self.rule_page[name], rule_heading(self.rules[name]), start, name)

    def advisor(self, name: str, start: str) -> str:
        return to(advisor_page(name), name, start)

    def link_to(self, name: str, start: str) -> str:
        """A link to a fact, a table, or the profile itself."""
        if name in tables.SCHEMAS:
            return to("tables.md", name, start)
        return to("facts.md", name, start)

    def links_to_keys(self, keys: Iterable[AnyKey], start: str) -> str:
        return self.links_to((key.name for key in keys), start)

    def links_to(self, names: Iterable[str], start: str) -> str:
        return ", ".join(self.link_to(name, start) for name in names) or "nothing"

    def tables_of(self, advisor: Advisor) -> tuple[list[str], list[str]]:
        """(tables without which it cannot answer, tables it uses where they are there), through all facts."""
        must: set[str] = set()
        may: set[str] = set()
        seen: set[tuple[AnyKey, bool]] = set()
        waiting = [(key, True) for key in advisor.needs] + [(key, False) for key in advisor.wants]
        while waiting:
            key, needed = waiting.pop()
            if (key, needed) in seen:
                continue
            seen.add((key, needed))
            if isinstance(key, tables.TableSchema):
                (must if needed else may).add(key.name)
            elif isinstance(key, Fact):
                waiting += [(below, needed) for below in key.needs] + [(below, False) for below in key.wants]
        return sorted(must), sorted(may - must)


def rule_heading(compiled: CompiledRule) -> str:
    return f"{compiled.id} {compiled.rule.name}"


def advisor_page(name: str) -> str:
    return f"advisors/{name.split('.')[0]}.md"
