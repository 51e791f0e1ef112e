"""``report.json`` read back."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from advisor_core.result.run import RunResult

_HEAD = 256
"""Bytes in which the first key of a report.json stands."""


class ResultFileError(ValueError):
    """A file is no report.json of this version; the message names it and says what is wrong."""


def read_result(path: Path) -> RunResult:
    """The result in a report.json. Raises `ResultFileError`, and OSError for a file that cannot be read."""
    try:
        return RunResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]["msg"]
        raise ResultFileError(f"{path} is not a report.json of this version: {first}") from None


def is_result(path: Path) -> bool:
    """Whether a path is a file that begins as a report.json does, and not a trace that is JSON, too."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n{").startswith(b'"schema_version"')
