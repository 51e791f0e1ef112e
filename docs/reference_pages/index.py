"""The first page of the reference."""

from __future__ import annotations

from reference_pages.catalogue import Catalogue
from reference_pages.markdown import join, listing, table
from reference_pages.texts import rule_text


def index_page(catalogue: Catalogue) -> str:
    page = "index.md"
    rules = sorted(catalogue.rules.values(), key=lambda compiled: compiled.id)
    advisors = sorted(catalogue.host.advisors.items())
    return join(
        "# Reference",
        "Generated from the code by `make docs`; do not edit.",
        listing(
            [
                "[Command line](command-line.md): commands, options, exit codes",
                "[report.json](report-json.md): every field",
                "[compare.json](compare-json.md): every field",
                "[Rule files](rule-file.md): fields, conditions, units, placeholders",
                "[Job files](job-file.md): the description of a job that `advisor sample` simulates, and its causes",
                "[Facts](facts.md): what is derived from a profile",
                "[Names](names/index.md): every API, variable, option, flag and command that a text names",
                "[Real cases](cases.md): published cases of lost time, and the rules that would have named the cause",
                "[Guides and checks](guides.md): what guides and the vendor's tools ask for, and what answers",
                "[Tables](tables.md): what is read, from which file, and which option of the profiler writes it",
            ]
        ),
        "## Rules",
        table(
            ("Rule", "Name", "Judges", "In order means"),
            (
                (catalogue.rule(r.id, page), r.rule.name, catalogue.advisor(r.rule.advisor, page), rule_text(r.good))
                for r in rules
            ),
        ),
        "## Advisors",
        table(
            ("Advisor", "Measures", "Scope"),
            ((catalogue.advisor(name, page), advisor.meaning, advisor.scope.value) for name, advisor in advisors),
        ),
    )
