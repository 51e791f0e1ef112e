"""communication.json and communication_matrix.json: collectives, what they moved, and the links between ranks.

Small files (a few hundred bytes per operation), decoded whole. ``source_row`` is the byte offset of the key of the
operation (of the link, in the matrix).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pandas as pd

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import COLLECTIVE_BANDWIDTH, COLLECTIVES, LINKS
from advisor_core.loaders.readers import times
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.json_events import DECODE_ERRORS
from advisor_core.loaders.readers.problems import Problems
from advisor_core.text.messages import message

LARGEST: Final = 1 << 30
"""Bytes of a communication file that is still read; beyond it memory would not be bounded."""

_TOTAL: Final = "Total Op Info"
_decoder = msgspec.json.Decoder(float_hook=str)  # floats as text: a start in us does not fit a float64 to the ns


def read_communication(file: HashedFile, problems: Problems) -> dict[str, pd.DataFrame]:
    """The tables collectives and collective_bandwidth. Raises `Unavailable`."""
    operations: list[dict[str, Any]] = []
    moved: list[dict[str, Any]] = []
    for step, kind, key, offset, body in _operations(*_decode(file, problems.file)):
        name, group = _split(key)
        common = {"step": step, "name": name, "group": group, "source_row": offset}
        timing, start = _mapping(body, "Communication Time Info"), times.NO_TIME
        try:
            start = times.exact_ns(str(timing["Start Timestamp(us)"]))
            elapse = _span(timing, "Elapse Time(ms)")
        except (KeyError, ValueError):
            elapse = times.NO_TIME
        if elapse == times.NO_TIME:
            problems.count("loader.operations_dropped", "", 1, [(offset, key)])
            continue
        operations.append(
            {
                **common,
                "kind": kind,
                "start_ns": start,
                "elapse_ns": elapse,
                "transit_ns": _span(timing, "Transit Time(ms)"),
                "wait_ns": _span(timing, "Wait Time(ms)"),
                "synchronization_ns": _span(timing, "Synchronization Time(ms)"),
                "idle_ns": _span(timing, "Idle Time(ms)"),
            }
        )
        for transport, flow in _items(_mapping(body, "Communication Bandwidth Info")):
            row = {**common, "transport": transport, **_volume(flow), **_packets(_mapping(flow, "Size Distribution"))}
            row["large_packet_ratio"] = _number(flow, "Large Packet Ratio")
            if row["bytes"] > 0 or row["transit_ns"] > 0:
                moved.append(row)
    return {
        "collectives": COLLECTIVES.conform(pd.DataFrame(operations)),
        "collective_bandwidth": COLLECTIVE_BANDWIDTH.conform(pd.DataFrame(moved)),
    }


def read_matrix(file: HashedFile, problems: Problems) -> dict[str, pd.DataFrame]:
    """The table links. Raises `Unavailable`."""
    data, steps = _decode(file, problems.file)
    rows: list[dict[str, Any]] = []
    for step, _, key, offset, body in _operations(data, steps):
        name, group = _split(key)
        for pair, link in _items(body):
            offset = _find(data, pair, offset)
            ranks = re.fullmatch(r"(\d{1,9})-(\d{1,9})", pair)
            if ranks is None:
                problems.count("loader.operations_dropped", "", 1, [(offset, f"{key} {pair}")])
                continue
            rows.append(
                {
                    "step": step,
                    "name": name,
                    "group": group,
                    "op": _split(str(link.get("Op Name", "")))[0],
                    "source_rank": int(ranks[1]),
                    "target_rank": int(ranks[2]),
                    "transport": str(link.get("Transport Type", "")),
                    **_volume(link),
                    "source_row": offset,
                }
            )
    return {"links": LINKS.conform(pd.DataFrame(rows))}


def _decode(file: HashedFile, name: str) -> tuple[bytes, Mapping[str, Any]]:
    data = file.read(LARGEST)
    if len(data) == LARGEST:
        raise Unavailable(message("loader.too_large", file=name, bytes=LARGEST))
    if not data.strip():
        raise Unavailable(message("loader.empty", file=name))
    try:
        decoded = _decoder.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except DECODE_ERRORS as error:
        raise Unavailable(message("loader.not_json", file=name, why=str(error)[:200])) from None
    if not isinstance(decoded, dict):
        raise Unavailable(message("loader.not_json", file=name, why="not an object"))
    return data, decoded


def _operations(data: bytes, steps: Mapping[str, Any]) -> Iterator[tuple[int, str, str, int, Mapping[str, Any]]]:
    """Step, kind, key, byte offset of the key and content of every operation, in the order of the file."""
    offset = 0
    for step_name, sections in _items(steps):
        offset = _find(data, step_name, offset)
        step = re.fullmatch(r"\D*(\d{1,18})", step_name)
        for kind, operations in _items(sections):
            offset = _find(data, kind, offset)
            for key, body in _items(operations):
                offset = _find(data, key, offset)
                if not key.startswith(_TOTAL):
                    yield int(step[1]) if step else -1, kind, key, offset, body


_COLON = re.compile(rb"\s*:")


def _find(data: bytes, key: str, start: int) -> int:
    """Offset of the next ``"key":`` at or after ``start``; ``start`` where it is spelled in another way."""
    for spelled in (json.dumps(key, ensure_ascii=False).encode("utf-8", "replace"), json.dumps(key).encode()):
        at = data.find(spelled, start)
        while at >= 0 and not _COLON.match(data, at + len(spelled)):
            at = data.find(spelled, at + 1)
        if at >= 0:
            return at
    return start


def _split(key: str) -> tuple[str, str]:
    """Name and group hash of ``hcom_allReduce__586_0_1@17522688603477080586``."""
    name, _, group = key.rpartition("@")
    return (name, group) if name else (key, "")


def _mapping(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def _items(body: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The members that are objects themselves."""
    if isinstance(body, dict):
        for key, value in body.items():
            if isinstance(value, dict):
                yield key, value


def _number(body: Mapping[str, Any], key: str) -> float:
    return float(times.numbers([body.get(key)])[0])


def _span(body: Mapping[str, Any], key: str) -> int:
    """ms to ns; -1 where there is no such duration."""
    return int(times.spans_ns(times.numbers([body.get(key)]) * 1000)[0])


def _bytes(megabytes: float) -> int:
    """The export's MB are 10**6 bytes."""
    return round(megabytes * 1e6) if 0 <= megabytes < 2**40 else -1


def _volume(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "bytes": _bytes(_number(body, "Transit Size(MB)")),
        "transit_ns": _span(body, "Transit Time(ms)"),
        "bandwidth": _number(body, "Bandwidth(GB/s)") * 1e9,
    }


def _packets(distribution: Mapping[str, Any]) -> dict[str, int]:
    """Number of packets and the largest, of ``{"2.064384": [12, 1.57]}``: size in MB to count and ms."""
    counts = [entry[0] for entry in distribution.values() if isinstance(entry, list) and entry]
    sizes = times.numbers(list(distribution))
    return {
        "packets": sum(count for count in counts if isinstance(count, int)),
        "max_packet_bytes": max((_bytes(size) for size in sizes.tolist()), default=-1),
    }
