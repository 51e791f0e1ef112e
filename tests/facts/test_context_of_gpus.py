"""Whose GPU a profile is of: advice about tensor cores, TF32 or nvidia-smi depends on it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from advisor_core.facts.context import context
from advisor_core.loaders.kineto.maker import maker
from advisor_core.testing import fact_store, profile, table
from advisor_core.text.base import Scalar


@pytest.mark.parametrize(
    ("chip", "versions", "made_by"),
    [
        # as deviceProperties and versions of real traces (H100, MI300X with and without a name) spell them
        ({"name": "NVIDIA H100 80GB HBM3", "warp_size": 32, "compute_capability": 9.0}, {}, "NVIDIA"),
        ({"name": "AMD Instinct MI300X", "warp_size": 64, "compute_capability": 9.4}, {}, "AMD"),
        ({"warp_size": 64, "compute_capability": 9.4}, {}, "AMD"),
        ({}, {"hip_runtime": "6.3"}, "AMD"),
        ({}, {"cuda_runtime": "12.4"}, "NVIDIA"),
        ({}, {}, ""),
    ],
)
def test_the_maker_is_told_by_name_wavefront_or_version(
    chip: dict[str, Scalar], versions: dict[str, str], made_by: str
) -> None:
    assert maker(chip, versions, None) == made_by


@pytest.mark.parametrize(("call", "made_by"), [("hipLaunchKernel", "AMD"), ("cudaLaunchKernel", "NVIDIA"), ("o", "")])
def test_without_properties_the_calls_of_the_runtime_tell(call: str, made_by: str) -> None:
    events = table("host_events", [{"category": "runtime", "name": call, "start_us": 0, "duration_us": 1}])
    assert maker({}, {}, events) == made_by


def context_of(made_by: str, capability: float) -> dict[str, Any]:
    about = dataclasses.replace(profile(), vendor="gpu", maker=made_by, chip={"compute_capability": capability})
    return dict(fact_store(about=about)[context])


def test_rules_are_told_the_maker() -> None:
    assert [context_of(one, 7.0)["amd"] for one in ("AMD", "NVIDIA", "")] == [True, False, None]


def test_the_architecture_of_amd_is_no_compute_capability_of_nvidia() -> None:
    assert context_of("NVIDIA", 7.0)["compute_capability"] == 7.0
    assert context_of("AMD", 9.4)["compute_capability"] is None
