"""The command line (contract 1). Thin: every command imports what it needs when it runs, so that ``--help`` is fast."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from advisor_core.result.run import RunResult
    from advisor_core.text.base import Scalar

EXIT_FINDINGS, EXIT_USAGE, EXIT_INPUT, EXIT_INTERNAL = 1, 2, 3, 4
EXIT_CODES = {
    0: "it ran",
    EXIT_FINDINGS: "it ran: a finding at or above --fail-on, or (rules check) a mistake in a rule file",
    EXIT_USAGE: "wrong usage: an option, a rule or a path that does not exist or does not fit",
    EXIT_INPUT: "the input cannot be used; the message names the file and says why",
    EXIT_INTERNAL: "internal error; with --fail-on also a rule or plugin that crashed: there is no verdict",
}
"""What the exit code of every command means."""
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


def _epilog() -> str:
    # \b keeps click from filling the lines.
    return "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items())


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_epilog())
@click.version_option(metadata.version("npu-advisor"), prog_name="advisor")
@click.option("--no-plugins", is_flag=True, help="Start with what npu-advisor brings, and no other plugin.")
@click.option("--debug", is_flag=True, help="Print the traceback of a rule or plugin that raises.")
def cli(no_plugins: bool, debug: bool) -> None:
    """Works out where the time of an NPU step went and what to change, with the evidence."""
    # In the environment, so that the processes that read ranks do the same.
    if no_plugins:
        from advisor_core.plugins.host import ONLY, own_plugins

        os.environ[ONLY] = ",".join(own_plugins())
    if debug:
        from advisor_core.plugins.crash import DEBUG

        os.environ[DEBUG] = "1"


@cli.command(epilog=_epilog())
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("-o", "--output", type=click.Path(path_type=Path), help=f"Folder for the report [{DEFAULT_OUTPUT}].")
@click.option(
    "--format",
    "formats",
    multiple=True,
    callback=_split,
    metavar="NAME,...",
    help="What to write: html, md, json [all].",
)
@click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of report and summary.",
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
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="ID.param=VALUE",
    help="Change a threshold, in the unit of the rule.",
)
@click.option("--rank", type=int, help="Read only this rank.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="NAME",
    help="Read only this role of a reinforcement learning job: a directory below PATH, such as actor_update; may be "
    "repeated.",
)
@click.option(
    "--phase-mark",
    "phase_marks",
    multiple=True,
    metavar="TEXT=PHASE",
    help="Marks in the trace whose names have TEXT in them are the phase PHASE of an iteration, such as "
    "my_generate=rollout; may be repeated.",
)
@click.option("--step", type=int, help="Look only at this step, by the id that the profile gives it.")
@click.option("--jobs", type=click.IntRange(1), help="Processes that read ranks at the same time [as many as pay].")
@click.option(
    "--fail-on",
    type=click.Choice(["high", "medium", "low"]),
    help="Exit with 1 at a finding of this severity or above.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Leave out home directories, names of users and hosts, and private addresses, before a report goes to others.",
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
    roles: tuple[str, ...],
    phase_marks: tuple[str, ...],
    step: int | None,
    jobs: int | None,
    fail_on: str | None,
    redact: bool,
) -> None:
    """Analyse the profile at PATH and write a report.

    PATH is a *_ascend_pt or *_ascend_ms directory, its ASCEND_PROFILER_OUTPUT, a PROF_* directory of msprof, a
    directory above several of them (a job with several ranks), or a single file of a known kind. Where every role of a
    reinforcement learning job has a directory of its own below PATH, they are the roles of one report; --role chooses
    some of them. The report goes to ./advisor-report unless -o says otherwise; the input is never written to.
    """
    from advisor_core.contracts.problems import RuleFileError
    from advisor_core.contracts.profile import InputError, RoleError
    from advisor_core.run.pipeline import StepError
    from advisor_core.run.pipeline import run as run_engine
    from advisor_core.run.rank import RunOptions, own_problems

    target = output or DEFAULT_OUTPUT
    _refuse_inside(target, paths)
    options = RunOptions(
        rulesets=tuple(path.resolve() for path in rulesets),
        select=select,
        ignore=ignore,
        overrides=tuple(_override(setting) for setting in settings),
        step=step,
        phase_marks=tuple(_phase_mark(mark) for mark in phase_marks),
    )
    try:
        renderers = _renderers(formats)
        tell = _tell_rank if redact else _tell
        result = run_engine(paths, options, rank=rank, roles=roles, jobs=jobs, progress=tell)
    except InputError as error:
        _stop(EXIT_INPUT, str(error))
    except (RuleFileError, StepError, RoleError) as error:
        _stop(EXIT_USAGE, str(error))
    if redact:
        from advisor_core.result.redact import redact as redacted

        result = redacted(result)
    written, failed = _write(result, renderers, target, lang)
    for diagnostic in result.diagnostics:
        if diagnostic.severity != "info" and diagnostic.about == "input":
            where = f"{diagnostic.role}, {diagnostic.source}" if diagnostic.role else diagnostic.source
            _tell(f"{diagnostic.severity}: {where}: {diagnostic.message.of(lang)}")
    for left in _earlier(target, written):
        _tell(f"warning: {left} is of an earlier run and was not written anew")
    click.echo(_summary(result, lang, written))
    if failed:
        _stop(EXIT_INTERNAL, "\n".join(failed))
    if problems := own_problems(options):
        _stop(EXIT_USAGE, "\n".join(map(str, problems)))
    crashed = _crashed(result, lang)
    for line in crashed:
        _tell(f"error: {line}")
    if fail_on is not None and crashed:
        _stop(EXIT_INTERNAL, "a rule or plugin crashed, so that there is no verdict (--debug prints the traceback)")
    if fail_on is not None and _reaches(result, fail_on):
        sys.exit(EXIT_FINDINGS)


def _renderers(formats: tuple[str, ...]) -> list[Any]:
    from advisor_core.run.rank import RunOptions, prepared

    known = prepared(RunOptions())[0].renderers
    chosen = formats or tuple(known)
    for name in chosen:
        if name not in known:
            _stop(EXIT_USAGE, f"--format {name!r} is not known; there are {', '.join(known)}")
    return [known[name] for name in chosen]


def _write(result: RunResult, renderers: list[Any], target: Path, lang: str) -> tuple[list[Path], list[str]]:
    """The files that were written, and what went wrong with those that a renderer could not give."""
    written, failed = [], []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for renderer in renderers:
            try:
                text = str(renderer.render(result, lang)).encode("utf-8")
            except Exception as error:
                failed.append(f"the format {renderer.name} could not be written: {type(error).__name__}: {error}")
                continue
            path = target / renderer.filename
            _replace(path, text)
            written.append(path)
    except OSError as error:
        _stop(EXIT_USAGE, f"cannot write the report to {target}: {error.strerror or error}")
    return written, failed


def _earlier(target: Path, written: list[Path]) -> list[Path]:
    """Reports of other formats in the folder, which this run did not write."""
    from advisor_core.run.rank import RunOptions, prepared

    names = {renderer.filename for renderer in prepared(RunOptions())[0].renderers.values()}
    return sorted(target / name for name in names if (target / name) not in written and (target / name).is_file())


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and never through a link into what it points at."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _summary(result: RunResult, lang: str, written: list[Path]) -> str:
    """The summary of the first renderer that has one for a terminal, or just where the report is."""
    from advisor_core.run.rank import RunOptions, prepared

    for renderer in prepared(RunOptions())[0].renderers.values():
        summarise = getattr(renderer, "summary", None)
        if summarise is not None:
            return str(summarise(result, lang, written))
    return "\n".join(map(str, written))


def _crashed(result: RunResult, lang: str) -> list[str]:
    """What did not judge because it crashed: rules, and (told as diagnostics already) plugins and rule files."""
    rules = [
        f"{outcome.rule}: {outcome.reason.of(lang)}"
        for outcome in result.rules
        if outcome.state == "error" and outcome.reason
    ]
    tools = [f"{found.source}: {found.message.of(lang)}" for found in result.diagnostics if found.about == "tool"]
    return [*dict.fromkeys(rules), *tools]


def _reaches(result: RunResult, severity: str) -> bool:
    from advisor_core.result.finding import SEVERITIES

    limit = [*SEVERITIES].index(severity)  # type: ignore[arg-type]
    return any(SEVERITIES.index(finding.severity) <= limit for finding in result.findings)


def _refuse_inside(target: Path, paths: tuple[Path, ...]) -> None:
    """The report never goes into the input."""
    resolved = os.path.realpath(target)
    for path in paths:
        if Path(resolved).is_relative_to(os.path.realpath(path)):
            _stop(
                EXIT_USAGE,
                f"the report would be written into the input: {target} is inside {path}; choose another place with -o",
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


def _phase_mark(mark: str) -> tuple[str, str]:
    text, separator, phase = (part.strip() for part in mark.rpartition("="))
    if not (text and separator and phase):
        _stop(EXIT_USAGE, f"--phase-mark takes TEXT=PHASE, not {mark!r}")
    return text, phase


def _tell(text: str) -> None:
    """A line on stderr."""
    click.echo(_printable(text), err=True)


def _tell_rank(text: str) -> None:
    """What is being read, without where it lies."""
    _tell(text.partition(":")[0])


def _printable(text: str) -> str:
    """``text``, which quotes names of files and of kernels, without what steers a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _stop(code: int, message: str) -> NoReturn:
    _tell(f"advisor: {message}")
    sys.exit(code)


