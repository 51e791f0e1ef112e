"""Pages of rules: a page per rule file, read from the rule book."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from advisor_core.rules.cases import Case
from advisor_core.rules.compiled import CompiledException, CompiledRule
from advisor_core.rules.files.run_cases import read_cases
from advisor_core.rules.show import describe_holds
from reference_pages.catalogue import Catalogue, rule_heading
from reference_pages.markdown import ROOT, Pages, code, fence, join, listing, source_link, table, to
from reference_pages.names import names_of_rule
from reference_pages.texts import rule_text

LEDGER = "../the-ledger.md"


def rule_pages(catalogue: Catalogue) -> Pages:
    by_page: dict[str, list[CompiledRule]] = {}
    for compiled in sorted(catalogue.rules.values(), key=lambda compiled: compiled.id):
        by_page.setdefault(catalogue.rule_page[compiled.id], []).append(compiled)
    pages: Pages = {}
    for page, rules in sorted(by_page.items()):
        link = source_link(Path(catalogue.rule_file(rules[0])).parent.as_posix(), page)
        pages[page] = join(
            f"# Rules: {Path(page).stem.replace('_', ' ')}",
            f"{len(rules)} rules, read from {link}. `names in code` in a text are measured values of the "
            f"[advisor]({os.path.relpath('index.md', Path(page).parent)}#advisors); thresholds show their defaults and "
            "are changed with `--set` or a rule file.",
            table(
                ("Rule", "In order means"),
                ((catalogue.rule(r.id, page) + " " + r.rule.name, rule_text(r.good)) for r in rules),
            ),
            *(one_rule(compiled, catalogue, page) for compiled in rules),
        )
    return pages


def one_rule(compiled: CompiledRule, catalogue: Catalogue, page: str) -> str:
    rule = compiled.rule
    must, may = catalogue.tables_of(compiled.advisor)
    status = rule.status + (f"; also known as {', '.join(map(code, rule.aliases))}" if rule.aliases else "")
    explained_by = [other.id for other in catalogue.rules.values() if rule.id in other.explains]
    facts = [("Advisor", f"{catalogue.advisor(rule.advisor, page)}: {compiled.advisor.meaning}"), ("Status", status)]
    facts += [("Confidence", rule.confidence), ("At most", f"{rule.limit} findings")]
    facts += [("Needs", catalogue.links_to_keys(compiled.advisor.needs, page))]
    facts += [("Tables it cannot do without", catalogue.links_to(must, page))] if must else []
    facts += [("Tables it uses if recorded", catalogue.links_to(may, page))] if may else []
    for word, names in (
        ("Judged after", compiled.after),
        ("Cause of", compiled.explains),
        ("Explained by", sorted(explained_by)),
    ):
        facts += [(word, ", ".join(catalogue.rule(name, page) for name in names))] if names else []
    if rule.caveat:
        facts += [("Puts a caveat on", ", ".join(map(code, rule.caveats)) + f": “{rule_text(compiled.caveat)}”")]
    return join(
        f"## {rule_heading(compiled)}",
        f"**{rule_text(compiled.title)}**",
        rule_text(compiled.why),
        table(("", ""), facts),
        "**Condition**",
        listing(f"{code(name)}: {code(sign.source)}" for name, sign in compiled.signs.items()),
        fence(compiled.when.source + (f"\nonly where: {compiled.applies.source}" if compiled.applies else "")),
        listing(severities(compiled)),
        f"**Time at stake**: {impact(compiled, page)}",
        "**Thresholds**" if rule.params else "",
        table(
            ("Name", "Value", "Unit", "May be", "Why"),
            (
                (
                    code(name),
                    code(json.dumps(p.value) if isinstance(p.value, bool) else p.value),
                    p.unit,
                    f"{p.range[0]:g} to {p.range[1]:g}" if p.range else "",
                    p.why,
                )
                for name, p in rule.params.items()
            ),
        ),
        *example(compiled),
        "**Advice**",
        "\n".join(f"{number}. {text}" for number, text in enumerate(advice(compiled), 1)),
        f"**How to verify**: {rule_text(compiled.verify)}",
        f"**Names**: {mentioned}" if (mentioned := names_of_rule(compiled, page)) else "",
        f"**Not a problem if** {rule_text(compiled.not_a_problem_if)}" if compiled.not_a_problem_if else "",
        *(exception(item) for item in compiled.exceptions),
        "**References**",
        listing(f"[{r.title}]({r.url})" if r.url else r.title for r in rule.references),
    )


def exception(item: CompiledException) -> str:
    """A case in which a finding is no problem, with the jobs for which it is told."""
    told = [holds] if (holds := describe_holds(item.holds_for)) else []
    told += [code(item.when.source)] if item.when else []
    return f"**Nor if** (told for {'; '.join(told)}) {rule_text(item.text)}"


@cache
def cases() -> dict[str, list[Case]]:
    """The cases of our rules, by rule."""
    sets = sorted(path.parent for path in (ROOT / "rulesets").glob("*/defaults.yaml"))
    return {file.cases.cases: file.cases.examples for ruleset in sets for file in read_cases(ruleset)}


def example(compiled: CompiledRule) -> Iterator[str]:
    """A row at fault, as the cases of the rule have it."""
    found = next((case for case in cases().get(compiled.id, ()) if case.expect.state == "fail"), None)
    if found is None:
        return
    yield f"**Example** ({found.name})"
    columns = compiled.advisor.declared()
    yield table(
        ("Column", "Value", "Unit"),
        ((code(name), code(json.dumps(value)), columns[name].unit) for name, value in found.rows[0].items()),
    )
    yield f"gives severity {found.expect.severity}, and advice {found.expect.advice} first."


def severities(compiled: CompiledRule) -> Iterator[str]:
    for level, condition in compiled.severity:
        if condition.source == "true":
            yield f"{level}: otherwise" if level != "high" else "high: always"
            return
        if condition.source != "false":
            yield f"{level}: {code(condition.source)}"


def impact(compiled: CompiledRule, page: str) -> str:
    rule = compiled.rule
    if rule.impact.value == 0:
        return "none; the rule is not about time."
    basis = to("../index.md", "Time at stake", page, rule.impact.basis.replace("_", " "))
    ledger = os.path.relpath(LEDGER, Path(page).parent)
    claims = f"; claims {', '.join(map(code, rule.claims))} of the [ledger]({ledger})" if rule.claims else ""
    return f"{code(compiled.impact.source)} ns per step ({basis}){claims}."


def advice(compiled: CompiledRule) -> Iterator[str]:
    for item in compiled.advice:
        settings = " ".join(code(f"{name}={value}") for name, value in item.spec.set.items())
        lines = [f"**{item.spec.kind}** {settings} {rule_text(item.text)}".replace("  ", " ")]
        lines += [f"Holds for {holds}."] if (holds := describe_holds(item.holds_for)) else []
        lines += [f"Given if {code(item.when.source)}."] if item.when else []
        lines += [f"Not if {code(item.unless.source)}: {rule_text(item.unless_text)}."] if item.unless else []
        lines += [f"Not together with {', '.join(code(name) for name, _ in item.excludes)}."] if item.excludes else []
        hazards = f" (hazard: {', '.join(item.spec.hazards)})" if item.spec.hazards else ""
        lines += [f"Risk{hazards}: {rule_text(item.risk)}"] if item.risk else []
        yield "\n   - ".join(line.replace("\n", "\n     ") for line in lines)
