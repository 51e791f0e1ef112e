"""Chips as data: how many cores a model has, what they compute per cycle, and what its memory and links move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from advisor_core.text.base import Model
from advisor_core.text.packaged import packaged_yaml


class ChipModel(Model):
    """One model of a chip, and how a profile tells it: by its cores, and by the clock or the size of its memory.

    ``name``: what reports call it; ``vendor``: whose profiles it is in. ``cores``: cube cores or multiprocessors;
    ``vector_cores``: where they are apart, 0 where one core computes both. ``mhz``: the nominal clock of its cores.
    ``compute_capability`` and ``memory_gib``: as recorded for a GPU; 0 where the number is not told.
    ``flops``: operations (multiplications and additions) of the matrix unit of a core per cycle, by dtype of the
    operands; ``HF32`` is FP32 that may be shortened. A dtype that is not listed has no known peak.
    ``reached``: the part of this peak that large products reached at the most, as measured, by dtype.
    ``vector_flops``: of the vector unit of a core. ``hbm_gbs``: GB/s of the device memory, read and written; 0 unknown.
    ``l2_mib``: size of the last cache before it; ``l2_read`` and ``l2_write``: bytes per cycle and core between them,
    0 unknown. ``links``: GB/s of a link in one direction, by transport.
    """

    name: str = Field(min_length=1)
    vendor: str
    cores: int = Field(gt=0)
    vector_cores: int = Field(default=0, ge=0)
    mhz: float = Field(gt=0)
    compute_capability: float = 0.0
    memory_gib: float = Field(default=0.0, ge=0)
    flops: Mapping[str, float] = Field(default_factory=dict)
    reached: Mapping[str, float] = Field(default_factory=dict)
    vector_flops: Mapping[str, float] = Field(default_factory=dict)
    hbm_gbs: float = Field(default=0.0, ge=0)
    l2_mib: float = Field(default=0.0, ge=0)
    l2_read: float = Field(default=0.0, ge=0)
    l2_write: float = Field(default=0.0, ge=0)
    links: Mapping[str, float] = Field(default_factory=dict)


def read_chips(package: str, name: str, vendor: str) -> tuple[ChipModel, ...]:
    """The chips of a YAML file of a package: ``architectures``, with what their chips have in common, and ``chips``
    by name, each with its ``architecture``. Raises `ValueError` for a field that is none."""
    read = packaged_yaml(package, name)
    return tuple(_chip(key, vendor, dict(entry), read["architectures"]) for key, entry in read["chips"].items())


def _chip(name: str, vendor: str, entry: dict[str, Any], architectures: Mapping[str, Mapping[str, Any]]) -> ChipModel:
    common = architectures[entry.pop("architecture")]
    return ChipModel.model_validate({"name": name, "vendor": vendor, **common, **entry})
