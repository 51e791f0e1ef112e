"""What a chip can do at most, from cores, clock and memory of a recording."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest

from advisor_core.api import ChipModel, hookimpl
from advisor_core.contracts.missing import Unavailable
from advisor_core.facts.device.peaks import Peaks, peaks
from advisor_core.plugins.host import load_host
from advisor_core.testing import Scene
from advisor_core.testing.scene_words import GPU

BULK_BYTES = 2 * 4 * (1 << 27)


def peaks_of(scene: Scene | None = None, **chip: Any) -> Peaks:
    scene = scene or Scene().kernel(0, 50)
    return scene.store(chip=chip)[peaks]


def bulk(us: float) -> Scene:
    """A copy of half a gigabyte."""
    tensor = f"{1 << 27} FLOAT"
    return Scene().tensors(0, us, "Relu", [tensor], [tensor], core="AI_VECTOR_CORE")


def test_cores_and_clock_tell_the_model() -> None:
    found = peaks_of(ai_core_num=24, aiv_num=48, aic_frequency=1800)
    assert found.models == ("Ascend 910B2", "Ascend 910C (9381)")
    assert found.of("BF16") == pytest.approx(353.8944e12), "24 x 1800 MHz x 8192"
    assert found.of("INT8") == 2 * found.of("BF16") and found.of("FLOAT") == found.of("BF16") / 4
    assert (found.hbm, found.l2_bytes, found.links["HCCS"]) == (1.6e12, 192 << 20, 28e9)
    assert math.isnan(found.of("DOUBLE"))


@pytest.mark.parametrize(
    ("rate", "hbm", "inferred"), [(0.79e12, 0.8e12, True), (1.27e12, 1.6e12, True), (0.3e12, None, True)]
)
def test_the_quickest_long_kernels_tell_unlike_memories(rate: float, hbm: float | None, inferred: bool) -> None:
    """20 cores at 1650 MHz are in no table: 910B3 or 910B4, whose memories differ by a factor of two."""
    found = peaks_of(bulk(BULK_BYTES / rate * 1e6), ai_core_num=20, aiv_num=40, aic_frequency=1650)
    assert "Ascend 910B3" in found.models and "Ascend 910B4" in found.models
    assert found.of("BF16") == pytest.approx(270.336e12), "the measured clock counts, not that of the table"
    assert found.hbm_inferred is inferred
    assert math.isnan(found.hbm) if hbm is None else found.hbm == hbm


def test_without_a_long_kernel_the_memory_stays_unknown() -> None:
    assert math.isnan(peaks_of(ai_core_num=20, aiv_num=40, aic_frequency=1650).hbm)


def test_of_a_known_generation_only_the_cores_are_known() -> None:
    found = peaks_of(ai_core_num=25, aiv_num=50, aic_frequency=1800)
    assert found.models == () and found.of("BF16") == pytest.approx(25 * 1.8e9 * 8192)
    assert math.isnan(found.hbm)


@pytest.mark.parametrize("chip", [{}, {"ai_core_num": 3, "aiv_num": 6, "aic_frequency": 1800}])
def test_an_unknown_chip_has_no_peaks(chip: dict[str, int]) -> None:
    with pytest.raises(Unavailable):
        peaks_of(**chip)


@pytest.mark.parametrize(
    ("cores", "capability", "gib", "model", "tflops"),
    [
        (108, 8.0, 39.6, "A100 (40 GB)", 312),
        (132, 9.0, 79.2, "H100 SXM", 989),
        (80, 7.0, 31.7, "V100 (32 GB)", 125),
        (304, 9.4, 192.0, "MI300X", 1307),
    ],
)
def test_gpus_are_told_by_what_their_trace_records(
    cores: int, capability: float, gib: float, model: str, tflops: float
) -> None:
    recorded = {"multiprocessors": cores, "compute_capability": capability, "memory_bytes": int(gib * (1 << 30))}
    found = Scene(words=GPU).kernel(0, 50).store(chip=recorded, vendor="gpu")[peaks]
    assert found.models == (model,) and found.basis == "device"
    assert found.of("FLOAT16") == pytest.approx(tflops * 1e12, rel=0.01)


def test_a_plugin_adds_a_chip() -> None:
    module = ModuleType("other")
    chip = ChipModel(name="Ours", vendor="ascend", cores=3, vector_cores=6, mhz=1000, flops={"BF16": 8192})
    module.advisor_register_chips = hookimpl(lambda registry: registry.add(chip))  # type: ignore[attr-defined]
    host = load_host([("other", module)])
    assert "Ours" in [model.name for model in host.vocabulary("ascend").chips]
    assert "Ours" not in [model.name for model in host.vocabulary("gpu").chips]
