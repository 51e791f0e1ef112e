"""Writes docs/reference/ from the code, so that it cannot say anything else than the code does.

``python docs/generate.py`` writes; with ``--check`` it only compares and ends with 1 where what is there differs. The
command line is read from click, rules from the rule book, advisors and facts from the registries, tables and files
from their schemas, report.json and rule documents from the pydantic models.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import json
import os
import re
import shutil
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import click
from reference_markdown import ROOT, TARGET, Pages, code, fence, join, listing, source_link, table, to
from reference_names import name_pages, names_of_rule

from advisor_core.cli.console import EXIT_CODES
from advisor_core.cli.main import cli
from advisor_core.contracts import tables
from advisor_core.contracts.advisor import Advisor
from advisor_core.contracts.facts import Fact
from advisor_core.contracts.keys import AnyKey
from advisor_core.loaders.ascend_pytorch.files import DELIVERABLES
from advisor_core.plugins import hookspecs
from advisor_core.plugins.host import ONLY, Host, load_host
from advisor_core.result.run import RunResult
from advisor_core.rules.cases import Case
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.files import yaml_file
from advisor_core.rules.files.run_cases import read_cases
from advisor_core.rules.files.schema import rule_schema
from advisor_core.rules.language import expression, template
from advisor_core.rules.language.profile_names import PROFILE_NAMES
from advisor_core.rules.language.template import TextTemplate
from advisor_core.rules.show import describe_holds
from advisor_core.run.rank import RunOptions, rule_book
from advisor_core.text import units
from advisor_core.text.messages import message

LEDGER = "../the-ledger.md"


# --- texts of rules


def told(text: TextTemplate | None) -> str:
    """The English text of a rule: parameters with the value they have, measured values by their column's name."""
    if text is None:
        return ""
    parts = []
    for part in text.en.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            parts.append(part.show({}, "en") if part.param else code(part.symbol.key))
    return "".join(parts).strip()


