"""Read how a profile was collected: profiler_info*.json and profiler_metadata.json."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.readers.files import HashedFile, regular_size
from advisor_core.loaders.readers.json_events import DECODE_ERRORS
from advisor_core.loaders.readers.problems import Problems
from advisor_core.text.base import Scalar
from advisor_core.text.messages import message

METADATA: Final = "profiler_metadata.json"
VARIABLES: Final = "ENV_VARIABLES"
_INFO: Final = re.compile(r"profiler_info(?:_(\d{1,9}))?\.json")
_LARGEST: Final = 64 << 20


@dataclass(frozen=True)
class Settings:
    """Recorded settings. ``profiler`` keys lack the leading underscores of the file; nested ones are joined by a dot
    (``schedule.active``), lists by commas."""

    level: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    profiler: Mapping[str, Scalar] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    world_size: int | None = None
    parallel: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    group_names: Mapping[str, str] = field(default_factory=dict)


def info_file(directory: Path) -> Path | None:
    """The profiler_info file of a profile; the first by name where there are several."""
    try:
        names = sorted(entry.name for entry in directory.iterdir() if _INFO.fullmatch(entry.name))
    except OSError:
        return None
    return directory / names[0] if names else None


def recorded_rank(directory: Path) -> int | None:
    """The global rank of a profile, from the name of profiler_info, its content, or the metadata."""
    info = info_file(directory)
    if info is not None:
        found = _INFO.fullmatch(info.name)
        if found and found[1]:
            return int(found[1])
        rank = _whole(_peek(info).get("rank_id"))
        if rank is not None and rank >= 0:
            return rank
    return _whole(_section(_peek(directory / METADATA), "distributed_args").get("rank"))


def read_settings(info: Mapping[str, Any], metadata: Mapping[str, Any]) -> Settings:
    """From profiler_info and profiler_metadata; a DB export holds the latter as its table META_DATA."""
    config = _section(info, "config")
    experimental = _section(config, "experimental_config")
    arguments = _section(metadata, "distributed_args")
    parallel = {
        dimension: size
        for name, value in arguments.items()
        if (dimension := vocabulary.parallel_dimension(name)) and (size := _whole(value))
    }
    return Settings(
        level=vocabulary.level(str(experimental.get("_profiler_level", ""))),
        versions={
            name: str(recorded[key])
            for name, recorded, key in (
                ("torch_npu", info, "torch_npu_version"),
                ("cann", info, "cann_version"),
                ("db_schema", metadata, "SCHEMA_VERSION"),
            )
            if recorded.get(key)
        },
        profiler=dict(_flat({**_section(config, "common_config"), **experimental})),
        variables={name: "" if value is None else str(value) for name, value in _section(metadata, VARIABLES).items()},
        world_size=_whole(arguments.get("world_size")),
        parallel=parallel,
        groups=_groups(_section(metadata, "parallel_group_info")),
        group_names=_group_names(_section(metadata, "parallel_group_info")),
    )


def read_object(file: HashedFile, problems: Problems) -> Mapping[str, Any]:
    """A small JSON object; empty, with a diagnostic, where the file holds none."""
    data = file.read(_LARGEST)
    try:
        decoded = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except DECODE_ERRORS as error:
        problems.say("warning", message("loader.not_json", file=problems.file, why=str(error)[:200]))
        return {}
    if not isinstance(decoded, dict):
        problems.say("warning", message("loader.not_json", file=problems.file, why="not an object"))
        return {}
    return decoded


def group_hash(key: str) -> int:
    """The number after ``@`` in communication.json for a key of parallel_group_info: two polynomial hashes of 32 bits,
    with multipliers 29 and 131, side by side."""
    high = low = 0
    for character in key:
        high = (high * 29 + ord(character)) & 0xFFFFFFFF
        low = (low * 131 + ord(character)) & 0xFFFFFFFF
    return high << 32 | low


def _groups(info: Mapping[str, Any]) -> dict[str, Sequence[int]]:
    groups: dict[str, Sequence[int]] = {}
    for key, group in info.items():
        ranks = group.get("global_ranks") if isinstance(group, dict) else None
        if isinstance(ranks, list) and all(_whole(rank) is not None for rank in ranks):
            groups[str(group_hash(key))] = tuple(rank for item in ranks if (rank := _whole(item)) is not None)
    return groups


def _group_names(info: Mapping[str, Any]) -> dict[str, str]:
    named = {key: group.get("group_name") for key, group in info.items() if isinstance(group, dict)}
    return {str(group_hash(key)): name for key, name in named.items() if isinstance(name, str) and name}


def _peek(path: Path) -> Mapping[str, Any]:
    """A small JSON object, or nothing: damage is reported when the rank is loaded."""
    if (regular_size(path) or _LARGEST) >= _LARGEST:
        return {}
    try:
        with HashedFile(path) as file:
            return read_object(file, Problems(path.name))
    except OSError:
        return {}


def _section(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    return number if -(2**31) < number < 2**31 else None


def _flat(body: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Scalar]]:
    for key, value in body.items():
        name = prefix + key.lstrip("_")
        if isinstance(value, dict):
            yield from _flat(value, name + ".")
        elif isinstance(value, list):
            yield name, ",".join(map(str, value))
        elif value is None or isinstance(value, (bool, int, float, str)):
            yield name, value
