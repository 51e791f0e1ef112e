"""Whose GPU a profile is of: advice about tensor cores, TF32 or nvidia-smi depends on it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from advisor_core.contracts.profile import Profile
from advisor_core.facts.context import context
from advisor_core.testing import fact_store, profile, table


def context_of(about: Profile, **tables: Any) -> dict[str, Any]:
    return dict(fact_store(about=about, **tables)[context])


def gpu(**about: Any) -> Profile:
    return dataclasses.replace(profile(), vendor="gpu", **about)


@pytest.mark.parametrize(
    ("about", "amd"),
    [
        # as deviceProperties and versions of real traces (H100, MI300X with and without a name) spell them
        (gpu(chip={"name": "NVIDIA H100 80GB HBM3", "warp_size": 32, "compute_capability": 9.0}), False),
        (gpu(chip={"name": "AMD Instinct MI300X", "warp_size": 64, "compute_capability": 9.4}), True),
        (gpu(chip={"warp_size": 64, "compute_capability": 9.4}), True),
        (gpu(versions={"hip_runtime": "6.3"}), True),
        (gpu(versions={"cuda_runtime": "12.4"}), False),
        (gpu(), None),
        (dataclasses.replace(profile(), vendor="ascend", chip={"name": "Ascend910B"}), None),
    ],
)
def test_the_maker_is_told_by_name_wavefront_or_version(about: Profile, amd: bool | None) -> None:
    assert context_of(about)["amd"] is amd


@pytest.mark.parametrize(("call", "amd"), [("hipLaunchKernel", True), ("cudaLaunchKernel", False), ("other", None)])
def test_without_properties_the_calls_of_the_runtime_tell(call: str, amd: bool | None) -> None:
    events = table("host_events", [{"category": "runtime", "name": call, "start_us": 0, "duration_us": 1}])
    assert context_of(gpu(), host_events=events)["amd"] is amd


def test_the_architecture_of_amd_is_no_compute_capability_of_nvidia() -> None:
    assert (
        context_of(gpu(chip={"name": "Tesla V100-SXM2-16GB", "compute_capability": 7.0}))["compute_capability"] == 7.0
    )
    assert context_of(gpu(chip={"warp_size": 64, "compute_capability": 9.4}))["compute_capability"] is None
