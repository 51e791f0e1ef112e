"""Read the driver's description of the device, ``PROF_*/device_*/info.json.N`` beside the raw data.

Follows the source of msprof (its reader of the file and the files of its tests); no real one has been seen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from advisor_core.loaders.ascend_pytorch import settings
from advisor_core.loaders.readers.files import HashedFile, regular_size
from advisor_core.loaders.readers.problems import Problems
from advisor_core.result.run import Diagnostic, InputFile
from advisor_core.text.base import Scalar

_NAME: Final = re.compile(r"info\.json(\.\d{1,4})?")
_DEVICE: Final = re.compile(r"device_(\d{1,4})")
_LARGEST: Final = 1 << 20
_CORES: Final = ("ai_core_num", "aiv_num")
_CLOCKS: Final = ("aic_frequency", "aiv_frequency")


@dataclass(frozen=True)
class DeviceInfo:
    """``chip``: ``ai_core_num`` and ``aiv_num`` (cores), ``aic_frequency`` and ``aiv_frequency`` (MHz, nominal), as far
    as recorded. ``rank``: global rank of the process, None where it has none."""

    device: int
    path: Path
    chip: Mapping[str, Scalar] = field(default_factory=dict)
    rank: int | None = None
    file: InputFile | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


def find_device_info(collected: Path, profile: Path) -> list[DeviceInfo]:
    """Of every device that was collected below a ``PROF_*`` directory, by device id; empty where the raw data are not
    kept. ``profile``: the directory that names of files are relative to. A damaged file costs its device."""
    infos = []
    for directory in sorted(_entries(collected)):
        device = _DEVICE.fullmatch(directory.name)
        if device is None:
            continue
        for path in sorted(_entries(directory)):
            if _NAME.fullmatch(path.name) and (regular_size(path) or _LARGEST) < _LARGEST:
                infos.append(_read(path, int(device[1]), path.relative_to(profile).as_posix()))
                break
    return sorted(infos, key=lambda info: info.device)


def recorded_device(profile: Path) -> DeviceInfo | None:
    """Of the one device of a framework's profile that keeps its ``PROF_*``; None where there are none or several."""
    infos = [
        info
        for directory in sorted(_entries(profile))
        if directory.name.startswith("PROF_")
        for info in find_device_info(directory, profile)
    ]
    return infos[0] if len({info.device for info in infos}) == 1 else None


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _read(path: Path, device: int, name: str) -> DeviceInfo:
    problems = Problems(name)
    try:
        with HashedFile(path) as file:
            body = settings.read_object(file, problems)
            read = file.finish(name)
    except OSError:
        return DeviceInfo(device, path)
    devices = body.get("DeviceInfo")
    first = devices[0] if isinstance(devices, list) and devices and isinstance(devices[0], dict) else {}
    cores = {name: _number(first.get(name)) for name in _CORES}
    chip: dict[str, Scalar] = {name: int(number) for name, number in cores.items() if number is not None}
    if not chip.get("ai_core_num"):  # 0 where the driver did not say
        chip.pop("ai_core_num", None)
    chip |= {name: number for name in _CLOCKS if (number := _number(first.get(name)))}
    rank = _number(body.get("rank_id"))
    whole = int(rank) if rank is not None and rank < 2**31 and rank.is_integer() else None
    return DeviceInfo(device, path, chip, whole, read, tuple(problems.diagnostics()))


def _number(value: Any) -> float | None:
    """A number that is not negative (-1 stands for none), from a number or its text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
