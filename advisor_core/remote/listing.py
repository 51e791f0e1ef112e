"""The files at and below a URL."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from advisor_core.remote.errors import RemoteError, driver_errors
from advisor_core.remote.file_system import Entry, FileSystem
from advisor_core.remote.signs import time_of

DEEPEST: Final = 8
"""Levels of directories that are listed: loaders look for profiles six levels down (`advisor_core.loaders.discover`),
and read files two levels below a profile."""

_MOST_DIRECTORIES: Final = 20_000
_MOST_FILES: Final = 200_000
"""As `advisor_core.loaders.discover` has it for directories; of files ten for each."""

_RAW: Final = re.compile(r"(?:^|/)(?:device_\d+|host)/(?:data|log|sqlite)$")
"""Directories of a recording before it was exported, of which no loader reads a file: hundreds for each rank."""


@dataclass(frozen=True)
class RemoteFile:
    """A file. ``bytes``: its size; ``time_ns``: the time that stands for its content (`advisor_core.remote.signs`)."""

    bytes: int
    time_ns: int


@dataclass(frozen=True)
class Listing:
    """All at a URL: ``files`` and ``directories`` by their places below it, '' for what the URL itself names."""

    files: Mapping[str, RemoteFile] = field(default_factory=dict)
    directories: Collection[str] = ()


def listed(system: FileSystem) -> Listing:
    """All that loaders may look at. Raises `RemoteError`: a part that cannot be listed is not left out."""
    with driver_errors(system.url):
        root = system.entry("")
        if not _is_directory(system, root):
            return Listing({"": _file(system, "", root)})
        return _walked(system)


def _walked(system: FileSystem) -> Listing:
    found: dict[str, Entry] = {}
    waiting, count, directories = [""], 0, {""}
    for _ in range(DEEPEST + 1):
        count += len(waiting)
        if count > _MOST_DIRECTORIES or len(found) > _MOST_FILES:
            what = f"more than {_MOST_DIRECTORIES} directories or {_MOST_FILES} files below it"
            raise RemoteError(f"{system.url}: {what}; name the profile itself")
        below = []
        for above, entries in zip(waiting, system.each(system.entries, waiting), strict=True):
            for entry in entries:
                name = _child(system, entry, above)
                if name is None:
                    continue
                if entry["type"] not in ("file", "directory"):  # asked for by itself, a link is what it leads to
                    entry = system.entry(name)
                if entry["type"] == "directory":
                    below.append(name)
                else:
                    found[name] = entry
        directories |= {*below}
        waiting = [name for name in dict.fromkeys(below) if not _RAW.search(name)]
    files = {name: entry for name, entry in found.items() if name not in directories}  # an object store may have both
    unsized = [name for name, entry in files.items() if entry.get("size") is None]  # links on a page of a web server
    files |= zip(unsized, system.each(system.entry, unsized), strict=True)
    return Listing({name: _file(system, name, entry) for name, entry in files.items()}, directories)


def _child(system: FileSystem, entry: Entry, above: str) -> str | None:
    """The place of an entry of the directory ``above``; ``None`` for what no file here can be called, and for what
    servers list beside the content of a directory: itself, links to other pages."""
    name = system.relative(str(entry["name"]))
    if name is None or "\0" in name or "\\" in name or "?" in name or "#" in name:
        return None
    directory, _, last = name.rpartition("/")
    return name if directory == above and last not in ("", ".", "..") else None


def _is_directory(system: FileSystem, root: Entry) -> bool:
    if root["type"] == "directory":
        return True
    # a web server knows no directories, but pages with links
    is_page = str(root.get("mimetype", "")).startswith("text/html")
    return is_page or str(root["name"]).endswith("/")


def _file(system: FileSystem, name: str, entry: Entry) -> RemoteFile:
    if not isinstance(size := entry.get("size"), int):
        raise RemoteError(f"{system.url}: it is not told how large {name or 'it'} is; copy the profile")
    return RemoteFile(size, time_of(entry))
