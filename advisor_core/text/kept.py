"""A cache of data that was read from files of a package.

Parsing the YAML of all rules, names and words is a good part of a small run, and gives the same each time. What it gave
is kept in the cache directory of the user (`cache_folder`), as plain data;
so are the templates of reports, as byte code, which only the user can have written there.
The name of a file there is a digest of what was read and of the code that read it, so a change of either is read anew.
A file with one byte changed or cut off is not used. Files are written beside their place and then moved, so runs at the
same time do not meet half of one. Where the directory cannot be read or written, everything is read each time.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from advisor_core.text.whole_file import write_whole

T = TypeVar("T")

VERSIONS_KEPT = 8
"""Of each name, so that some checkouts and installations do not take turns; further ones are deleted."""


def _libraries() -> bytes:
    """The versions of the libraries that read and keep: of PyYAML the file that says it, as what is kept is there to be
    had without loading it."""
    found = importlib.util.find_spec("yaml")
    assert found is not None, "the project depends on PyYAML"
    assert found.origin is not None, "PyYAML is a package with code of its own"
    return hashlib.sha256(Path(found.origin).read_bytes()).digest() + msgspec.__version__.encode()


_LIBRARIES = _libraries()


def kept(name: str, contents: Sequence[bytes], reader: str, read: Callable[[], T]) -> T:
    """The value of ``read()``, from the cache where it is there. ``contents``: the bytes that it reads, and everything
    that it depends on apart from the code of the module at ``reader`` (its ``__file__``). ``name`` tells the files of
    one purpose from others. What does not come back equal, such as a date, is not kept."""
    folder = cache_folder()
    if folder is None:
        return read()
    try:
        file = folder / f"{name}-{_digest(contents, reader)}"
    except OSError:  # modules that are no files
        return read()
    try:
        whole = file.read_bytes()
        if hashlib.sha256(whole[32:]).digest() == whole[:32]:
            stored: T = msgspec.msgpack.decode(whole[32:])
            return stored
    except (OSError, msgspec.DecodeError):
        pass
    value = read()
    _keep(file, value)
    return value


def cache_folder() -> Path | None:
    """The cache directory of the user: ``$XDG_CACHE_HOME/npu-advisor`` on any system, else ``npu-advisor`` where the
    system keeps such things: ``~/.cache``, ``~/Library/Caches`` (macOS), ``%LOCALAPPDATA%`` (Windows). ``None`` where
    there is none."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # the specification has other paths ignored
        return named / "npu-advisor"
    local = Path(os.environ.get("LOCALAPPDATA", ""))
    if sys.platform == "win32" and local.is_absolute():
        return local / "npu-advisor" / "cache"
    try:
        above = Path("Library", "Caches") if sys.platform == "darwin" else Path(".cache")
        return Path.home() / above / "npu-advisor"
    except RuntimeError:
        return None


def _digest(contents: Sequence[bytes], reader: str) -> str:
    digest = hashlib.sha256(_LIBRARIES)
    for part in (_code(__file__), _code(reader), *contents):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


@cache
def _code(module: str) -> bytes:
    return Path(module).read_bytes()


def _keep(file: Path, value: object) -> None:
    try:
        data = msgspec.msgpack.encode(value)
        if msgspec.msgpack.decode(data) != value:
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(file, hashlib.sha256(data).digest() + data)
        versions = sorted(file.parent.glob(f"{file.name[:-64]}*"), key=lambda other: other.stat().st_mtime)
        for other in versions[:-VERSIONS_KEPT]:
            other.unlink(missing_ok=True)
    except (OSError, TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        return
