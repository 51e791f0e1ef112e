"""The sign of the content of a file at a URL: what its driver tells that is another when the content is.

A sign is kept as a time of change of the stand-in of the file: all that tells local files apart by size and time, such
as the cache of ranks, then tells these apart. The times of signs are of the years 1970 to 1984. A file that has no sign
has a time ahead of us, another one each time it is listed: it is copied each time, and nothing of it is kept.
"""

from __future__ import annotations

import hashlib
import time
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from advisor_core.remote.file_system import Entry

_OF_CONTENT: Final = (
    "etag",
    "md5hash",
    "md5",
    "content_md5",
    "content-md5",
    "digest",
    "crc32c",
    "crc",
    "sha",
    "generation",
)
"""Names by which drivers tell a digest or a number of the version of a content (s3fs, gcsfs, adlfs, http, zip); the
first that is there is enough."""

_OF_TIME: Final = ("mtime", "lastmodified", "last_modified", "last-modified", "modificationtime", "modified", "modify")
_OF_CREATION: Final = ("updated", "created", "date_time")
"""Times, where there is no digest: all that are there."""

_OF_PLACE: Final = ("ino", "inode")
"""Numbers of files, which tell one from another of the same times: no sign by themselves."""

SETTLED_S: Final = 2.0
"""A content that changed within this may change again without another time, as clocks of file systems tick."""

TICK_NS: Final = 100
"""Of the clocks of file systems that a cache lies on the coarsest is that of NTFS."""

_TICKS: Final = 1 << 52
_AHEAD_NS: Final = 86_400 * 10**9


def time_of(entry: Entry, now_s: float | None = None) -> int:
    """The time in ns that stands for the content of a file."""
    sign = sign_of(entry, time.time() if now_s is None else now_s)
    if sign is None:
        return (time.time_ns() + _AHEAD_NS) // TICK_NS * TICK_NS
    return int.from_bytes(hashlib.sha256(sign.encode("utf-8", "surrogateescape")).digest()[:8]) % _TICKS * TICK_NS


def is_sign(time_ns: int) -> bool:
    """Whether a time of change stands for a content."""
    return 0 <= time_ns < _TICKS * TICK_NS


def sign_of(entry: Entry, now_s: float) -> str | None:
    """The sign of a content; ``None`` where there is none, or where it might not tell a change of this moment."""
    known = {str(name).lower(): value for name, value in entry.items() if value not in (None, "", b"")}
    for name in _OF_CONTENT:
        if name in known:
            return f"{name} {str(known[name]).removeprefix('W/').strip(chr(34))}"
    times: dict[str, float | str] = {
        name: _seconds(known[name]) for name in (*_OF_TIME, *_OF_CREATION) if name in known
    }
    if not times or any(isinstance(value, float) and now_s - SETTLED_S < value for value in times.values()):
        return None
    times |= {name: _seconds(known[name]) for name in _OF_PLACE if name in known}
    return " ".join(f"{name} {value!r}" for name, value in sorted(times.items()))


def _seconds(value: Any) -> float | str:
    """Seconds since the epoch, of a time in whatever form; what is none stays as it is."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return read(str(value)).timestamp()
        except (ValueError, TypeError, OverflowError):
            continue
    return str(value)
