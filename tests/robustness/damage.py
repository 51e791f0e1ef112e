"""Ways in which a file gets damaged: by transport, by an exporter's fault, by an editor, by malice. Each takes the
bytes of a file and a source of chance and gives other bytes; the same seed does the same damage."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

Damage = Callable[[bytes, Random], bytes]

ABSURD = (
    *("0", "-1", "-0.5", "1.5", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("18446744073709551615", "4294967295", "1e18", "1e308", "1e-300", "NaN", "inf", "-inf", "", "N/A", "x", "0x10"),
    *("١٢", "1,5", "3600000000", "1736408883688177.930", "=" * 5_000, "\u202e<script>", '"', "9" * 500),
)
ABSURD_JSON: tuple[Any, ...] = (
    *(0, -1, -0.5, 2**63 - 1, 2**63, -(2**63), 2**64, 10**400, 1e308, float("nan"), float("inf"), float("-inf")),
    *(None, True, "", "x", "NaN", "0", "9" * 500, "<script>", "\ud800", "1736408883688177.930"),
    *([], {}, [[[]]], {"a": {"b": [1]}}),
)


def cut(data: bytes, chance: Random) -> bytes:
    return data[: chance.randrange(len(data))]


def flipped_bits(data: bytes, chance: Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 8, 64])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def junk(data: bytes, chance: Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + chance.randbytes(300) + data[place:]


def hole(data: bytes, chance: Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + data[place + chance.randrange(1, 5_000) :]


def nul_bytes(data: bytes, chance: Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes(4096) + data[place:]


def byte_order_mark(data: bytes, chance: Random) -> bytes:
    return b"\xef\xbb\xbf" + data


def crlf(data: bytes, chance: Random) -> bytes:
    return data.replace(b"\n", b"\r\n")


def old_line_ends(data: bytes, chance: Random) -> bytes:
    return data.replace(b"\n", b"\r")


def utf16(data: bytes, chance: Random) -> bytes:
    return data.decode().encode("utf-16")


def latin1(data: bytes, chance: Random) -> bytes:
    return data.replace(b"e", b"\xe9", 200)


def twice(data: bytes, chance: Random) -> bytes:
    return data + data


def _rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))


def _csv(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def absurd_cells(data: bytes, chance: Random) -> bytes:
    rows = _rows(data)
    for _ in range(chance.choice([1, 5, 50])):
        row = chance.choice(rows[1:])
        row[chance.randrange(len(row))] = chance.choice(ABSURD)
    return _csv(rows)


def absurd_column(data: bytes, chance: Random) -> bytes:
    rows = _rows(data)
    place, value = chance.randrange(len(rows[0])), chance.choice(ABSURD)
    for row in rows[1:]:
        row[place] = value
    return _csv(rows)


def mixed_column(data: bytes, chance: Random) -> bytes:
    rows = _rows(data)
    place = chance.randrange(len(rows[0]))
    for row in rows[1:]:
        row[place] = chance.choice(ABSURD)
    return _csv(rows)


def swapped_columns(data: bytes, chance: Random) -> bytes:
    rows = _rows(data)
    left, right = chance.sample(range(len(rows[0])), 2)
    for row in rows[1:]:
        row[left], row[right] = row[right], row[left]
    return _csv(rows)


def lost_column(data: bytes, chance: Random) -> bytes:
    rows = _rows(data)
    place = chance.randrange(len(rows[0]))
    return _csv([row[:place] + row[place + 1 :] for row in rows])


def double_column(data: bytes, chance: Random) -> bytes:
    rows = _rows(data)
    place = chance.randrange(len(rows[0]))
    return _csv([[*row, row[place]] for row in rows])


def double_rows(data: bytes, chance: Random) -> bytes:
    header, *rows = _rows(data)
    return _csv([header, *rows, *rows])


def drop_rows(data: bytes, chance: Random) -> bytes:
    """Three of ten rows are gone, anywhere."""
    header, *rows = _rows(data)
    return _csv([header, *(row for row in rows if chance.random() >= 0.3)])


def cut_rows(data: bytes, chance: Random) -> bytes:
    """The second half of the rows is gone."""
    header, *rows = _rows(data)
    return _csv([header, *rows[: len(rows) // 2]])


def shuffled_rows(data: bytes, chance: Random) -> bytes:
    header, *rows = _rows(data)
    chance.shuffle(rows)
    return _csv([header, *rows])


def ragged_rows(data: bytes, chance: Random) -> bytes:
    header, *rows = _rows(data)
    for row in chance.choices(rows, k=5):
        row[:] = row[:-1] if chance.random() < 0.5 else [*row, "9"]
    return _csv([header, *rows])


def header_only(data: bytes, chance: Random) -> bytes:
    return data.split(b"\n")[0] + b"\n"


def one_row(data: bytes, chance: Random) -> bytes:
    return _csv(_rows(data)[:2])


def huge_field(data: bytes, chance: Random) -> bytes:
    rows = _rows(data)
    row = chance.choice(rows[1:])
    row[chance.randrange(len(row))] = "A" * 3_000_000
    return _csv(rows)


def _members(body: Any) -> Iterator[tuple[Any, Any]]:
    """Every container below ``body`` with a key or place in it."""
    for key in list(body) if isinstance(body, dict) else range(len(body)) if isinstance(body, list) else ():
        yield body, key
        yield from _members(body[key])


def absurd_values(data: bytes, chance: Random) -> bytes:
    body = json.loads(data)
    members = list(_members(body))
    for container, key in chance.choices(members, k=chance.choice([1, 10, 300])):
        container[key] = chance.choice(ABSURD_JSON)
    return json.dumps(body).encode()


def absurd_key(data: bytes, chance: Random) -> bytes:
    """All values of one key."""
    body = json.loads(data)
    members = [(container, key) for container, key in _members(body) if isinstance(key, str)]
    chosen, value, mixed = chance.choice(members)[1], chance.choice(ABSURD_JSON), chance.random() < 0.5
    for container, key in members:
        if key == chosen:
            container[key] = chance.choice(ABSURD_JSON) if mixed else value
    return json.dumps(body).encode()


def lost_key(data: bytes, chance: Random) -> bytes:
    body = json.loads(data)
    members = [(container, key) for container, key in _members(body) if isinstance(key, str)]
    chosen = chance.choice(members)[1]
    for container, key in members:
        if key == chosen:
            container.pop(key, None)
    return json.dumps(body).encode()


def deep_nesting(data: bytes, chance: Random) -> bytes:
    body = json.loads(data)
    container, key = chance.choice(list(_members(body)))
    container[key] = "@deep@"
    depth = chance.choice([50, 900, 5_000, 100_000])
    opening, closing = chance.choice([("[", "]"), ('{"a":', "}")])
    return json.dumps(body).replace('"@deep@"', f"{opening * depth}1{closing * depth}").encode()


def shuffled_events(data: bytes, chance: Random) -> bytes:
    body = json.loads(data)
    if isinstance(body, list):
        chance.shuffle(body)
    return json.dumps(body).encode()


def _listed(data: bytes, change: Callable[[list[Any]], list[Any]]) -> bytes:
    """The outermost list of a JSON file, or the pairs of its outermost object, changed."""
    body = json.loads(data)
    changed: Any = change(body) if isinstance(body, list) else dict(change(list(body.items())))
    return json.dumps(changed).encode()


def drop_events(data: bytes, chance: Random) -> bytes:
    return _listed(data, lambda events: [event for event in events if chance.random() >= 0.3])


def cut_events(data: bytes, chance: Random) -> bytes:
    return _listed(data, lambda events: events[: len(events) // 2])


def double_events(data: bytes, chance: Random) -> bytes:
    return _listed(data, lambda events: [*events, *events])


def other_type(data: bytes, chance: Random) -> bytes:
    return json.dumps(chance.choice([[], {}, 1, "x", None, [1, 2], [[]], {"traceEvents": 1}])).encode()


def huge_value(data: bytes, chance: Random) -> bytes:
    body = json.loads(data)
    container, key = chance.choice(list(_members(body)))
    container[key] = "A" * 3_000_000
    return json.dumps(body).encode()


def same_for_all(data: bytes, chance: Random) -> bytes:
    """One member of every event of a trace has the same value."""
    body = json.loads(data)
    key = chance.choice(["ts", "dur", "tid", "pid", "name", "cat", "id"])
    value = chance.choice([*ABSURD_JSON, 1])
    for event in body if isinstance(body, list) else ():
        if key in event and event.get("ph") != "M":
            event[key] = value
    return json.dumps(body).encode()


OF_BYTES: tuple[Damage, ...] = (
    *(cut, flipped_bits, junk, hole, nul_bytes, byte_order_mark, crlf, old_line_ends, utf16, latin1, twice),
)
OF_ROWS: tuple[Damage, ...] = (
    *(absurd_cells, absurd_column, mixed_column, swapped_columns, lost_column, double_column, double_rows),
    *(shuffled_rows, ragged_rows, header_only, one_row, huge_field),
)
OF_JSON: tuple[Damage, ...] = (
    *(absurd_values, absurd_key, lost_key, deep_nesting, shuffled_events, other_type, huge_value, same_for_all),
)
OF_PARTS: Mapping[str, tuple[Damage, ...]] = {
    ".csv": (cut, hole, twice, swapped_columns, lost_column, drop_rows, cut_rows, double_rows, shuffled_rows, one_row),
    ".json": (cut, hole, lost_key, drop_events, cut_events, double_events, shuffled_events),
}
"""What loses, doubles or swaps parts of a file, by its ending; values stay those that were recorded."""
BY_ENDING: Mapping[str, tuple[Damage, ...]] = {".csv": OF_BYTES + OF_ROWS, ".json": OF_BYTES + OF_JSON}