@cli.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--scenario", default="transformer-training", show_default=True, help="What to write; see --list.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed gives other durations.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "db"]),
    default="text",
    show_default=True,
    help="Kind of export.",
)
@click.option(
    "--level",
    type=click.Choice(["level_none", "level0", "level1", "level2"]),
    default="level1",
    show_default=True,
    help="Profiler level: what the profile records.",
)
@click.option(
    "--headers",
    type=click.Choice(["2024", "2025"]),
    help="Generation of the export: names of lanes and columns [that of the scenario].",
)
@click.option("--discrete", is_flag=True, help="A profile per role of a job of reinforcement learning.")
@click.option(
    "--list",
    "list_",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda c, p, v: _scenarios(c, v),
    help="Name the scenarios and stop.",
)
def sample(
    directory: Path,
    scenario: str,
    seed: int,
    format_: str,
    level: Literal["level_none", "level0", "level1", "level2"],
    headers: Literal["2024", "2025"] | None,
    discrete: bool,
) -> None:
    """Write a realistic profile with known problems into DIRECTORY."""
    from advisor_core.sample import write_sample

    if directory.exists() and any(directory.iterdir()):
        _stop(EXIT_USAGE, f"{directory} is not empty")
    try:
        written = write_sample(
            directory,
            scenario=scenario,
            seed=seed,
            format=format_,
            level=level,
            headers=headers,
            discrete=discrete,
        )
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
    """One line per rule: id, name, advisor, and what it says of a profile that is in order."""
    for compiled in _book(rulesets):
        rule = compiled.rule
        click.echo(f"{rule.id:7} {rule.name:44} {rule.advisor:36} {compiled.good_text({}).en}")


