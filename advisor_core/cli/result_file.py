"""report.json as input of other commands, and ``advisor result-schema``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor_core.cli.console import EXIT_INPUT, say, stop
from advisor_core.cli.places import content

if TYPE_CHECKING:
    from advisor_core.result.run import RunResult


def read_result(path: Path) -> RunResult:
    """The result in a report.json; stops with exit code 3 where it is none of this version."""
    from advisor_core.remote.shown import with_urls
    from advisor_core.result import result_file

    file = content(path)
    try:
        return result_file.read_result(file)
    except result_file.ResultFileError as error:
        stop(EXIT_INPUT, with_urls(str(error).replace(str(file), str(path))))


@click.command(name="result-schema")
@click.option("--comparison", is_flag=True, help="That of compare.json instead.")
def result_schema(comparison: bool) -> None:
    """Print the JSON schema of report.json, for programs that read it."""
    import json

    from advisor_core.result.comparison import ComparisonResult
    from advisor_core.result.run import RunResult

    schema = (ComparisonResult if comparison else RunResult).model_json_schema()
    say(json.dumps(schema, indent=2, ensure_ascii=False))
