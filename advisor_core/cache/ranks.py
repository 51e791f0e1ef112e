"""A rank as its loader gave it, kept from one run to the next: its tables as Arrow IPC, behind them the rest."""

from __future__ import annotations

import dataclasses
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from advisor_core.cache.fingerprint import Files, files_of
from advisor_core.cache.folder import HEAD, CacheFolder
from advisor_core.cache.frames import UnkeepableError, from_stream, to_stream
from advisor_core.cache.names import files_of_rank, tables_of
from advisor_core.contracts.profile import Profile, RankInput
from advisor_core.contracts.tables import SCHEMAS, RowSource, Table
from advisor_core.loaders.unreadable import tells_unreadable
from advisor_core.text.base import Text

_ALIGNED: Final = 64
"""Arrow wants its buffers at such addresses, and puts them there from the beginning of a stream on."""

_LENGTH: Final = 8


@dataclass(frozen=True)
class Loaded:
    """A rank as its loader gave it. ``files``: those that it was read from, ``None`` where a change of them might not
    show. ``from_cache``: nothing of them was read."""

    profile: Profile
    files: Files | None = None
    from_cache: bool = False


def kept_rank(folder: CacheFolder, source: RankInput, load: Callable[[RankInput], Profile]) -> Loaded:
    """The rank that ``load(source)`` gives, from the cache where no file of it has changed. ``load``: of our own
    loaders. Raises what it raises."""
    began = time.time_ns()
    files = files_of_rank(source)
    name = None if files is None else tables_of(source, files)
    if name is None or files is None:
        return Loaded(load(source))
    if (profile := _read(folder, name)) is not None:
        return Loaded(profile, files, from_cache=True)
    profile = load(source)
    if not files.settled(began) or _unreadable(profile) or files_of(source.directory) != files:
        return Loaded(profile)
    _write(folder, name, profile)
    return Loaded(profile, files)


def _write(folder: CacheFolder, name: str, profile: Profile) -> None:
    try:
        streams = {table: to_stream(held.frame) for table, held in profile.tables.items()}
        rest = dataclasses.replace(profile, tables={})
        sources = {table: held.source for table, held in profile.tables.items()}
        places, parts, end = {}, [], HEAD
        for table, stream in streams.items():
            gap = -end % _ALIGNED
            parts += [bytes(gap), stream]
            places[table] = (end + gap - HEAD, stream.size)
            end += gap + stream.size
        tail = pickle.dumps((rest, sources, places), protocol=pickle.HIGHEST_PROTOCOL)
    except (UnkeepableError, pickle.PicklingError, TypeError, AttributeError):
        return  # it is read again
    folder.write(name, [*parts, tail, len(tail).to_bytes(_LENGTH, "little")])


def _read(folder: CacheFolder, name: str) -> Profile | None:
    found = folder.read(name)
    if found is None:
        return None
    whole: Any = pa.py_buffer(found)
    try:
        end = whole.size - _LENGTH
        start = end - int.from_bytes(whole[end:].to_pybytes(), "little")
        rest: Profile
        sources: Mapping[str, RowSource]
        # The file is whole, as its digest says, and nobody but the user can have written it.
        rest, sources, places = pickle.loads(whole[start:end])
        tables = {
            table: Table(SCHEMAS[table], from_stream(whole.slice(*places[table]), _bools(table)), source)
            for table, source in sources.items()
        }
    except (pickle.UnpicklingError, pa.ArrowException, KeyError, ValueError, TypeError, AttributeError, EOFError):
        folder.drop(name)
        return None
    return dataclasses.replace(rest, tables=tables)


def _bools(table: str) -> frozenset[str]:
    return frozenset(column.name for column in SCHEMAS[table].columns if column.dtype == "bool")


def _unreadable(profile: Profile) -> bool:
    """Whether a file could not be read, which may be otherwise the next time though nothing of it changes."""
    told: list[Text] = [diagnostic.message for diagnostic in profile.diagnostics]
    return any(tells_unreadable(text.en) for text in (*told, *(missing.reason for missing in profile.missing.values())))
