"""Strict YAML: plain data that means the same to every reader, with the place of every key and value.

YAML has more than rule files need, and some of it reads differently from what it says: ``on`` is true, ``1:30`` is
90, ``010`` is 8, the last of two equal keys wins, an alias can blow up a file. All of that is an error here. What
remains is JSON's data model: mappings with text keys, sequences, text, numbers, ``true``, ``false``, ``null``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from advisor_core.contracts.problems import Problem, RuleFileError, shorten
from advisor_core.text.kept import kept

MAX_BYTES = 256 * 1024
MAX_NESTING = 20
_TOO_DEEP = f"nested deeper than {MAX_NESTING} levels"
MAX_DOCUMENTS = 500

KeyPath = tuple[str | int, ...]
Place = tuple[int, int]

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_BEGINS = {*"+-.0123456789", *(word[:1] for word in _WORDS)}
"""First characters of all the above."""
_SINGLE_LETTERS = frozenset("yYnN")
_READ_AS = {
    "bool": ("a boolean", "true or false, or "),
    "int": ("another number", "a plain decimal number, or "),
    "float": ("another number", "a plain decimal number, or "),
    "timestamp": ("a date", ""),
}


def _loader() -> Any:
    """Ten times as fast, where PyYAML was built with libyaml."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def plain_scalar(text: str) -> str | int | float | bool | None:
    """The value of a text without quotes."""
    if text[:1] not in _BEGINS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text) and len(text) <= 30:
        return int(text)
    if _FLOAT.match(text) and not re.match(r"[-+]?0[0-9]", text):
        return float(text)
    return text


@dataclass(frozen=True)
class Document:
    """One YAML document: plain ``data``, and where its parts are (1-based line and column)."""

    file: str
    data: Any
    line: int
    keys: Mapping[KeyPath, Place] = field(repr=False)
    values: Mapping[KeyPath, Place] = field(repr=False)
    source: list[str] = field(repr=False)

    def problem(
        self, path: KeyPath, message: str, hint: str = "", *, key: bool = False, offset: int | None = None
    ) -> Problem:
        """A problem with the value at ``path`` (``key``: with its key; ``offset``: so far into its text).

        A path that is not in the file, such as a key that is missing, stands for the nearest one above it.
        """
        while path not in self.values:
            path, key, offset = path[:-1], True, None
        if key:
            line, column = self.keys.get(path, self.values[path])
        elif offset is None:
            line, column = self.values[path]
        else:
            line, column = self._inside(path, offset)
        return Problem(self.file, line, column, message, hint)

    def get(self, path: KeyPath) -> Any:
        """The data at ``path``, or ``None`` if the file does not go there."""
        found = self.data
        for step in path:
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError):
                return None
        return found

    def _inside(self, path: KeyPath, offset: int) -> Place:
        """The place in the file of the character ``offset`` of the text at ``path``.

        Quoting, folding and block indentation only add white space and marks around the characters, so that walking
        both in step finds the place. Escapes break the step; then the start of the value has to do.
        """
        start = self.values[path]
        text = str(self.get(path))
        wanted = [character for character in text[: offset + 1] if not character.isspace()]
        if not text[offset : offset + 1].strip():
            wanted.append("")  # a space or the end: just behind the last character will do
        for line, column, character in self._characters(start):
            if wanted[0] in {"", character}:
                wanted = wanted[1:]
                if not wanted:
                    return line, column
            elif character:
                break
        return start

    def _characters(self, start: Place) -> Iterator[tuple[int, int, str]]:
        """The characters that are not white space from ``start`` on, without the opening quote or block mark."""
        line, column = start
        opening = self.source[line - 1][column - 1 : column]
        if opening in {"'", '"'}:
            column += 1
        elif opening in {"|", ">"}:
            line, column = line + 1, 1
        for number in range(line, len(self.source) + 1):
            row = self.source[number - 1]
            first = column if number == line else 1
            for position in range(first, len(row) + 1):
                if not row[position - 1].isspace():
                    yield number, position, row[position - 1]
            yield number, len(row) + 1, ""


