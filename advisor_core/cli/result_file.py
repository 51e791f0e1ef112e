"""report.json as input of other commands, and ``advisor result-schema``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor_core.cli.console import EXIT_INPUT, say, stop

if TYPE_CHECKING:
    from advisor_core.result.run import RunResult


_HEAD = 256
"""Bytes in which the first key of a report.json stands."""


def read_result(path: Path) -> RunResult:
    """The result in a report.json; stops with exit code 3 where it is none of this version."""
    from pydantic import ValidationError

    from advisor_core.result.run import RunResult

    try:
        return RunResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        stop(EXIT_INPUT, f"{path} is not a report.json of this version: {error.errors()[0]['msg']}")


def is_result(path: Path) -> bool:
    """Whether a path is a file that begins as a report.json does, and not a trace that is JSON, too."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n{").startswith(b'"schema_version"')


@click.command(name="result-schema")
@click.option("--comparison", is_flag=True, help="That of compare.json instead.")
def result_schema(comparison: bool) -> None:
    """Print the JSON schema of report.json, for programs that read it."""
    import json

    from advisor_core.result.comparison import ComparisonResult
    from advisor_core.result.run import RunResult

    schema = (ComparisonResult if comparison else RunResult).model_json_schema()
    say(json.dumps(schema, indent=2, ensure_ascii=False))
