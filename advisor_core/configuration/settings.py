"""The settings of a project: which files they are read from, and what each of them says.

The folder nearest to the working directory, upwards, that has ``advisor.toml`` or a ``pyproject.toml`` with
``[tool.npu-advisor]`` has the settings; where it has both, a key of the first hides the key of the second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from advisor_core.configuration.model import Configuration
from advisor_core.contracts.problems import Problem, RuleFileError

if TYPE_CHECKING:
    from advisor_core.rules.files.yaml_file import Document

# What reads and checks a file is imported when there is one: most commands are run without.

KeyPath = tuple[str | int, ...]

OWN_FILE, SHARED_FILE = "advisor.toml", "pyproject.toml"
TABLE: KeyPath = ("tool", "npu-advisor")


@dataclass(frozen=True)
class Place:
    """The place that gives a value: file, and line and column from 1."""

    file: Path
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}"


@dataclass(frozen=True)
class Settings:
    """``values``: what holds, defaults where nothing is given, which are right without being checked. ``places``: key,
    and name below it for thresholds and rules, to where it is given. ``files``: those that give something, the stronger
    first."""

    values: Configuration = field(default_factory=Configuration.model_construct)
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    files: Sequence[Path] = ()

    def given(self, key: str) -> Place | None:
        """The place that gives a key; ``None`` where its default holds."""
        return self.places.get((key,))

    def path(self, key: str, name: str) -> Path:
        """A path that the value of a key names: relative to the folder of the file that gives it."""
        place = self.given(key)
        return (place.file.parent if place else Path()) / Path(name).expanduser()


def find_settings(folder: Path) -> Settings:
    """The settings for work in a folder. Raises `RuleFileError` with the mistakes of the files."""
    for above in (folder, *folder.parents):
        documents = []
        for name, table in ((OWN_FILE, ()), (SHARED_FILE, TABLE)):
            if (above / name).is_file() and (document := _read(above / name, table)) is not None:
                documents.append(document)
        if documents:
            return _settings(documents)
    return Settings()


def read_settings(file: Path) -> Settings:
    """The settings of one file: all of it, or ``[tool.npu-advisor]`` of one that is called ``pyproject.toml``. Raises
    `RuleFileError`."""
    document = _read(file, TABLE if file.name == SHARED_FILE else ())
    return Settings() if document is None else _settings([document])


def _read(file: Path, table: KeyPath) -> Document | None:
    from advisor_core.configuration.toml_file import read_toml

    return read_toml(file, table)


def _settings(documents: Sequence[Document]) -> Settings:
    """The settings of files, the strongest first."""
    problems = [problem for document in documents for problem in _problems(document)]
    if problems:
        raise RuleFileError(problems)
    data: dict[str, Any] = {}
    places: dict[KeyPath, Place] = {}
    for document in documents:
        file = Path(document.file).absolute()
        for key, value in document.data.items():
            if key not in data:
                data[key] = value
                own = (path for path in document.values if path[:1] == (key,))
                places |= {path: Place(file, *document.values[path]) for path in own}
    return Settings(_validated(data), places, [Path(document.file).absolute() for document in documents])


def _problems(document: Document) -> Sequence[Problem]:
    from advisor_core.rules.files.documents import mistakes

    if not isinstance(document.data, dict):
        return [document.problem((), "expected a table of settings")]
    try:
        _validated(document.data)
    except ValidationError as error:
        return list(mistakes(document, Configuration, error))
    return []


def _validated(data: dict[str, Any]) -> Configuration:
    # By way of JSON, where pydantic's strict mode accepts a list for a tuple and still nothing else.
    return Configuration.model_validate_json(json.dumps(data), strict=True)
