"""Stand-ins: a folder of the files at a URL that has names, sizes and times of change, and no content.

    <base>/advisor-remote/trees/<digest>/<parts>/...    the stand-ins; <digest> of the URL, <parts> its names
    <base>/advisor-remote/trees/<digest>.json           the URL
    <base>/advisor-remote/files/<digest>                the content of a file, by URL, size and time

A process finds the URL of a stand-in by its path alone, so that a path may be handed to other processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from advisor_core.remote.errors import RemoteError
from advisor_core.remote.listing import RemoteFile
from advisor_core.remote.url import Url
from advisor_core.text.whole_file import write_whole

FOLDER: Final = "advisor-remote"
FILES: Final = "files"
_TREES: Final = "trees"
_UNUSED_S: Final = 14 * 86_400
"""Stand-ins that no run used for so long are deleted: they are files too, though empty ones. Our choice."""

_DIGITS: Final = 16


@dataclass(frozen=True)
class Tree:
    """The stand-ins of a URL. ``base``: the folder of all; ``most_bytes``: what copies there may take together, 0 for a
    ``base`` that is deleted after the run."""

    base: Path
    url: Url
    most_bytes: int

    @property
    def root(self) -> Path:
        """The stand-in of what the URL names, below folders of the same names as there."""
        return self._folder.joinpath(*self.url.parts)

    @property
    def _folder(self) -> Path:
        return self.base / _TREES / hashlib.sha256(self.url.place.encode()).hexdigest()[:_DIGITS]

    @property
    def files(self) -> Path:
        """The folder of copies."""
        return self.base / FILES

    def lay_out(self, files: Mapping[str, RemoteFile], directories: Collection[str] = (), below: str = "") -> None:
        """Make the stand-ins of these files and directories, by their places below the URL, and of no others ``below``
        a place; what is there as it should be is left alone. Raises `RemoteError`."""
        try:
            self.files.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(
                self._folder.with_suffix(".json"),
                json.dumps({"url": self.url.text, "most_bytes": self.most_bytes}).encode(),
            )
            _forget_unused(self.base / _TREES)
            if "" not in files and self.root.is_file():
                self.root.unlink()
            self._remove_others(files, directories, below)
            root, copies = str(self.root), str(self.files)
            for name in sorted(directories):
                Path(root, name).mkdir(parents=True, exist_ok=True)
            for name, file in files.items():
                self._stand_in(f"{root}/{name}" if name else root, file, copies)
        except OSError as error:
            raise RemoteError(f"{self.url}: {self.base} cannot be written ({error.strerror or error})") from None

    def _remove_others(self, files: Mapping[str, RemoteFile], directories: Collection[str], below: str) -> None:
        if "" in files and self.root.is_dir():
            shutil.rmtree(self.root)
        kept = {*directories}
        for name in (*files, *directories):
            while (name := name.rpartition("/")[0]) not in kept:
                kept.add(name)
        for directory, folders, names in os.walk(self.root / below, topdown=False):
            at = Path(directory).relative_to(self.root).as_posix()
            above = "" if at == "." else f"{at}/"
            for name in names:
                if f"{above}{name}" not in files:
                    Path(directory, name).unlink(missing_ok=True)
            for name in folders:
                if f"{above}{name}" not in kept:
                    Path(directory, name).rmdir()

    def _stand_in(self, path: str, file: RemoteFile, copies: str) -> None:
        try:
            status = os.stat(path)  # noqa: PTH116  # a job has ten thousand of them
            if stat.S_ISREG(status.st_mode) and (status.st_size, status.st_mtime_ns) == (file.bytes, file.time_ns):
                return
        except FileNotFoundError:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        descriptor, beside = tempfile.mkstemp(dir=copies, prefix=f".{os.getpid()}-")
        made = Path(beside)
        try:
            with os.fdopen(descriptor, "wb") as empty:
                empty.truncate(file.bytes)
            os.utime(beside, ns=(file.time_ns, file.time_ns))
            if made.stat().st_mtime_ns != file.time_ns:
                why = "its file system keeps no times of 100 ns; XDG_CACHE_HOME names another place"
                raise RemoteError(f"{self.url}: {self.base} cannot be used: {why}")
            made.replace(path)
        except BaseException:
            made.unlink(missing_ok=True)
            raise


@dataclass(frozen=True)
class StandIn:
    """The file at a URL that a path stands for. ``name``: its place below the URL of the ``tree``."""

    tree: Tree
    name: str
    file: RemoteFile

    @property
    def copy(self) -> Path:
        """The place of its content, copied or not: a file of the same kind of name."""
        about = f"{self.tree.url.place}/{self.name}".rstrip("/"), self.file.bytes, self.file.time_ns
        digest = hashlib.sha256(repr(about).encode("utf-8", "surrogateescape")).hexdigest()
        return self.tree.files / f"{digest}{(self.tree.root / self.name).suffix}"


def tree_of(path: Path) -> Tree | None:
    """The tree that a path is in; ``None`` for a path that is what it is."""
    parts = path.parts
    if FOLDER not in parts:
        return None
    place = len(parts) - 1 - parts[::-1].index(FOLDER)
    if len(parts) < place + 4 or parts[place + 1] != _TREES:
        return None
    base = Path(*parts[: place + 1])
    try:
        told = (base / _TREES / f"{parts[place + 2]}.json").read_bytes()
    except OSError:
        return None
    return _tree(base, told)


def stand_in(path: Path) -> StandIn | None:
    """The file that a path stands for; ``None`` for one that is what it is. Raises OSError where nothing is there."""
    tree = tree_of(path)
    if tree is None or not path.is_relative_to(tree.root):
        return None
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return None
    name = path.relative_to(tree.root).as_posix()
    return StandIn(tree, "" if name == "." else name, RemoteFile(status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=64)
def _tree(base: Path, told: bytes) -> Tree:
    about = json.loads(told)
    return Tree(base, Url(about["url"]), about["most_bytes"])


def _forget_unused(trees: Path) -> None:
    for file in trees.glob("*.json"):
        try:
            if time.time() - file.stat().st_mtime > _UNUSED_S:
                shutil.rmtree(file.with_suffix(""), ignore_errors=True)
                file.unlink(missing_ok=True)
        except OSError:  # another run has taken it away
            continue
