"""Results that were derived from a rank, kept from one run to the next."""

from __future__ import annotations

from typing import TypeVar

from advisor_core.cache.fingerprint import Files
from advisor_core.cache.folder import CacheFolder
from advisor_core.cache.names import files_of_rank, name_of
from advisor_core.cache.pickled import read_pickled, write_pickled
from advisor_core.contracts.profile import RankInput

T = TypeVar("T")


class Derived:
    """Results derived from one rank. ``about``, in each call: all that it depends on besides the files of the rank and
    our code; equal things print equally. ``plugins``: those that take part."""

    def __init__(self, folder: CacheFolder, source: RankInput, plugins: tuple[str, ...]) -> None:
        self._folder = folder
        self._source = source
        self._plugins = plugins
        self.files = files_of_rank(source)

    def read(self, about: object, kind: type[T]) -> T | None:
        """The result that was written about the files as they are now; ``None`` for none."""
        name = None if self.files is None else name_of(self._source, self.files, (self._plugins, about))
        return None if name is None else read_pickled(self._folder, name, kind)

    def write(self, files: Files | None, about: object, value: object) -> None:
        """Keep what was derived from ``files``: those that were read, not those that are there now. ``None``: nothing
        is kept."""
        name = None if files is None else name_of(self._source, files, (self._plugins, about))
        if name is not None:
            write_pickled(self._folder, name, value)