@rules.command()
@click.argument("rule")
@_rule_options
def show(rule: str, rulesets: tuple[Path, ...]) -> None:
    """Print a rule: its condition, thresholds with their origin, advice and sources."""
    from advisor_core.contracts.problems import RuleFileError
    from advisor_core.rules.show import describe

    book = _book(rulesets)
    try:
        chosen = book.select((rule,))
    except RuleFileError as error:
        _stop(EXIT_USAGE, str(error))
    click.echo("\n\n".join(describe(compiled) for compiled in chosen))


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
    installed = host.rulesets.values()
    base = [ruleset.root for ruleset in installed]
    registered = any(ruleset.names and path.resolve().is_relative_to(ruleset.root) for ruleset in installed)
    problems = check_rules([path], host.advisors, base, host.name_book(), all_names=registered)
    if form == "json":
        click.echo(json.dumps([dataclasses.asdict(problem) for problem in problems], indent=2, ensure_ascii=False))
    else:
        for problem in problems:
            click.echo(problem, err=True)
    if any(problem.severity == "error" for problem in problems):
        sys.exit(EXIT_FINDINGS)
    if form == "text":
        click.echo(f"{path}: no errors")


@rules.command()
def schema() -> None:
    """Print the JSON schema of a rule document, for editors."""
    import json

    from advisor_core.rules.files.schema import rule_schema

    click.echo(json.dumps(rule_schema(), indent=2, ensure_ascii=False))


def _book(rulesets: tuple[Path, ...]) -> Any:
    from advisor_core.run.rank import RunOptions, own_problems, prepared

    options = RunOptions(rulesets=tuple(path.resolve() for path in rulesets))
    if problems := own_problems(options):
        _stop(EXIT_USAGE, "\n".join(map(str, problems)))
    return prepared(options)[1]