def read_yaml(path: Path, name: str | None = None) -> list[Document]:
    """The documents of a file; empty ones are left out. ``name``: how messages call the file.

    Raises `RuleFileError` with everything that is wrong with the file as YAML.
    """
    shown = name or str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise RuleFileError([Problem(shown, 0, 0, f"cannot be read: {error.strerror or error}")]) from error
    if len(raw) > MAX_BYTES:
        raise RuleFileError([Problem(shown, 0, 0, f"is larger than {MAX_BYTES // 1024} kB", "split the file")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise RuleFileError([Problem(shown, line, column, "is not UTF-8")]) from error
    return parse_yaml(text, shown)


def read_trusted_yaml(path: Path, name: str) -> list[Document]:
    """The documents of one file, as `trusted_reader`."""
    return trusted_reader([path], path.name)(path, name)


def trusted_reader(paths: Sequence[Path], called: str) -> Callable[[Path, str], list[Document]]:
    """`read_yaml` for these files, which are known to read without a problem. What YAML has more than rule files need
    is not looked for, and where the parts are only when it is asked for; that takes a third of the time. What was read
    is `kept` for all files together, as ``called``."""
    contents = {path: content for path in paths if (content := _content(path)) is not None}
    read = kept(called, list(contents.values()), __file__, lambda: list(map(_trusted, contents.values())))
    found = dict(zip(contents, read, strict=True))

    def documents(path: Path, name: str) -> list[Document]:
        if (parts := found.get(path)) is None:
            return read_yaml(path, name)
        text = _text(contents[path])
        lines, places = text.split("\n"), _Places(text, name)
        return [
            Document(name, data, line, _Keys(places, number), _Values(places, number), lines)
            for number, (data, line) in enumerate(parts)
        ]

    return documents


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig").replace("\r\n", "\n")


def _trusted(content: bytes) -> list[list[Any]] | None:
    """Data and line of each document in a file that is not empty; ``None`` where it has to be read strictly."""
    # Imported where nothing is kept: to load PyYAML is a good part of a command that only asks for rules.
    from advisor_core.rules.files.trusted_yaml import nodes, plain

    try:
        read = [[plain(node, plain_scalar), node.start_mark.line + 1] for node in nodes(_text(content))]
    except (ValueError, TypeError, yaml.YAMLError):
        return None
    return [[data, line] for data, line in read if data is not None]


def parse_yaml(text: str, name: str) -> list[Document]:
    """As `read_yaml`, from text."""
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    problems = list(_characters_to_refuse(lines, name))
    if problems:
        raise RuleFileError(problems)
    reader = _Reader(name, lines)
    try:
        documents = reader.read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        reader.problems.append(Problem(name, *place, _sentence(error)))
    except yaml.YAMLError as error:
        reader.problems.append(Problem(name, 0, 0, shorten(str(error))))
    except _GiveUpError:
        pass
    if reader.problems:
        raise RuleFileError(reader.problems)
    return documents


def _sentence(error: yaml.MarkedYAMLError) -> str:
    """The parser's complaint in one line. From PyYAML 6.0.4 on it refuses deep nesting itself, far beyond our limit,
    before it gives the first event."""
    if "nesting depth" in (error.problem or ""):
        return _TOO_DEEP
    return ", ".join(part for part in (error.problem, error.context) if part) or "is not YAML"


def _characters_to_refuse(lines: list[str], name: str) -> Iterator[Problem]:
    """Tabs, control characters, and what is invisible or turns the reading direction: the file must be what it
    looks like."""
    refused = {c for c in set().union(*lines) if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp", "Cs"}}
    if not refused:
        return
    for number, line in enumerate(lines, 1):
        for column, character in enumerate(line, 1):
            if character == "\t":
                yield Problem(name, number, column, "tab character", "use spaces")
                break
            if character in refused:
                yield Problem(name, number, column, f"invisible or control character U+{ord(character):04X}")
                break


@dataclass(frozen=True)
class _Places:
    """The places of the parts of a trusted file."""

    text: str
    name: str

    @cached_property
    def documents(self) -> list[Document]:
        return parse_yaml(self.text, self.name)


@dataclass(frozen=True)
class _Keys(Mapping[KeyPath, Place]):
    """`Document.keys` of one document of a trusted file."""

    places: _Places
    number: int

    def found(self) -> Mapping[KeyPath, Place]:
        return self.places.documents[self.number].keys

    def __getitem__(self, path: KeyPath) -> Place:
        return self.found()[path]

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self.found())

    def __len__(self) -> int:
        return len(self.found())


class _Values(_Keys):
    """`Document.values` of it."""

    def found(self) -> Mapping[KeyPath, Place]:
        return self.places.documents[self.number].values


class _GiveUpError(Exception):
    """The rest of the file cannot be read in a useful way."""


class _Reader:
    """Builds documents from PyYAML's events: no constructor runs, so no tag or alias ever takes effect."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.lines = lines
        self.problems: list[Problem] = []
        self.keys: dict[KeyPath, Place] = {}
        self.values: dict[KeyPath, Place] = {}
        self.resolve: Any = yaml.SafeLoader("").resolve

    def read(self, text: str) -> list[Document]:
        documents = []
        self.events = yaml.parse(text, Loader=_loader())
        for event in self.events:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            if event.version or event.tags:
                self.refuse(event, "directives (%YAML, %TAG) are not allowed")
            self.keys, self.values = {}, {}
            first = next(self.events)
            data = self.value(first, ())
            if data is not None:
                line = self.values[()][0]
                documents.append(Document(self.name, data, line, self.keys, self.values, self.lines))
            if len(documents) > MAX_DOCUMENTS:
                self.refuse(first, f"more than {MAX_DOCUMENTS} documents", "split the file")
                raise _GiveUpError
        return documents

    def refuse(self, event: yaml.Event, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.name, *self.place(event), message, hint))

    @staticmethod
    def place(event: Any) -> Place:
        mark = event.start_mark
        return mark.line + 1, mark.column + 1

    def value(self, event: Any, path: KeyPath) -> Any:
        self.values[path] = self.place(event)
        if isinstance(event, yaml.AliasEvent):
            self.refuse(event, "aliases (*name) are not allowed", "write the value out")
            return None
        if event.anchor:
            self.refuse(event, "anchors (&name) are not allowed", "write the value out where it is needed")
        if event.tag:
            self.refuse(event, f"tags ({shorten(event.tag)}) are not allowed")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if len(path) >= MAX_NESTING:
            self.refuse(event, _TOO_DEEP)
            raise _GiveUpError
        return self.mapping(path) if isinstance(event, yaml.MappingStartEvent) else self.sequence(path)

    def sequence(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.value(event, (*path, len(items))))
        return items

    def mapping(self, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.key(event, path)
            if key in found:
                line = self.keys[*path, key][0]
                self.refuse(event, f"key {key!r} is given twice", f"first in line {line}")
            else:
                self.keys[*path, key] = self.place(event)
            found[key] = self.value(next(self.events), (*path, key))
        return found

    def key(self, event: Any, path: KeyPath) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self.refuse(event, "a key must be a word")
            raise _GiveUpError
        count = len(self.problems)
        key = self.value(event, (*path, ""))
        del self.values[*path, ""]
        if not isinstance(key, str) and len(self.problems) == count:
            self.refuse(event, f"key {event.value!r} is not text", f'write "{event.value}" in quotes')
        return key if isinstance(key, str) else event.value

    def scalar(self, event: Any) -> str | int | float | bool | None:
        text: str = event.value
        if event.style not in {None, ""}:
            return text
        read = plain_scalar(text)
        if isinstance(read, float) and not math.isfinite(read):
            self.refuse(event, f"number {shorten(text)} is too large")
        if isinstance(read, str):
            self.refuse_surprise(event, text)
        return read

    def refuse_surprise(self, event: Any, text: str) -> None:
        """Plain text that YAML 1.1 readers, PyYAML among them, take for something else than text."""
        tag = self.resolve(yaml.ScalarNode, text, (True, False)).removeprefix("tag:yaml.org,2002:")
        if tag == "merge":
            self.refuse(event, "merge keys (<<) are not allowed", "write the values out")
        elif tag != "str" or text in _SINGLE_LETTERS:
            kind, instead = _READ_AS.get("bool" if tag == "str" else tag, ("something else", ""))
            hint = f'write {instead}"{shorten(text)}" in quotes'
            self.refuse(event, f"some YAML readers take {shorten(text)} for {kind}", hint)