# --- the command line


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below ``group`` with its whole name."""
    for key in sorted(group.commands):
        command = group.commands[key]
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {key}")
        else:
            yield f"{name} {key}", command


def command_line() -> str:
    parts = [
        "# Command line",
        "The report goes to files, a summary to stdout, progress and diagnostics to stderr.",
        "## Exit codes",
        table(("Code", "Meaning"), EXIT_CODES.items()),
    ]
    for name, command in commands(cli, "advisor"):
        context = click.Context(command, info_name=name)
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        options = [option for option in command.params if isinstance(option, click.Option)]
        parts += [
            f"## {name}",
            fence(usage),
            re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(command.help or "")).replace("*", r"\*"),
            table(("Option", "Value", "Default", "Meaning"), (option_row(option, context) for option in options)),
        ]
    return join(*parts)


def option_row(option: click.Option, context: click.Context) -> tuple[str, str, str, str]:
    spelling = ", ".join(map(code, option.opts))
    value = "" if option.is_flag else code(option.make_metavar(context).strip("[]"))
    default = code(option.default) if option.show_default else ""
    said = option.help or ""
    more = " May be repeated." if option.multiple and "repeated" not in said else ""
    return spelling, value, default, said + more


# --- rules


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

    def given(self, name: str, start: str) -> str:
        """A fact, a table, or the profile itself."""
        if name in tables.SCHEMAS:
            return to("tables.md", name, start)
        return to("facts.md", name, start)

    def keys(self, keys: Iterable[AnyKey], start: str) -> str:
        return self.givens((key.name for key in keys), start)

    def givens(self, names: Iterable[str], start: str) -> str:
        return ", ".join(self.given(name, start) for name in names) or "nothing"

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
                ((catalogue.rule(r.id, page) + " " + r.rule.name, told(r.good)) for r in rules),
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
    facts += [("Needs", catalogue.keys(compiled.advisor.needs, page))]
    facts += [("Tables it cannot do without", catalogue.givens(must, page))] if must else []
    facts += [("Tables it uses if recorded", catalogue.givens(may, page))] if may else []
    for word, names in (
        ("Judged after", compiled.after),
        ("Cause of", compiled.explains),
        ("Explained by", sorted(explained_by)),
    ):
        facts += [(word, ", ".join(catalogue.rule(name, page) for name in names))] if names else []
    if rule.caveat:
        facts += [("Puts a caveat on", ", ".join(map(code, rule.caveats)) + f": “{told(compiled.caveat)}”")]
    return join(
        f"## {rule_heading(compiled)}",
        f"**{told(compiled.title)}**",
        told(compiled.why),
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
        f"**How to verify**: {told(compiled.verify)}",
        f"**Names**: {mentioned}" if (mentioned := names_of_rule(compiled, page)) else "",
        f"**Not a problem if** {told(compiled.not_a_problem_if)}" if compiled.not_a_problem_if else "",
        "**References**",
        listing(f"[{r.title}]({r.url})" if r.url else r.title for r in rule.references),
    )


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
        lines = [f"**{item.spec.kind}** {settings} {told(item.text)}".replace("  ", " ")]
        lines += [f"Holds for {holds}."] if (holds := describe_holds(item.holds_for)) else []
        lines += [f"Given if {code(item.when.source)}."] if item.when else []
        lines += [f"Not if {code(item.unless.source)}: {told(item.unless_text)}."] if item.unless else []
        lines += [f"Not together with {', '.join(code(name) for name, _ in item.excludes)}."] if item.excludes else []
        hazards = f" (hazard: {', '.join(item.spec.hazards)})" if item.spec.hazards else ""
        lines += [f"Risk{hazards}: {told(item.risk)}"] if item.risk else []
        yield "\n   - ".join(line.replace("\n", "\n     ") for line in lines)


# --- advisors


def advisor_page(name: str) -> str:
    return f"advisors/{name.split('.')[0]}.md"


def column_rows(columns: Iterable[Any]) -> Iterator[tuple[str, str, str, str]]:
    return ((code(column.name), column.dtype, column.unit, column.meaning) for column in columns)


_COLUMNS = ("Column", "Type", "Unit", "Meaning")


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
                ("Needs", catalogue.keys(advisor.needs, page)),
                ("Uses if there", catalogue.keys(advisor.wants, page)),
                ("Reads thresholds", ", ".join(map(code, advisor.params)) or "none"),
                ("Judged by", ", ".join(catalogue.rule(name, page) for name in sorted(judged)) or "no rule"),
                ("Source", source_link(source_of(advisor.measure), page)),
            ],
        ),
        table(_COLUMNS, column_rows((*advisor.about, *advisor.columns))),
    )


_SCOPES = {"rank": "sees the facts of one rank", "job": "sees the shared facts of all ranks"}


def source_of(function: Callable[..., Any]) -> str:
    return Path(inspect.getsourcefile(function) or "").resolve().relative_to(ROOT).as_posix()


def details(thing: object) -> str:
    return prose(inspect.getdoc(thing) or "")


def prose(text: str) -> str:
    """A docstring as Markdown: code as Markdown marks it, and lines that tell one kind after the other as a list."""
    return re.sub(r"^kind `", "- kind `", text.replace("``", "`"), flags=re.MULTILINE)


# --- facts and tables


def facts_page(catalogue: Catalogue) -> str:
    page = "facts.md"
    return join(
        "# Facts",
        "A fact is derived from a profile once and asked for by name. Each says which tables and facts it needs, and "
        "which it uses where they are there; a *shared* fact is small enough to leave the process of its rank and is "
        "what job advisors see. Times are int64 ns.",
        "## profile",
        details(importlib.import_module("advisor_core.contracts.profile").Profile),
        "## cross_rank_waits",
        details(importlib.import_module("advisor_core.facts.communication.cross_rank_waits")),
        *(one_fact(catalogue.host.facts[name], catalogue, page) for name in sorted(catalogue.host.facts)),
    )


def one_fact(fact: Fact[object], catalogue: Catalogue, page: str) -> str:
    users = [catalogue.given(n, page) for n, f in sorted(catalogue.host.facts.items()) if fact in (*f.needs, *f.wants)]
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
                ("Needs", catalogue.keys(fact.needs, page)),
                ("Uses if there", catalogue.keys(fact.wants, page)),
                ("Shared", "yes" if fact.shared else "no"),
                ("Used by", ", ".join(users) or "no fact or advisor"),
                ("Source", source_link(source_of(fact.compute), page)),
            ],
        ),
    )


def tables_page(catalogue: Catalogue) -> str:
    page = "tables.md"
    users: dict[str, list[str]] = {name: [] for name in tables.SCHEMAS}
    for name, fact in sorted(catalogue.host.facts.items()):
        for table_name in users.keys() & {key.name for key in (*fact.needs, *fact.wants)}:
            users[table_name].append(catalogue.given(name, page))
    for name, advisor in sorted(catalogue.host.advisors.items()):
        for table_name in users.keys() & {key.name for key in (*advisor.needs, *advisor.wants)}:
            users[table_name].append(catalogue.advisor(name, page))
    files = (
        (
            code(deliverable.name),
            catalogue.givens(deliverable.tables, page),
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
                table(_COLUMNS, column_rows(schema.fields)),
            )
            for name, schema in tables.SCHEMAS.items()
        ),
    )


# --- models


def model_sections(schema: Mapping[str, Any], page: str) -> Iterator[str]:
    """One section per model of a JSON schema: what it is, and its fields."""
    for name, model in sorted(schema["$defs"].items()):
        yield one_model(name, model, page)


def one_model(name: str, model: Mapping[str, Any], page: str) -> str:
    required = set(model.get("required", ()))
    rows = (
        (
            code(field),
            kind_of(spec, page),
            "required" if field in required else code(json.dumps(spec.get("default", [] if "items" in spec else {}))),
            spec.get("description", ""),
        )
        for field, spec in model.get("properties", {}).items()
    )
    return join(f"## {name}", prose(model.get("description", "")), table(("Field", "Type", "Default", "Meaning"), rows))


def kind_of(spec: Mapping[str, Any], page: str) -> str:
    """A JSON schema type in words, with links to other models."""
    if "$ref" in spec:
        return to(page, spec["$ref"].rsplit("/", 1)[-1], page)
    if options := spec.get("anyOf", spec.get("oneOf")):
        return " or ".join(kind_of(option, page) for option in options)
    if "enum" in spec or "const" in spec:
        return ", ".join(code(value) for value in spec.get("enum", [spec.get("const")]))
    kind = spec.get("type")
    if kind == "array" and "prefixItems" in spec:
        return "[" + ", ".join(kind_of(item, page) for item in spec["prefixItems"]) + "]"
    if kind == "array":
        return f"list of {kind_of(spec.get('items', {}), page)}"
    if kind == "object":
        rest = spec.get("additionalProperties", spec.get("patternProperties", {}))
        value = next(iter(rest.values())) if "patternProperties" in spec else rest
        return f"map of text to {kind_of(value if isinstance(value, dict) else {}, page)}"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "null",
    }
    pattern = f" matching {code(spec['pattern'])}" if "pattern" in spec else ""
    return words.get(str(kind), "anything") + pattern


def report_page() -> str:
    page = "report-json.md"
    schema = RunResult.model_json_schema()
    return join(
        "# report.json",
        "The whole result of a run; report.html and report.md are functions of it. The JSON schema is printed by "
        f"{to('command-line.md', 'advisor result-schema', page, '`advisor result-schema`')}. Times are int64 ns; texts "
        "are objects with `en` and `zh`. The same input gives the same bytes, but for `timings`.",
        one_model("RunResult", schema, page),
        *model_sections(schema, page),
    )


def rule_file_page() -> str:
    page = "rule-file.md"
    schema = rule_schema()
    said = re.sub(r"^.*?\n\n", "", details(expression), count=1).split("\n\n")[0]
    known = sorted(units.UNITS.items(), key=lambda item: (item[1].base, item[1].factor, item[0]))
    return join(
        "# Rule files",
        "A file of YAML documents: each is a [Rule](#rule) or, with one of these keys, something that belongs to "
        "rules: `override` [changes one](#ruleoverride), `defaults` gives [parameters](#setdefaults) to all rules of "
        "the same file or folder, `zh` has the [Chinese texts](#ruletranslation) of one, `cases` "
        "[examples](#rulecases) of one, which `advisor rules test` runs. "
        f"{to('command-line.md', 'advisor rules schema', page, '`advisor rules schema`')} prints the JSON schema for "
        f"editors, {to('command-line.md', 'advisor rules check', page, '`advisor rules check`')} checks a file. "
        "[Writing a rule](../writing-a-rule.md) is the way in.",
        "What is enforced beyond the types below: every `why` has at least 10 characters; `references` and `advice` "
        "are not empty; one advice has no condition (no `when`, `unless`, `holds_for`, `hazards`), so that no finding "
        "is left without any, and the first has no hazards; a `url` and every link in a text is https; every "
        "parameter is used, and every column, parameter, rule and ledger path that is named exists. "
        "All mistakes of a file are told at once.",
        f"A file has at most {yaml_file.MAX_BYTES // 1024} kB and {yaml_file.MAX_DOCUMENTS} documents.",
        "## Conditions",
        said,
        f"At most {expression.MAX_LENGTH} characters, nested {expression.MAX_NESTING} deep. Columns are those of the "
        "rule's [advisor](index.md#advisors); a number that is compared with one in another unit of the same kind is "
        "converted when the file is read, one of another kind is an error.",
        "## Names of the profile",
        table(
            ("Name", "Type", "Unit", "Meaning"),
            ((code(f"profile.{c.name}"), c.dtype, c.unit, c.meaning) for c in PROFILE_NAMES.values()),
        ),
        "## Units",
        "What a threshold may be written in, and what conditions see. Any other unit is its own base and converts into "
        "nothing.",
        table(("Unit", "Base unit", "Factor"), ((code(n), code(u.base), str(u.factor)) for n, u in known)),
        "## Placeholders",
        "`{{ name }}` shows a column, `params.NAME` or `profile.NAME` in its most readable unit; `{{ name | unit }}` "
        f"in a chosen one: {', '.join(map(code, template.UNIT_FILTERS))}; `raw` is the bare number, `code` code font; "
        "`plural('row is', 'rows are')` the words that fit the number, for English. "
        f"A text has at most {template.MAX_LENGTH} characters, a value put in at most {template.MAX_VALUE_LENGTH}.",
        details(template).split("\n\n")[1],
        *model_sections(schema, page),
    )


# --- all of it


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
                "[Rule files](rule-file.md): fields, conditions, units, placeholders",
                "[Facts](facts.md): what is derived from a profile",
                "[Names](names/index.md): every API, variable, option, flag and command that a text names",
                "[Tables](tables.md): what is read, from which file, and which option of the profiler writes it",
            ]
        ),
        "## Rules",
        table(
            ("Rule", "Name", "Judges", "In order means"),
            (
                (catalogue.rule(r.id, page), r.rule.name, catalogue.advisor(r.rule.advisor, page), told(r.good))
                for r in rules
            ),
        ),
        "## Advisors",
        table(
            ("Advisor", "Measures", "Scope"),
            ((catalogue.advisor(name, page), advisor.meaning, advisor.scope.value) for name, advisor in advisors),
        ),
    )


def pages() -> Pages:
    """Every page of the reference. Only what npu-advisor itself brings: other plugins have their own reference."""
    points = metadata.distribution("npu-advisor").entry_points.select(group=hookspecs.GROUP)
    os.environ[ONLY] = ",".join(point.name for point in points)
    host = load_host()
    failed = [plugin for plugin in host.plugins if plugin.problem]
    if failed:
        sys.exit("\n".join(f"plugin {plugin.name}: {plugin.problem}" for plugin in failed))
    catalogue = Catalogue(host, list(rule_book(host, RunOptions())))
    return {
        "index.md": index_page(catalogue),
        "command-line.md": command_line(),
        "facts.md": facts_page(catalogue),
        "tables.md": tables_page(catalogue),
        "report-json.md": report_page(),
        "rule-file.md": rule_file_page(),
        **rule_pages(catalogue),
        **name_pages(host.name_book()),
        **advisor_pages(catalogue),
    }


def write(target: Path, wanted: Pages) -> None:
    """The pages and nothing else below ``target``."""
    shutil.rmtree(target, ignore_errors=True)
    for name, text in wanted.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def differences(target: Path, wanted: Pages) -> list[str]:
    """Pages that are missing, left over or different below ``target``."""
    found = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    return sorted(
        name
        for name in found | set(wanted)
        if name not in wanted or name not in found or (target / name).read_text(encoding="utf-8") != wanted[name]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes docs/reference/ from the code.")
    parser.add_argument("--check", action="store_true", help="compare only; 1 where a page differs")
    parser.add_argument("--target", type=Path, default=TARGET, help="another folder")
    arguments = parser.parse_args()
    wanted = pages()
    if not arguments.check:
        write(arguments.target, wanted)
        sys.stdout.write(f"{len(wanted)} pages in {arguments.target}\n")
    elif different := differences(arguments.target, wanted):
        sys.exit(f"docs/reference/ is not what the code says; run `make docs`: {', '.join(different)}")


if __name__ == "__main__":
    main()
