"""The names of several registry files as one book."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import ValidationError

from advisor_core.contracts.problems import Problem
from advisor_core.names.mentions import mentions
from advisor_core.names.model import Framework, Name, Software
from advisor_core.names.settings import Setting
from advisor_core.text.base import Text
from advisor_core.text.messages import message
from advisor_core.text.packaged import yaml_beside

_VERSIONED = ("extension", "hdk")
"""Software with versions and without names: the releases of Ascend Extension for PyTorch, and the driver package."""


@dataclass(frozen=True)
class NameBook:
    """``software``: the files as read. ``owners``: every name and alias to the software that has it. ``problems``: why
    files, or names of them, were left out."""

    software: tuple[Software, ...] = ()
    names: Mapping[str, Name] = field(default_factory=dict)
    owners: Mapping[str, Software] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def __iter__(self) -> Iterator[Name]:
        return (name for software in self.software for name in software.names)

    def __len__(self) -> int:
        return sum(len(software.names) for software in self.software)

    def get(self, spelling: str) -> Name | None:
        """The entry with this name or alias; a method by its last part (``loss.detach``: ``.detach``), and an API or
        option by the last part of its name, where no other has the same. A leading ``+``, by which Hydra adds a key to
        a configuration, does not belong to the name."""
        spelling = spelling.removeprefix("+")
        entry = self.names.get(spelling)
        if entry is None and "." in spelling:
            entry = self.names.get(f".{spelling.rpartition('.')[2]}")
        return entry or self._tails.get(spelling)

    @functools.cached_property
    def _tails(self) -> Mapping[str, Name]:
        """Last parts of dotted names that only one entry has."""
        tails: dict[str, list[Name]] = {}
        for entry in self:
            _, dot, tail = entry.name.rpartition(".")
            if dot and entry.kind in ("api", "option"):
                tails.setdefault(tail, []).append(entry)
        return {tail: entries[0] for tail, entries in tails.items() if len(entries) == 1}

    def title_of(self, software: str) -> Text:
        """The title of a software, or of a part with a version of its own (``extension``, ``hdk``); its key where
        nothing is known of it."""
        if software in _VERSIONED:
            return message(f"advice.version_of.{software}")
        title = next((item.title for item in self.software if item.software == software), software)
        return Text(en=title, zh=title)

    def frameworks_of(self, text: str) -> set[Framework]:
        """The frameworks whose APIs, or members of whose enumerations, a text names."""
        entries = [self.get(mention.name) for mention in mentions(text)]
        owners = [self.owners[entry.name] for entry in entries if entry is not None and self._is_code(entry)]
        return {owner.framework for owner in owners if owner.framework is not None}

    def _is_code(self, entry: Name) -> bool:
        """Whether only a program can name it: an API, or a value that belongs to one, such as a member of an
        enumeration."""
        if entry.kind == "value":
            whole = self.names.get(entry.name.rpartition(".")[0])
            return whole is not None and whole.kind == "api"
        return entry.kind == "api"

    def setting(self, name: str, value: str) -> Setting:
        """A setting with what the registry knows of it; names that are not in it have no default and no list."""
        entry = self.names.get(name)
        if entry is None:
            return Setting(name, value)
        return Setting(name, value, default=entry.default, separator=entry.list_)

    def excluded_by(self, used: Iterable[str]) -> tuple[str, ...]:
        """Names that must not be combined with the names or ``NAME=VALUE`` in ``used``, by the registry."""
        found: dict[str, None] = {}
        for item in used:
            name, _, value = item.partition("=")
            entry = self.names.get(item) or self.names.get(name)
            if entry is None:
                continue
            option = value.partition(":")[0]
            for key in dict.fromkeys(("*", value, option)):
                found.update(dict.fromkeys(entry.excludes.get(key, ())))
        return tuple(found)


@functools.cache
def load_names(folders: tuple[Path, ...]) -> NameBook:
    """The registry files (``*.yaml``) in the folders. What is wrong is left out and told in the book's ``problems``."""
    problems: list[Problem] = []
    read: list[Software] = []
    for file in (file for folder in folders for file in sorted(folder.glob("*.yaml"))):
        try:
            read.append(Software.model_validate(yaml_beside(file)))
        except yaml.YAMLError as error:
            problems.append(Problem(file.name, 0, 0, f"is not YAML: {error}"))
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                place = ".".join(str(step) for step in detail["loc"])
                problems.append(Problem(file.name, 0, 0, f"{place}: {detail['msg']}"))
    names: dict[str, Name] = {}
    owners: dict[str, Software] = {}
    for software in read:
        for entry in software.names:
            for spelling in (entry.name, *entry.aliases):
                if spelling in names:
                    where = f"also stands in the names of {owners[spelling].software}"
                    problems.append(Problem(software.software, 0, 0, f"{spelling!r} {where}"))
                    continue
                names[spelling], owners[spelling] = entry, software
    return NameBook(tuple(read), names, owners, tuple(problems))
