"""The page of canonical tables and of the files that they are read from."""

from __future__ import annotations

from advisor_core.contracts import tables
from advisor_core.loaders.ascend_pytorch.files import DELIVERABLES
from advisor_core.text.messages import message
from reference_pages.catalogue import Catalogue
from reference_pages.markdown import code, join, table
from reference_pages.texts import COLUMNS, column_rows, details


def tables_page(catalogue: Catalogue) -> str:
    page = "tables.md"
    users: dict[str, list[str]] = {name: [] for name in tables.SCHEMAS}
    for name, fact in sorted(catalogue.host.facts.items()):
        for table_name in users.keys() & {key.name for key in (*fact.needs, *fact.wants)}:
            users[table_name].append(catalogue.link_to(name, page))
    for name, advisor in sorted(catalogue.host.advisors.items()):
        for table_name in users.keys() & {key.name for key in (*advisor.needs, *advisor.wants)}:
            users[table_name].append(catalogue.advisor(name, page))
    files = (
        (
            code(deliverable.name),
            catalogue.links_to(deliverable.tables, page),
            "level 1 and above" if deliverable.from_level1 else "any level",
            message(deliverable.collect).en,
        )
        for deliverable in DELIVERABLES
    )
    return join(
        "# Tables",
        "One vocabulary for every export format. " + details(tables).split("\n\n", 1)[1],
        "## Files of a text export",
        table(("File", "Tables", "Written at", "How to get it"), files),
        *(
            join(
                f"## {name}",
                schema.meaning,
                "Used by " + ", ".join(users[name]) + "." if users[name] else "Used by no fact or advisor yet.",
                table(COLUMNS, column_rows(schema.columns)),
            )
            for name, schema in tables.SCHEMAS.items()
        ),
    )
