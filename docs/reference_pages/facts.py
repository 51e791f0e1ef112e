"""The page of facts."""

from __future__ import annotations

import dataclasses
import importlib
import typing
from collections.abc import Iterable

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Fact
from advisor_core.facts.communication.cross_rank_waits import COLUMNS as WAITS
from reference_pages.catalogue import Catalogue
from reference_pages.markdown import code, join, source_link, table
from reference_pages.texts import details, source_of


def facts_page(catalogue: Catalogue) -> str:
    page = "facts.md"
    return join(
        "# Facts",
        "A fact is derived from a profile once and asked for by name. Each says which tables and facts it needs, and "
        "which it uses where they are there; a *shared* fact is small enough to leave the process of its rank and is "
        "what job advisors see. Times are int64 ns.",
        "## profile",
        details(importlib.import_module("advisor_core.contracts.profile").Profile),
        "## doubt",
        details(importlib.import_module("advisor_core.contracts.doubt").Doubt),
        "## cross_rank_waits",
        details(importlib.import_module("advisor_core.facts.communication.cross_rank_waits")),
        columns_of("", WAITS),
        *(one_fact(catalogue.host.facts[name], catalogue, page) for name in sorted(catalogue.host.facts)),
    )


def columns_of(field: str, columns: Iterable[Column]) -> str:
    """The columns of a frame, which is a field of the value or the value itself."""
    rows = ((code(column.name), column.dtype, column.unit, column.meaning) for column in columns)
    return join(f"Columns of {code(field)}:" if field else "", table(("Column", "Type", "Unit", "Meaning"), rows))


def one_fact(fact: Fact[object], catalogue: Catalogue, page: str) -> str:
    users = [
        catalogue.link_to(n, page) for n, f in sorted(catalogue.host.facts.items()) if fact in (*f.needs, *f.wants)
    ]
    users += [
        catalogue.advisor(n, page) for n, a in sorted(catalogue.host.advisors.items()) if fact in (*a.needs, *a.wants)
    ]
    kind = typing.get_type_hints(fact.compute).get("return")
    described = dataclasses.is_dataclass(kind) and isinstance(kind, type)
    return join(
        f"## {fact.name}",
        details(fact.compute),
        f"Gives {code(kind.__name__)}. {details(kind)}" if described and isinstance(kind, type) else "",
        table(
            ("", ""),
            [
                ("Needs", catalogue.links_to_keys(fact.needs, page)),
                ("Uses if there", catalogue.links_to_keys(fact.wants, page)),
                ("Shared", "yes" if fact.shared else "no"),
                ("Used by", ", ".join(users) or "no fact or advisor"),
                ("Source", source_link(source_of(fact.compute), page)),
            ],
        ),
        *(columns_of(field, columns) for field, columns in fact.frames.items()),
    )
