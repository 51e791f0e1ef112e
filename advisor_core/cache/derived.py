"""Results that were derived from a rank, kept from one run to the next."""

from __future__ import annotations

import pickle
from typing import TypeVar

from advisor_core.cache.fingerprint import Files
from advisor_core.cache.folder import CacheFolder
from advisor_core.cache.names import files_of_rank, name_of
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
        found = None if name is None else self._folder.read(name)
        if name is None or found is None:
            return None
        try:
            # It is whole, as its digest says, and nobody but the user can have written it.
            value = pickle.loads(found)
        except Exception:  # whatever the state of an object of another kind makes of it
            value = None
        if isinstance(value, kind):
            return value
        self._folder.drop(name)
        return None

    def write(self, files: Files | None, about: object, value: object) -> None:
        """Keep what was derived from ``files``: those that were read, not those that are there now. ``None``: nothing
        is kept."""
        name = None if files is None else name_of(self._source, files, (self._plugins, about))
        if name is None:
            return
        try:
            whole = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, TypeError, AttributeError):
            return
        self._folder.write(name, [whole])
