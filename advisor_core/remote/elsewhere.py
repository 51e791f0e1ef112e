"""The stand-ins of a rank on another machine, which copies what it reads of that rank."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from advisor_core.contracts.profile import RankInput
from advisor_core.remote.copies import forget
from advisor_core.remote.errors import DriverError, RemoteError, driver_errors
from advisor_core.remote.file_system import file_system
from advisor_core.remote.kept import kept_folder
from advisor_core.remote.listing import RemoteFile
from advisor_core.remote.stand_ins import FOLDER, StandIn, Tree, stand_in, tree_of
from advisor_core.remote.url import Url


@dataclass(frozen=True)
class Part:
    """The stand-ins of a rank: ``tree``, as it is where they were made; their ``files`` by their places below the URL,
    all that there are ``below`` one place."""

    tree: Tree
    below: str
    files: Mapping[str, RemoteFile]

    def laid_out(self, otherwise: Path) -> Tree:
        """The same stand-ins on this machine: in the cache directory of its user, or in the folder ``otherwise`` where
        nothing is to be kept. Raises `RemoteError`."""
        tree = self._tree(otherwise)
        tree.lay_out(self.files, below=self.below)
        return tree

    def _tree(self, otherwise: Path) -> Tree:
        folder = kept_folder(self.tree.most_bytes)
        if folder is None:
            return replace(self.tree, base=otherwise / FOLDER, most_bytes=0)
        return replace(self.tree, base=folder)

    def moved(self, source: RankInput, tree: Tree) -> RankInput:
        """The rank where its stand-ins are laid out anew."""

        def to(path: Path) -> Path:
            return tree.root / path.relative_to(self.tree.root)

        return replace(source, root=to(source.root), directory=to(source.directory), older=tuple(map(to, source.older)))

    def forget_temporary(self, otherwise: Path) -> None:
        """Delete what was copied of the rank into the folder ``otherwise``."""
        tree = self._tree(otherwise)
        for name, file in self.files.items() if not tree.most_bytes else ():
            forget(StandIn(tree, name, file))


def part_of(source: RankInput) -> Part | None:
    """The stand-ins of a rank; ``None`` for one that lies on a disk. Raises OSError."""
    tree = tree_of(source.directory)
    if tree is None:
        return None
    names = [source.directory]
    if source.directory.is_dir():
        names = [Path(above, name) for above, _, inside in os.walk(source.directory) for name in inside]
    found = [one for name in names if (one := stand_in(name)) is not None]
    below = source.directory.relative_to(tree.root).as_posix()
    return Part(tree, "" if below == "." else below, {one.name: one.file for one in found})


def not_reached(url: Url) -> str:
    """The reason why this machine cannot list a URL, '' where it can."""
    try:
        with driver_errors(url):
            file_system(url).entry("")
    except (DriverError, RemoteError) as error:
        return str(error)
    return ""
