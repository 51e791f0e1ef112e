"""The command line (contract 1). Thin: every command imports what it needs when it runs, so that ``--help`` is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from advisor_core.models.base import Scalar
    from advisor_core.models.run import RunResult

EXIT_FINDINGS, EXIT_USAGE, EXIT_INPUT, EXIT_INTERNAL = 1, 2, 3, 4
DEFAULT_OUTPUT = Path("advisor-report")

_F = TypeVar("_F", bound=Callable[..., Any])


def _split(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _rule_options(command: _F) -> _F:
    ruleset = click.option(
        "--ruleset",
        "rulesets",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        help="YAML file or folder of rules that adds to or overrides the built-in ones; may be repeated.",
    )
    return ruleset(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(metadata.version("npu-advisor"), prog_name="advisor")
def cli() -> None:
    """Works out where the time of an NPU step went and what to change, with the evidence."""


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("-o", "--output", type=click.Path(path_type=Path), help=f"Folder for the report [{DEFAULT_OUTPUT}].")
@click.option("--format", "formats", multiple=True, callback=_split, help="html,md,json [all].")
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of the report."
)
@_rule_options
@click.option(
    "--select",
    multiple=True,
    callback=_split,
    metavar="ID,...",
    help="Judge only these rules (ids, names or prefixes).",
)
@click.option("--ignore", multiple=True, callback=_split, metavar="ID,...", help="Leave these rules out.")
@click.option("--set", "settings", multiple=True, metavar="ID.param=VALUE", help="Change a threshold.")
@click.option("--rank", type=int, help="Only this rank.")
@click.option("--step", type=int, help="Only this step.")
@click.option("--jobs", type=click.IntRange(1), help="Processes [as many as pay].")
@click.option(
    "--fail-on",
    type=click.Choice(["high", "medium", "low"]),
    help="Exit with 1 at a finding of this severity or above.",
)
def run(
    paths: tuple[Path, ...],
    output: Path | None,
    formats: tuple[str, ...],
    lang: str,
    rulesets: tuple[Path, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    settings: tuple[str, ...],
    rank: int | None,
    step: int | None,
    jobs: int | None,
    fail_on: str | None,
) -> None:
    """Analyse the profile at PATH and write a report.

    PATH is a *_ascend_pt directory, its ASCEND_PROFILER_OUTPUT, a directory above several of them (a job with several
    ranks), or a single file of a known kind. The report goes to ./advisor-report unless -o says otherwise; the input
    is never written to.
    """
    from advisor_core.engine import StepError
    from advisor_core.engine import run as run_engine
    from advisor_core.loaders.profile import InputError
    from advisor_core.rank_run import RunOptions
    from advisor_core.rules.problems import RuleFileError

    target = output or DEFAULT_OUTPUT
    _refuse_inside(target, paths)
    options = RunOptions(
        rulesets=tuple(path.resolve() for path in rulesets),
        select=select,
        ignore=ignore,
        overrides=tuple(_override(setting) for setting in settings),
        step=step,
    )
    try:
        renderers = _renderers(formats)
        result = run_engine(paths, options, rank=rank, jobs=jobs, progress=lambda line: click.echo(line, err=True))
    except InputError as error:
        _stop(EXIT_INPUT, str(error))
    except (RuleFileError, StepError) as error:
        _stop(EXIT_USAGE, str(error))
    written = _write(result, renderers, target, lang)
    for diagnostic in result.diagnostics:
        if diagnostic.severity != "info":
            click.echo(f"{diagnostic.severity}: {diagnostic.source}: {diagnostic.message.of(lang)}", err=True)
    click.echo(_summary(result, lang, written))
    if fail_on is not None and _reaches(result, fail_on):
        sys.exit(EXIT_FINDINGS)


def _renderers(formats: tuple[str, ...]) -> list[Any]:
    from advisor_core.rank_run import RunOptions, prepared

    known = prepared(RunOptions())[0].renderers
    chosen = formats or tuple(known)
    for name in chosen:
        if name not in known:
            _stop(EXIT_USAGE, f"--format {name!r} is not known; there are {', '.join(known)}")
    return [known[name] for name in chosen]


def _write(result: RunResult, renderers: list[Any], target: Path, lang: str) -> list[Path]:
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for renderer in renderers:
            path = target / renderer.filename
            path.write_text(renderer.render(result, lang), encoding="utf-8", newline="\n")
            written.append(path)
    except OSError as error:
        _stop(EXIT_USAGE, f"cannot write the report to {target}: {error.strerror or error}")
    return written


def _summary(result: RunResult, lang: str, written: list[Path]) -> str:
    """The summary of the first renderer that has one for a terminal, or just where the report is."""
    from advisor_core.rank_run import RunOptions, prepared

    for renderer in prepared(RunOptions())[0].renderers.values():
        summarise = getattr(renderer, "summary", None)
        if summarise is not None:
            return str(summarise(result, lang, written))
    return "\n".join(map(str, written))


def _reaches(result: RunResult, severity: str) -> bool:
    from advisor_core.models.finding import SEVERITIES

    limit = [*SEVERITIES].index(severity)  # type: ignore[arg-type]
    return any(SEVERITIES.index(finding.severity) <= limit for finding in result.findings)


def _refuse_inside(target: Path, paths: tuple[Path, ...]) -> None:
    """The report never goes into the input."""
    resolved = target.resolve()
    for path in paths:
        if path.is_dir() and resolved.is_relative_to(path.resolve()) and path.resolve() != Path.cwd().resolve():
            _stop(
                EXIT_USAGE, f"the report would be written into the input: {target} is inside {path}; choose another -o"
            )


def _override(setting: str) -> tuple[str, Scalar]:
    name, separator, text = setting.partition("=")
    if not separator or "." not in name:
        _stop(EXIT_USAGE, f"--set takes ID.param=VALUE, not {setting!r}")
    if text in ("true", "false"):
        return name.strip(), text == "true"
    for kind in (int, float):
        try:
            return name.strip(), kind(text)
        except ValueError:
            continue
    return name.strip(), text


def _stop(code: int, message: str) -> NoReturn:
    click.echo(f"advisor: {message}", err=True)
    sys.exit(code)


@cli.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--scenario", default="transformer-training", show_default=True, help="What to write; see --list.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--format", "format_", type=click.Choice(["text", "db"]), default="text", show_default=True)
@click.option(
    "--list",
    "list_",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda c, p, v: _scenarios(c, v),
    help="Name the scenarios and stop.",
)
def sample(directory: Path, scenario: str, seed: int, format_: str) -> None:
    """Write a realistic profile with known problems into DIRECTORY."""
    from advisor_core.sample import write_sample

    if directory.exists() and any(directory.iterdir()):
        _stop(EXIT_USAGE, f"{directory} is not empty")
    try:
        written = write_sample(directory, scenario=scenario, seed=seed, format=format_)
    except ValueError as error:
        _stop(EXIT_USAGE, str(error))
    for path in written:
        click.echo(path)


def _scenarios(context: click.Context, wanted: bool) -> None:
    if not wanted:
        return
    from advisor_core.sample import SCENARIOS

    for name, scenario in SCENARIOS.items():
        click.echo(f"{name:28} {scenario.description.en}")
    context.exit()


@cli.group()
def rules() -> None:
    """Look at rules, and check your own."""


@rules.command("list")
@_rule_options
def list_rules(rulesets: tuple[Path, ...]) -> None:
    """One line per rule: id, name, advisor, what it finds."""
    for compiled in _book(rulesets):
        rule = compiled.rule
        click.echo(f"{rule.id:7} {rule.name:44} {rule.advisor:36} {rule.text.good.en}")


@rules.command()
@click.argument("rule")
@_rule_options
def show(rule: str, rulesets: tuple[Path, ...]) -> None:
    """Print a rule: its condition, thresholds with their origin, advice and sources."""
    from advisor_core.rules.problems import RuleFileError
    from advisor_core.rules.show import describe

    book = _book(rulesets)
    try:
        chosen = book.select((rule,))
    except RuleFileError as error:
        _stop(EXIT_USAGE, str(error))
    click.echo("\n\n".join(describe(compiled) for compiled in chosen))


@rules.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def check(path: Path) -> None:
    """Check rule files: every problem with its file, line and column."""
    from advisor_core.host import load_host
    from advisor_core.rules.check import check_rules

    host = load_host()
    base = [ruleset.root for ruleset in host.rulesets.values()]
    problems = check_rules([path], host.advisors, base)
    for problem in problems:
        click.echo(problem, err=True)
    if any(problem.severity == "error" for problem in problems):
        sys.exit(EXIT_FINDINGS)
    click.echo(f"{path}: no errors")


@rules.command()
def schema() -> None:
    """Print the JSON schema of a rule document, for editors."""
    import json

    from advisor_core.rules.schema import rule_schema

    click.echo(json.dumps(rule_schema(), indent=2, ensure_ascii=False))


def _book(rulesets: tuple[Path, ...]) -> Any:
    from advisor_core.rank_run import RunOptions, prepared
    from advisor_core.rules.problems import RuleFileError

    try:
        return prepared(RunOptions(rulesets=tuple(path.resolve() for path in rulesets)))[1]
    except RuleFileError as error:
        _stop(EXIT_USAGE, str(error))


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def plugins(as_json: bool) -> None:
    """Plugins that were found: name, version, hooks, and what went wrong with each that did not load."""
    import dataclasses
    import json

    from advisor_core.host import load_host

    found = load_host().plugins
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(plugin) for plugin in found], indent=2))
        return
    for plugin in found:
        state = plugin.problem or ", ".join(hook.removeprefix("advisor_register_") for hook in plugin.hooks)
        mark = "FAILED" if plugin.problem else "ok"
        click.echo(f"{plugin.name:20} {plugin.distribution} {plugin.version:10} {mark:7} {state}")


@cli.command()
@click.argument("result", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="RESULT.json")
@click.argument("what", metavar="FINDING_OR_RULE")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True)
def explain(result: Path, what: str, lang: str) -> None:
    """Show how a finding, a rule's state or a ledger entry came about.

    FINDING_OR_RULE is a fingerprint, a rule id or name, or a ledger path such as idle/host/compile.
    """
    from pydantic import ValidationError

    from advisor_core.explain import explain as explain_result
    from advisor_core.models.run import RunResult

    try:
        loaded = RunResult.model_validate_json(result.read_bytes())
    except ValidationError as error:
        _stop(EXIT_INPUT, f"{result} is not a report.json of this version: {error.errors()[0]['msg']}")
    try:
        click.echo(explain_result(loaded, what, lang))
    except LookupError as error:
        _stop(EXIT_USAGE, str(error.args[0]))


@cli.command(hidden=True, name="result-schema")
def result_schema() -> None:
    """Print the JSON schema of report.json."""
    import json

    from advisor_core.models.run import RunResult

    click.echo(json.dumps(RunResult.model_json_schema(), indent=2, ensure_ascii=False))


def main() -> None:
    """Entry point: whatever is not a message of ours is an internal error, with exit code 4."""
    try:
        cli(standalone_mode=True)
    except Exception as error:
        import traceback

        traceback.print_exc()
        click.echo(f"advisor: internal error: {type(error).__name__}: {error}", err=True)
        sys.exit(EXIT_INTERNAL)


if __name__ == "__main__":
    main()