@cli.group()
def advisors() -> None:
    """What is measured: the advisors whose rows rules judge."""


@advisors.command("list")
def list_advisors() -> None:
    """Name every advisor and say what it measures."""
    from advisor_core.plugins.host import load_host

    for name, advisor in sorted(load_host().advisors.items()):
        click.echo(f"{name:34} {advisor.scope.value:4} {advisor.meaning}")


@advisors.command("show")
@click.argument("name")
def show_advisor(name: str) -> None:
    """Print the columns that rules may use of an advisor: type, unit and meaning, and its parameters."""
    from advisor_core.contracts.problems import nearest
    from advisor_core.plugins.host import load_host

    known = load_host().advisors
    if name not in known:
        _stop(EXIT_USAGE, f"no advisor {name!r} {nearest(name, known)}".rstrip())
    advisor = known[name]
    about = {column.name for column in advisor.about}
    click.echo(f"{name} ({advisor.scope.value}): {advisor.meaning}")
    click.echo(f"  needs: {', '.join(advisor.needs) or 'nothing'}")
    click.echo(f"  params: {', '.join(advisor.params) or 'none'}")
    for column in advisor.declared().values():
        mark = "*" if column.name in about else " "
        click.echo(f"  {mark} {column.name:24} {column.dtype:5} {column.unit:6} {column.meaning}")
    if about:
        click.echo("  * tells one row from another")


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def plugins(as_json: bool) -> None:
    """Plugins that were found: name, version, hooks, and what went wrong with each that did not load."""
    import dataclasses
    import json

    from advisor_core.plugins.host import load_host

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
@click.argument("what", nargs=-1, required=True, metavar="WHAT")
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of the answer."
)
def explain(result: Path, what: tuple[str, ...], lang: str) -> None:
    """Show how a problem, a rule's state, a rank or a ledger entry came about.

    RESULT.json is the report.json of a run. WHAT is the number of a problem (F2, F2a), a fingerprint, a rule id or
    name, a rank (rank 3), or a ledger path such as idle/host/compile.
    """
    from advisor_core.run.explain import explain as explain_result

    loaded = _loaded(result)
    try:
        click.echo(_printable(explain_result(loaded, " ".join(what), lang)))
    except LookupError as error:
        _stop(EXIT_USAGE, str(error.args[0]))


@cli.command()
@click.argument(
    "result", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[RESULT.json]"
)
@click.option(
    "--for",
    "tool",
    type=click.Choice(["torch_npu", "verl", "vllm", "mindie", "msprof"]),
    default="torch_npu",
    show_default=True,
    help="What takes the profile.",
)
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of the comments."
)
def collect(result: Path | None, tool: Literal["torch_npu", "verl", "vllm", "mindie", "msprof"], lang: str) -> None:
    """Print the profiler configuration that answers what could not be answered.

    RESULT.json is the report.json of a run; without it the recommended configuration is printed. Every option comes
    with what it records, the rules that need it and what it costs, as comments: the output can be saved as it is.
    """
    from advisor_core.collecting.plan import plan
    from advisor_core.collecting.render import render

    click.echo(_printable(render(plan(tool, _loaded(result) if result is not None else None), lang)))


def _loaded(path: Path) -> RunResult:
    from pydantic import ValidationError

    from advisor_core.result.run import RunResult

    try:
        return RunResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        _stop(EXIT_INPUT, f"{path} is not a report.json of this version: {error.errors()[0]['msg']}")


@cli.command(name="result-schema")
def result_schema() -> None:
    """Print the JSON schema of report.json, for programs that read it."""
    import json

    from advisor_core.result.run import RunResult

    click.echo(json.dumps(RunResult.model_json_schema(), indent=2, ensure_ascii=False))


def main() -> None:
    """Entry point: whatever is not a message of ours is an internal error, with exit code 4."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a bar that the encoding of a terminal lacks is no reason to fail
    # Modules, rules and models are many small objects that live as long as the process: at its default thresholds the
    # collector walks over them for a tenth of a run, and finds nothing.
    gc.set_threshold(50_000, 20, 50)
    try:
        cli(standalone_mode=True)
    except Exception as error:
        from advisor_core.plugins.host import ShadowedError

        if isinstance(error, ShadowedError):
            _stop(EXIT_USAGE, str(error))
        import traceback

        traceback.print_exc()
        _stop(EXIT_INTERNAL, f"internal error: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
