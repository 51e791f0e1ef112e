"""A TOML file as a document whose keys have places, so that a mistake is told with its line.

``tomllib`` gives no places. A statement of TOML (a heading, or a key and its value, over as many lines as it takes) is
a document by itself, and its beginning is none: so the statements are told by reading.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from advisor_core.contracts.problems import Problem, RuleFileError
from advisor_core.rules.files.yaml_file import Document, KeyPath, Place

MAX_BYTES = 1024 * 1024
"""A settings file is read on each run: nobody writes more than this by hand."""

_WHERE = re.compile(r"(?P<said>.*?) \(at (line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL)

_ENDS = ("]", "}", '"""', "'''")
"""One of these stands in the last line of a statement that has several."""


def read_toml(path: Path, table: KeyPath = ()) -> Document | None:
    """The file, or the table at this path of it; ``None`` where the file has no such table. Raises `RuleFileError`."""
    text = _text(path)
    try:
        data: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleFileError([_not_toml(path, text, str(error))]) from None
    except RecursionError:
        raise RuleFileError([Problem(str(path), 0, 0, "is nested too deeply")]) from None
    for step in table:
        data = data.get(step) if isinstance(data, dict) else None
    if data is None:
        return None
    keys = {found[len(table) :]: place for found, place in key_places(text).items() if found[: len(table)] == table}
    first = keys.pop((), (1, 1))
    # By way of JSON: a date of TOML is text to whoever wrote it, and no value of a setting.
    plain = json.loads(json.dumps(data, default=str))
    values = {found: _of(found, keys, first) for found in _paths(plain, ())}
    return Document(str(path), plain, first[0], keys, values, text.split("\n"))


def key_places(text: str) -> dict[KeyPath, Place]:
    """Line and column (from 1) of each key and heading of a text that is TOML; of several the first."""
    found: dict[KeyPath, Place] = {}
    heading: KeyPath = ()
    for line, statement in _statements(text):
        data = tomllib.loads(statement)
        place = (line, len(statement) - len(statement.lstrip()) + 1)
        is_heading = statement.lstrip().startswith("[")
        if is_heading:
            heading = next(_chain(data))
        for path in _paths(data, ()):
            whole = path if is_heading else (*heading, *path)
            if whole:
                found.setdefault(whole, place)
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The line of each statement, and the statement; empty lines and comments count as such."""
    begun, statement = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        if statement:
            statement += f"\n{line}"
        else:
            begun, statement = number, line
        if begun < number and not any(end in line for end in _ENDS):
            continue  # saves reading a long list once per line
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        yield begun, statement
        statement = ""


def _chain(data: Mapping[str, Any]) -> Iterator[KeyPath]:
    """The path of a heading, which is a table of one key in a table of one key."""
    path: KeyPath = ()
    inner: Any = data
    while isinstance(inner, dict | list) and inner:
        key: str | int = 0 if isinstance(inner, list) else next(iter(inner))
        path, inner = (*path, key), inner[key]  # type: ignore[index]  # the key is of its kind
    yield path


def _paths(data: Any, path: KeyPath) -> Iterator[KeyPath]:
    """The paths of a value and of all that is in it."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _paths(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _paths(value, (*path, index))


def _of(path: KeyPath, keys: Mapping[KeyPath, Place], first: Place) -> Place:
    """The place of the key that a value stands behind."""
    while path and path not in keys:
        path = path[:-1]
    return keys[path] if path else first


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RuleFileError([Problem(str(path), 0, 0, f"cannot be read: {error.strerror or error}")]) from None
    if len(raw) > MAX_BYTES:
        raise RuleFileError([Problem(str(path), 0, 0, f"is larger than {MAX_BYTES >> 10} KiB")])
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise RuleFileError([Problem(str(path), line, 1, "is not UTF-8")]) from None


def _not_toml(path: Path, text: str, said: str) -> Problem:
    found = _WHERE.fullmatch(said)
    if found is None:
        return Problem(str(path), 0, 0, f"is not TOML: {said}")
    line = int(found["line"] or text.count("\n") + 1)
    return Problem(str(path), line, int(found["column"] or 1), f"is not TOML: {found['said']}")
