"""``advisor baseline``: accept the findings of a run, so that a gate asks for new ones only."""

from __future__ import annotations

from pathlib import Path

import click

from advisor_core.cli.console import EXIT_USAGE, epilog, stop, tell
from advisor_core.cli.result_file import read_result


@click.group(epilog=epilog())
def baseline() -> None:
    """Keep the step and the findings of a run that a team has accepted.

    `advisor run --baseline` and `advisor compare` hold a later run against it.
    """


@baseline.command(epilog=epilog())
@click.argument("result", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="RESULT.json")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--history", is_flag=True, help="Only add the run to the history of FILE: what it accepts stays.")
def write(result: Path, file: Path, history: bool) -> None:
    """Write the step and the findings of RESULT.json, the report.json of a run, to the YAML file FILE.

    Where FILE exists, reasons and expiry of findings that are still there are kept. People fill in `reason`, why a
    finding may stay, and `expires`, the day (YYYY-MM-DD) from which it counts as new again.
    """
    from advisor_core.compare.match import whole
    from advisor_core.gates.baseline import BaselineError, baseline_of, baseline_text, read_baseline, with_run
    from advisor_core.text.whole_file import write_whole

    loaded = read_result(result)
    try:
        earlier = read_baseline(file) if file.exists() else None
        if history:
            if earlier is None:
                raise BaselineError(f"{file} does not exist: write it without --history first")
            longer = with_run(earlier, loaded)
            write_whole(file, baseline_text(longer).encode("utf-8"))
            tell(f"{file}: runs: {len(longer.runs())}")
            return
        steps = [] if loaded.profile.apart else [round(ns) for _, ns in whole(loaded).steps]
        write_whole(file, baseline_text(baseline_of(loaded, earlier, steps)).encode("utf-8"))
    except BaselineError as error:
        stop(EXIT_USAGE, str(error))
    except OSError as error:
        stop(EXIT_USAGE, f"cannot write {file}: {error.strerror or error}")
    known = {finding.fingerprint for finding in loaded.findings}
    gone = sum(entry.fingerprint not in known for entry in earlier.findings) if earlier else 0
    tell(f"{file}: findings: {len(known)}" + (f", taken out as they are gone: {gone}" if gone else ""))
