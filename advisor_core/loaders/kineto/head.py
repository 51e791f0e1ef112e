"""The head of a Kineto trace, outside of its events: the marks of one, and the records about the job."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from advisor_core.loaders.kineto import words
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.gzip_file import GzipFile, is_gzip
from advisor_core.remote.copies import beginning, here
from advisor_core.text.base import Scalar

TRACE_SUFFIXES: Final = (".json", ".json.gz")
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_PIECE: Final = 64 << 10
_LONGEST_HEAD: Final = 16 << 20
"""Before the events stand the properties of the devices and the groups of the job: 20 bytes per rank of each group."""
_KEYS: Final = frozenset({"schemaVersion", "deviceProperties", "distributedInfo", "cupti_version", "roctracer_version"})
_SIGNS: Final = re.compile(
    rb'"cat"\s*:\s*"(?:cuda_runtime|cuda_driver|gpu_memcpy|gpu_memset|gpu_user_annotation|kernel|Kernel|ac2g)"'
    rb'|"(?:[Ee]xternal id|Ev Idx|Python parent id)"\s*:'
)
"""In the first events of a trace whose properties stand behind them: some tools write the members in another order."""
_OF_OTHERS: Final = re.compile(rb'"(?:Ascend Hardware|CANN|async_npu)"')
SLICE: Final = "npu-advisor"
"""A member that our slices of traces have before the events (`advisor_core.slicing`): a part is no profile."""
_OPTIONS: Final = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_VERSIONS: Final = {"cuda_runtime": "cuda_runtime_version", "cuda_driver": "cuda_driver_version",
    "hip_runtime": "hip_runtime_version", "cupti": "cupti_version", "roctracer": "roctracer_version"}  # fmt: skip


class NoTraceError(Exception):
    """A file that should hold a trace cannot be read as one; the message says why."""


def open_trace(path: Path) -> HashedFile | GzipFile:
    """The content of a trace, compressed or not. Raises OSError."""
    return GzipFile(path) if is_gzip(path) else HashedFile(path)


def peek(path: Path) -> Mapping[str, Any] | None:
    """The members before the events, for a file that is recognisably a Kineto trace; None for any other. Raises
    OSError, and `NoTraceError` where the file is compressed and nothing of it can be inflated."""
    begins = beginning(path)
    members, is_enough = _peek(begins.path)
    return members if is_enough or begins.whole else _peek(here(path))[0]


def _peek(path: Path) -> tuple[Mapping[str, Any] | None, bool]:
    """As `peek`, and whether the file did not end before all was found."""
    with open_trace(path) as file:
        data = file.read(_PIECE)
        if not data and isinstance(file, GzipFile) and file.damage:
            raise NoTraceError("the compressed file is damaged" if file.damage == "damaged" else "the file is cut off")
        if not data.lstrip().startswith((b"{", b"\xef\xbb\xbf{")):
            return None, bool(data)
        while (events := _EVENTS.search(data)) is None and len(data) < _LONGEST_HEAD:
            more = file.read(len(data))
            if not more:
                break
            data += more
        if events is None:
            return None, len(data) >= _LONGEST_HEAD
        further = file.read(_PIECE)
        sample = data[events.end() :] + further
    return _recognised(data[: events.start()], sample), len(further) == _PIECE


def _recognised(head: bytes, sample: bytes) -> Mapping[str, Any] | None:
    """The members before the events, where they or the first events are those of a Kineto trace."""
    members = joined(head, b"")
    if SLICE in members:
        return None
    if _OF_OTHERS.search(sample):
        return None
    return members if _KEYS & members.keys() or _SIGNS.search(sample) else None


def joined(head: bytes, rest: bytes) -> Mapping[str, Any]:
    """The members of the object around the events, from what precedes and what follows them; of damaged ones those
    that can be read."""
    members: dict[str, Any] = {}
    for text in (head.rstrip().rstrip(b",") + b"}", b"{" + rest.lstrip().lstrip(b"]").lstrip().lstrip(b",")):
        try:
            read = json.loads(text.decode("utf-8-sig", "replace"), strict=False)
        except (ValueError, RecursionError):
            continue
        members |= read if isinstance(read, dict) else {}
    return members


@dataclass(frozen=True)
class Recorded:
    """The members around the events. ``base_ns``: the origin of the times of events. ``chips``: the
    properties of each device, by its id; the keys are those of ``Profile.chip``."""

    base_ns: int
    rank: int | None
    world_size: int | None
    groups: Mapping[str, Sequence[int]]
    group_names: Mapping[str, str]
    profiler: Mapping[str, Scalar]
    versions: Mapping[str, str]
    chips: Mapping[int, Mapping[str, Scalar]]

    def chip(self, device: int | None) -> Mapping[str, Scalar]:
        """The properties of a device; where its number is not among the recorded ones (a process that sees a part of
        the machine's devices), those that all of them have."""
        every = list(self.chips.values())
        alike = every[0] if every and all(chip == every[0] for chip in every) else {}
        return alike if device is None else self.chips.get(device, alike)


def recorded(members: Mapping[str, Any]) -> Recorded:
    """From the members of the object around the events."""
    job = _section(members, "distributedInfo")
    versions = {name: _version(members[key]) for name, key in _VERSIONS.items() if members.get(key)}
    if job.get("nccl_version"):
        versions["nccl"] = str(job["nccl_version"])
    return Recorded(
        base_ns=_whole(members.get("baseTimeNanoseconds")) or 0,
        rank=_whole(job.get("rank")),
        world_size=_whole(job.get("world_size")),
        groups=_groups(job.get("pg_config")),
        group_names=_group_names(job.get("pg_config")),
        profiler={name: bool(members[name]) for name in _OPTIONS if isinstance(members.get(name), (bool, int))},
        versions=versions,
        chips=_chips(members.get("deviceProperties")),
    )


def recorded_rank(path: Path, members: Mapping[str, Any]) -> int | None:
    """The rank of a trace: as recorded, else as its name says."""
    rank = recorded(members).rank
    named = words.RANK_IN_NAME.search(path.name)
    return int(named[1]) if rank is None and named else rank


def _chips(properties: Any) -> dict[int, dict[str, Scalar]]:
    chips: dict[int, dict[str, Scalar]] = {}
    for device in properties if isinstance(properties, list) else ():
        number = _whole(device.get("id")) if isinstance(device, dict) else None
        if number is None:
            continue
        capability = [_whole(device.get(key)) for key in ("computeMajor", "computeMinor")]
        chip: dict[str, Scalar] = {
            "name": str(device.get("name") or ""),
            "multiprocessors": _whole(device.get("numSms")),
            "memory_bytes": _whole(device.get("totalGlobalMem"), 1 << 62),
            "compute_capability": None if None in capability else float(".".join(map(str, capability))),
            "warp_size": _whole(device.get("warpSize")),
        }
        chips[number] = {name: value for name, value in chip.items() if value not in (None, "")}
    return chips


def _groups(config: Any) -> dict[str, Sequence[int]]:
    groups: dict[str, Sequence[int]] = {}
    for group in config if isinstance(config, list) else ():
        ranks = group.get("ranks") if isinstance(group, dict) else None
        name = group.get("pg_name") if isinstance(group, dict) else None
        if isinstance(ranks, list) and ranks and all(_whole(rank) is not None for rank in ranks) and name is not None:
            groups[str(name)] = tuple(int(rank) for rank in ranks)
    return groups


def _group_names(config: Any) -> dict[str, str]:
    """The names that a framework gave its groups; PyTorch writes ``undefined`` for one that has no name."""
    named = {
        group["pg_name"]: group.get("pg_desc")
        for group in (config if isinstance(config, list) else ())
        if isinstance(group, dict) and isinstance(group.get("pg_name"), (str, int))
    }
    known = {str(key): name for key, name in named.items() if isinstance(name, str)}
    return {key: name for key, name in known.items() if name not in ("", "undefined")}


def _version(value: Any) -> str:
    """``12.4`` of 12040, as CUDA numbers its versions; other numbers as they are."""
    number = _whole(value)
    if number is None or not 9000 <= number < 100_000:
        return str(value)
    return f"{number // 1000}.{number % 1000 // 10}"


def _section(members: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = members.get(key)
    return value if isinstance(value, dict) else {}


def _whole(value: Any, most: int = 2**63) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    return number if 0 <= number < most else None
