"""report.json as input of other commands, and ``advisor result-schema``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor_core.cli.console import EXIT_INPUT, stop

if TYPE_CHECKING:
    from advisor_core.result.run import RunResult


def read_result(path: Path) -> RunResult:
    """The result in a report.json; stops with exit code 3 where it is none of this version."""
    from pydantic import ValidationError

    from advisor_core.result.run import RunResult

    try:
        return RunResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        stop(EXIT_INPUT, f"{path} is not a report.json of this version: {error.errors()[0]['msg']}")


@click.command(name="result-schema")
def result_schema() -> None:
    """Print the JSON schema of report.json, for programs that read it."""
    import json

    from advisor_core.result.run import RunResult

    click.echo(json.dumps(RunResult.model_json_schema(), indent=2, ensure_ascii=False))
