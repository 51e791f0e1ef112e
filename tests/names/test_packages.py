"""The registry of names against the real software: what stands in a registry file with a `package` occurs in the code
of that distribution.

Needs the distributions as wheels or source archives in a folder that the environment variable NPU_ADVISOR_PACKAGES
names; nothing is installed or run. Of several versions the newest counts. Left out are names that the registry does not
vouch for (`unverified`) and that the software no longer has (`until`); what came after the archive (`since`) may be
missing from it.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from advisor_core.names.book import load_names
from advisor_core.names.model import Name, Software
from advisor_core.names.signatures import signature

_ROOT = Path(__file__).parents[2]
_VARIABLE = "NPU_ADVISOR_PACKAGES"
_FOLDER = os.environ.get(_VARIABLE, "")
_SOFTWARE = load_names((_ROOT / "rulesets" / "names",)).software
_CHECKED = ("flag", "option", "variable", "api")
_SOURCES = (".py", ".pyi", ".yaml", ".yml", ".json", ".sh", ".h", ".hpp", ".c", ".cc", ".cpp")
_CASES = [
    pytest.param(software, name, id=f"{software.software}:{name.name}")
    for software in _SOFTWARE
    if software.package
    for name in software.names
    if name.kind in _CHECKED and not name.unverified and name.until is None
]


@dataclass(frozen=True)
class Archive:
    """A wheel or a source archive. ``files``: its sources, with their places. ``code``: all of them, one by one."""

    path: Path
    version: Version
    files: tuple[tuple[str, str], ...]
    code: str

    @functools.cached_property
    def binaries(self) -> tuple[bytes, ...]:
        return tuple(data for _, data in _members(self.path, (".so",)))

    def has(self, word: str) -> bool:
        """Whether the word stands in a source, or in a library that was built from one."""
        found = self.code.find(word)
        while found >= 0:
            if not _joined(self.code, found, len(word)):
                return True
            found = self.code.find(word, found + 1)
        return any(word.encode() in data for data in self.binaries)

    def has_literal(self, text: str) -> bool:
        return f'"{text}"' in self.code or f"'{text}'" in self.code

    def has_field(self, name: str) -> bool:
        """Whether a class has such a field: Megatron makes flags of them."""
        return re.search(rf"^[ ]+{re.escape(name)}[ ]*:[ ]*\S", self.code, re.MULTILINE) is not None

    def parameters(self, name: Name) -> Iterator[Parameters]:
        """What the callables of an API take: those of its page, those that compiled code registers, and where there is
        neither, those in the folder of its module."""
        module, _, last = name.name.rpartition(".")
        page = name.page or ""
        found = 0
        for place, text in self.files:
            if page == place or page.endswith(f"/{place}"):
                for item in _callables(text, last):
                    found += 1
                    yield item
        for item in self.registered(last):
            found += 1
            yield item
        folder = module.replace(".", "/")
        for place, text in self.files if not found else ():
            if place.rpartition("/")[0] == folder:
                yield from _callables(text, last)

    def registered(self, name: str) -> Iterator[Parameters]:
        """The parameters in the schemas of operators that libraries hold: ``name(Tensor input, int dim=-1)``."""
        schema = re.compile(rb"(?:\.\w+)?\(((?:\*|[\w\[\]()?!]+ \w+)[^\0]*)")
        for data in self.binaries:
            found = data.find(name.encode())
            while found >= 0:
                match = schema.match(data, found + len(name))
                before = data[max(found - 1, 0) : found]
                if match and not (before.isalnum() or before == b"_"):
                    inside = match[1].decode("utf-8", "replace").partition(" -> ")[0].rstrip(";) \n")
                    words = re.findall(r"[\w\])?!]+ (\w+)(?==|,|$)", inside)
                    if words:
                        yield Parameters(frozenset(words), everything=False, text=inside)
                found = data.find(name.encode(), found + 1)


@dataclass(frozen=True)
class Parameters:
    """What a callable takes. ``everything``: any keyword."""

    names: frozenset[str]
    everything: bool
    text: str

    def fit(self, written: str) -> bool:
        """Whether they have all that the registry writes. Compiled code calls the first tensor ``self``."""
        known = signature(written).parameters.values()
        named = {item.name for item in known if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)}
        return self.everything or named - {"self"} <= self.names | ({"input"} if "self" in self.names else set())


@pytest.mark.skipif(not _FOLDER, reason=f"{_VARIABLE} does not name a folder with wheels or source archives")
@pytest.mark.parametrize(("software", "name"), _CASES)
def test_the_code_has_the_name(software: Software, name: Name) -> None:
    assert software.package is not None
    archive = _archive(software.package)
    if archive is None:
        pytest.skip(f"no archive of {software.package} in {_FOLDER}")
    problem = _problem(archive, name)
    if problem and name.since is not None and _newer(name.since, archive.version):
        pytest.skip(f"{problem}: since {name.since}")
    assert not problem, problem


def test_the_own_command_line_has_the_names() -> None:
    written = (_ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    own = next(software for software in _SOFTWARE if software.software == "advisor")
    for name in own.names:
        assert re.search(rf"(?<![\w-]){re.escape(name.name)}(?![\w-])", written), name.name


def _problem(archive: Archive, name: Name) -> str:
    """How the code differs from the registry; empty where it does not."""
    if name.kind == "flag":
        positive = re.sub(r"^--no-", "--", name.name)
        field = positive.removeprefix("--").replace("-", "_")
        known = archive.has_literal(name.name) or archive.has_literal(positive) or archive.has_field(field)
        return "" if known else f"{archive.path.name} has no flag {name.name}"
    parts = re.split(r"[.=]", name.name)
    for part in parts if name.kind == "option" else parts[-1:]:
        if not archive.has(part):
            return f"{archive.path.name} does not have {part}"
    if name.kind == "api" and name.signature is not None:
        found = None
        for found in archive.parameters(name):
            if found.fit(name.signature):
                return ""
        if found is not None:
            return f"{name.name}{name.signature} is ({found.text}) in {archive.path.name}"
    return ""


@functools.cache
def _archive(package: str) -> Archive | None:
    """The newest archive of a distribution, read once."""
    versions = [
        (version, path)
        for path in sorted(Path(_FOLDER).iterdir())
        for project, version in _named(path)
        if project == canonicalize_name(package)
    ]
    if not versions:
        return None
    version, path = max(versions, key=lambda item: item[0])
    files = tuple((place, data.decode("utf-8", "replace")) for place, data in _members(path, _SOURCES))
    return Archive(path, version, files, "\n".join(text for _, text in files))


def _named(path: Path) -> Iterator[tuple[str, Version]]:
    try:
        if path.suffix == ".whl":
            project, version, _, _ = parse_wheel_filename(path.name)
            yield project, version
        elif path.name.endswith(".tar.gz"):
            yield parse_sdist_filename(path.name)
    except (InvalidWheelFilename, ValueError):
        return


def _members(path: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """The files of an archive that end so, without tests."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for place in wheel.namelist():
                if place.endswith(suffixes) and not place.startswith(("tests/", "test/")):
                    yield place, wheel.read(place)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            inside = member.name.partition("/")[2]
            if member.isfile() and inside.endswith(suffixes) and not inside.startswith(("tests/", "test/")):
                opened = archive.extractfile(member)
                assert opened is not None
                yield inside, opened.read()


def _joined(text: str, start: int, length: int) -> bool:
    """Whether the word there is only part of a longer one."""
    around = text[start - 1 : start] + text[start + length : start + length + 1]
    return any(letter.isalnum() or letter == "_" for letter in around)


def _newer(since: str, version: Version) -> bool:
    """Whether this version has not reached ``since`` (a version, or ``after`` one), or that cannot be told."""
    word, _, after = since.rpartition(" ")
    try:
        return version <= Version(after) if word == "after" else version < Version(since)
    except InvalidVersion:
        return True


@functools.cache
def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def _callables(text: str, name: str) -> Iterator[Parameters]:
    """The parameters of every function or class of this name in a source."""
    if not re.search(rf"^[ \t]*(async[ ]+def|def|class)[ ]+{re.escape(name)}\b", text, re.MULTILINE):
        return
    for node in ast.walk(_tree(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            yield _parameters(node.args)
        elif isinstance(node, ast.ClassDef) and node.name == name:
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name in ("__init__", "__new__"):
                    yield _parameters(item.args)


def _parameters(arguments: ast.arguments) -> Parameters:
    names = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return Parameters(
        frozenset(argument.arg for argument in names), arguments.kwarg is not None, ast.unparse(arguments)
    )
