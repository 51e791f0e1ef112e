"""Objects in the folder of the cache, pickled."""

from __future__ import annotations

import pickle
from typing import TypeVar

from advisor_core.cache.folder import CacheFolder

T = TypeVar("T")


def read_pickled(folder: CacheFolder, name: str, kind: type[T]) -> T | None:
    """The object that was written under a name; ``None`` where there is none, or none of this kind."""
    found = folder.read(name)
    if found is None:
        return None
    try:
        # It is whole, as its digest says, and nobody but the user can have written it.
        value = pickle.loads(found)
    except Exception:  # whatever the state of an object of another kind makes of it
        value = None
    if isinstance(value, kind):
        return value
    folder.drop(name)
    return None


def write_pickled(folder: CacheFolder, name: str, value: object) -> None:
    """Keep an object; one that cannot be pickled is not kept."""
    try:
        whole = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError):
        return
    folder.write(name, [whole])
