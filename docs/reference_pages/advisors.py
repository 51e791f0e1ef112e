"""Pages of advisors: what each measures."""

from __future__ import annotations

from pathlib import Path

from advisor_core.contracts.advisor import Advisor
from reference_pages.catalogue import Catalogue, advisor_page
from reference_pages.markdown import Pages, code, join, source_link, table
from reference_pages.texts import COLUMNS, column_rows, details, source_of


def advisor_pages(catalogue: Catalogue) -> Pages:
    by_page: dict[str, list[Advisor]] = {}
    for name, advisor in sorted(catalogue.host.advisors.items()):
        by_page.setdefault(advisor_page(name), []).append(advisor)
    return {
        page: join(
            f"# Advisors: {Path(page).stem.replace('_', ' ')}",
            *(one_advisor(advisor, catalogue, page) for advisor in advisors),
        )
        for page, advisors in by_page.items()
    }


def one_advisor(advisor: Advisor, catalogue: Catalogue, page: str) -> str:
    judged = [name for name, compiled in catalogue.rules.items() if compiled.rule.advisor == advisor.name]
    about = ", ".join(f"{code(column.name)} ({column.meaning})" for column in advisor.about)
    return join(
        f"## {advisor.name}",
        details(advisor.measure),
        table(
            ("", ""),
            [
                ("Scope", f"{advisor.scope.value}: {_SCOPES[advisor.scope.value]}"),
                ("One row is about", about or f"the {advisor.scope.value}"),
                ("Needs", catalogue.links_to_keys(advisor.needs, page)),
                ("Uses if there", catalogue.links_to_keys(advisor.wants, page)),
                ("Reads thresholds", ", ".join(map(code, advisor.params)) or "none"),
                ("Judged by", ", ".join(catalogue.rule(name, page) for name in sorted(judged)) or "no rule"),
                ("Source", source_link(source_of(advisor.measure), page)),
            ],
        ),
        table(COLUMNS, column_rows((*advisor.about, *advisor.columns))),
        *(("Only in its evidence:", table(COLUMNS, column_rows(advisor.evidence))) if advisor.evidence else ()),
    )


_SCOPES = {"rank": "sees the facts of one rank", "job": "sees the shared facts of all ranks"}
