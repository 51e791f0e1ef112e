"""``advisor rules``: look at rules, and check your own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from advisor_core.cli.console import EXIT_FINDINGS, EXIT_USAGE, say, stop
from advisor_core.cli.options import ruleset_option
from advisor_core.cli.settings import rule_options, settings_options


@click.group()
def rules() -> None:
    """Look at rules, and check your own."""


@rules.command("list")
@ruleset_option
@settings_options()
def list_rules(rulesets: tuple[Path, ...]) -> None:
    """One line per rule: id, name, set, advisor, and what it says of a profile that is in order."""
    for compiled in _book(rulesets):
        rule = compiled.rule
        say(f"{rule.id:7} {rule.name:44} {compiled.ruleset:8} {rule.advisor:36} {compiled.good_text({}).en}")


@rules.command()
@click.argument("rule")
@ruleset_option
@settings_options()
def show(rule: str, rulesets: tuple[Path, ...]) -> None:
    """Print a rule: its condition, thresholds with their origin, advice and sources."""
    from advisor_core.contracts.problems import RuleFileError
    from advisor_core.rules.show import describe

    book = _book(rulesets)
    try:
        chosen = book.select((rule,))
    except RuleFileError as error:
        stop(EXIT_USAGE, str(error))
    say("\n\n".join(describe(compiled) for compiled in chosen))


@rules.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: for programs.",
)
def check(path: Path, form: str) -> None:
    """Check rule files: every problem with its file, line and column."""
    import dataclasses
    import json

    from advisor_core.plugins.host import load_host
    from advisor_core.rules.files.check import check_rules

    host = load_host()
    base = list(host.rulesets.values())
    registered = any(ruleset.names and path.resolve().is_relative_to(ruleset.root) for ruleset in base)
    problems = check_rules(
        [path],
        host.advisors,
        base,
        host.name_book(),
        paths_of_ledger=host.ledger_paths,
        vendors=host.vocabularies,
        own=registered,
        trusted=host.checked_rulesets,
    )
    if form == "json":
        say(json.dumps([dataclasses.asdict(problem) for problem in problems], indent=2, ensure_ascii=False))
    else:
        for problem in problems:
            say(problem, err=True)
    if any(problem.severity == "error" for problem in problems):
        sys.exit(EXIT_FINDINGS)
    if form == "text":
        say(f"{path}: no errors")


@rules.command("test")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def test_rules(path: Path) -> None:
    """Run the cases of rules: every row that is judged otherwise than its case expects."""
    from advisor_core.testing.rule_cases import check_cases

    report = check_cases(path)
    for problem in report.problems:
        say(problem, err=True)
    if report.without:
        say(f"without cases: {', '.join(report.without)}", err=True)
    if report.problems:
        sys.exit(EXIT_FINDINGS)
    say(f"{path}: {report.cases} cases of {report.rules} rules hold")


@rules.command("new")
@click.argument("advisor")
@click.option(
    "--id", "rule", default="MY001", show_default=True, help="Id of the rule: a prefix of your own and a number."
)
@click.option(
    "-o",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to write it.  [default: the working directory]",
)
def new_rule(advisor: str, rule: str, folder: Path) -> None:
    """Write the beginning of a rule for an advisor, and a case for it."""
    import re

    from advisor_core.contracts.problems import nearest
    from advisor_core.plugins.host import load_host
    from advisor_core.rules.files.scaffold import cases_file, rule_file

    known = load_host().advisors
    if advisor not in known:
        stop(EXIT_USAGE, f"no advisor {advisor!r} ({nearest(advisor, known) or 'see advisor advisors list'})")
    if not re.fullmatch(r"[A-Z]{2,5}\d{3}", rule):
        stop(EXIT_USAGE, f"{rule!r} is not an id such as MY001")
    for path, text in (
        (folder / f"{rule}.yaml", rule_file(known[advisor], rule)),
        (folder / "cases" / f"{rule}.yaml", cases_file(known[advisor], rule)),
    ):
        if path.exists():
            stop(EXIT_USAGE, f"{path} exists already")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        say(path)


@rules.command()
def schema() -> None:
    """Print the JSON schema of a rule document, for editors."""
    import json

    from advisor_core.rules.files.schema import rule_schema

    say(json.dumps(rule_schema(), indent=2, ensure_ascii=False))


def _book(rulesets: tuple[Path, ...]) -> Any:
    from advisor_core.contracts.problems import RuleFileError
    from advisor_core.run.prepared import own_problems, prepared

    options = rule_options(rulesets)
    try:
        problems = own_problems(options)
        book = prepared(options)[1]
    except RuleFileError as error:  # a threshold of the settings that is unknown, or no number
        stop(EXIT_USAGE, str(error))
    if problems:
        stop(EXIT_USAGE, "\n".join(map(str, problems)))
    return book
