"""The members that an event of any trace has, in the format of Chrome's tracing, and events that a decoder refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

E = TypeVar("E", bound="TraceEvent")


class TraceEvent(msgspec.Struct, gc=False):
    """An event of any phase; an exporter adds its ``args``. ``ts``, ``id``, ``pid`` and ``tid`` may be text or numbers;
    a decoder gives floats as text (``float_hook=str``)."""

    ph: Any = ""
    name: Any = ""
    cat: Any = ""
    pid: Any = -1
    tid: Any = -1
    ts: Any = None
    dur: float | str | None = None
    id: Any = None


def salvaged(
    data: bytes,
    event: type[E],
    args: type[msgspec.Struct],
    as_decoded: Callable[[str, Any], Any] = lambda _, value: value,
) -> E | None:
    """An event that the typed decoder refuses (``args`` or ``dur`` of another type, bytes that are not UTF-8, half a
    surrogate pair, NaN); None for what is no event. ``as_decoded``: a value of ``args``, by the name of its field, as
    the decoder would give it."""
    try:
        raw = json.loads(data.decode("utf-8", "replace"), parse_float=str)
    except (ValueError, RecursionError):
        return None
    given = raw.get("args")
    fields = _fields(args)
    known = {
        fields[key]: as_decoded(fields[key], value)
        for key, value in (given.items() if isinstance(given, dict) else ())
        if key in fields
    }
    members = {_fields(event)[key]: value for key, value in raw.items() if key in _fields(event)}
    return event(**{**members, "args": args(**known)})


@cache
def _fields(struct: type[msgspec.Struct]) -> Mapping[str, str]:
    """The fields by the names that stand in the file."""
    return dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))
