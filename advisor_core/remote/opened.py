"""URLs as paths that loaders can read."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from advisor_core.remote.copies import copy_all, use_folder
from advisor_core.remote.errors import CopyError, RemoteError, driver_errors
from advisor_core.remote.file_system import FileSystem, file_system
from advisor_core.remote.kept import kept_folder
from advisor_core.remote.listing import listed
from advisor_core.remote.shown import show_as
from advisor_core.remote.stand_ins import FOLDER, StandIn, Tree
from advisor_core.remote.temporary import temporary_folder
from advisor_core.remote.url import Url

SMALL_BYTES: Final = 64 << 10
"""Tables and records of up to this size are copied together, before profiles are looked for: loaders open those of all
ranks, one after the other, and an answer takes longer than this takes to come. Our choice."""

_MOST_SMALL: Final = 20_000
_READ_FIRST: Final = re.compile(r"\.(?:csv|json)(?:\.\d+)?$")


@contextmanager
def opened(urls: Sequence[Url], most_bytes: int, *, whole: bool = False) -> Iterator[list[Path]]:
    """A path for each URL, as long as it is used; what is copied stays for the next run, as far as ``most_bytes`` has
    room. 0: nothing stays. ``whole``: all is copied now, so that the paths have content for those who do not ask for
    `here`. Raises `DriverError` and `RemoteError`."""
    systems = [file_system(url) for url in urls]
    with ExitStack() as stack:
        folder = None if whole else kept_folder(most_bytes)
        if folder is None:
            folder, most_bytes = stack.enter_context(temporary_folder()) / FOLDER, 0
            folder.mkdir()
        yield [_whole(system, folder) if whole else _tree(system, folder, most_bytes) for system in systems]


def _tree(system: FileSystem, folder: Path, most_bytes: int) -> Path:
    tree = Tree(folder, system.url, most_bytes)
    show_as(tree.root, system.url)
    use_folder(tree.files)
    listing = listed(system)
    tree.lay_out(listing.files, listing.directories)
    small = [
        StandIn(tree, name, file)
        for name, file in listing.files.items()
        if file.bytes <= SMALL_BYTES and _READ_FIRST.search(name)
    ]
    try:
        copy_all(small[:_MOST_SMALL], tree, system)
    except CopyError as error:
        raise RemoteError(str(error.strerror)) from None
    return tree.root


def _whole(system: FileSystem, folder: Path) -> Path:
    target = Path(tempfile.mkdtemp(dir=folder)).joinpath(*system.url.parts)
    show_as(target, system.url)
    listing = listed(system)
    with driver_errors(system.url):
        for name in listing.directories:
            (target / name).mkdir(parents=True, exist_ok=True)
        for name in listing.files:
            place = target / name if name else target
            place.parent.mkdir(parents=True, exist_ok=True)
            system.copy(name, place, lambda size: None)
    return target
