"""A small convolutional network: its kernels take as long as those of a real job, its formats are those of the cube."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.sample import SCENARIOS
from advisor_core.sample.job import simulate
from advisor_core.sample.kernels import ConvolutionWork, PoolingWork, Work
from advisor_core.sample.machine.chip import Chip
from advisor_core.sample.timeline import Timeline
from tests.sample.export import Export

Row = dict[str, str]
FLOAT_BYTES = 4


@pytest.fixture(scope="module")
def healthy() -> list[Timeline]:
    return simulate(SCENARIOS["healthy-cnn"], 0)


def shapes(row: Row, side: str) -> list[list[int]]:
    return [[int(axis) for axis in text.split(",")] for text in row[f"{side} Shapes"].strip('"').split(";") if text]


def elements(shape: list[int]) -> int:
    total = 1
    for axis in shape:
        total *= axis
    return total


def convolution(row: Row) -> Work:
    """The work of a real kernel, from its shapes: pictures are ``[batch, blocks, height, width, 8]``, weights
    ``[blocks x window, channels / 16, 16, 8]``."""
    tensors = [*shapes(row, "Input"), *shapes(row, "Output")]
    pictures, (weight,) = [t for t in tensors if len(t) == 5], [t for t in tensors if len(t) == 4]
    after = min(pictures, key=lambda picture: picture[2] * picture[3])
    if row["Type"] == "Conv2D":
        before, after = pictures
    elif row["Type"] == "Conv2DBackpropInput":
        after, before = pictures
    else:
        before, after = pictures
    flops = 2 * elements([after[0], after[2], after[3]]) * elements([after[1], after[4]]) * weight[0] * weight[3]
    pass_ = {"Conv2D": "forward", "Conv2DBackpropInput": "input", "Conv2DBackpropFilter": "filter"}[row["Type"]]
    nbytes = FLOAT_BYTES * sum(map(elements, [before, after, weight]))
    narrow = before[1] == 1  # three colours in a block of eight
    return ConvolutionWork(pass_, flops, before[0], nbytes, narrow, single=True)  # type: ignore[arg-type]


def pooling(row: Row) -> Work:
    """Without the mask, whose shape in the gradient's row is not that of its memory."""
    tensors = [shape for shape in [*shapes(row, "Input"), *shapes(row, "Output")] if len(shape) == 5 and shape[2] != 9]
    nbytes = FLOAT_BYTES * sum(map(elements, tensors))
    return PoolingWork(elements(tensors[0]), nbytes, "Grad" in row["Type"])


@pytest.mark.parametrize("rank", [0, 1])
def test_durations_are_those_of_a_real_job(profiles: Path, rank: int) -> None:
    """Each of the 14 convolutions and 6 poolings within 35 %, all of them together within 5 %."""
    folder = profiles / "ascend" / "alexnet-ddp-text-level1" / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    with (folder / "kernel_details.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Type"].startswith(("Conv2D", "MaxPool"))]
    rows = [row for row in rows if not row["Name"].endswith("MemSet")]
    assert Counter("MaxPool" in row["Type"] for row in rows) == {False: 14, True: 6}
    chip, real, simulated = Chip(), 0.0, 0.0
    for row in rows:
        work = pooling(row) if "MaxPool" in row["Type"] else convolution(row)
        cost = chip.cost(work)
        took, duration = cost.duration_ns / 1000, float(row["Duration(us)"])
        assert took == pytest.approx(duration, rel=0.35), row["Input Shapes"]
        if cost.cube is not None and not work.narrow:  # type: ignore[union-attr]
            assert cost.cube.ratios["mac"] == pytest.approx(float(row["aic_mac_ratio"]), abs=0.15)
        real, simulated = real + duration, simulated + took
    assert simulated == pytest.approx(real, rel=0.05)


def test_a_convolution_uses_the_cores_that_its_pictures_divide_among() -> None:
    work = ConvolutionWork("forward", 10**10, 32, 10**6, narrow=False, single=True)
    cost = Chip().cost(work)
    assert cost.cube is not None and cost.cube.blocks == 16


def test_tensors_keep_the_formats_of_the_cube_only_where_that_is_allowed(sample: Callable[..., list[Export]]) -> None:
    kept, converted = (sample(name)[0] for name in ("healthy-cnn", "cnn-format-conversions"))
    convolutions = len(SCENARIOS["healthy-cnn"].training.shape.convolutions)  # type: ignore[union-attr]
    steps = SCENARIOS["healthy-cnn"].steps
    # Kept: the pictures on their way in, forward and for the gradient of the first weight. Converted: three tensors per
    # convolution, two per pooling; backward six of a convolution, three of the first, and two of the pooling.
    assert [sum(row["Type"] == "TransData" for row in export.kernels) for export in (kept, converted)] == [
        steps * 2,
        steps * (3 * convolutions + 2 + 6 * (convolutions - 1) + 3 + 2),
    ]
    for export, fmt in ((kept, "NC1HWC0"), (converted, "NCHW")):
        assert {row["Input Formats"].split(";")[0] for row in export.kernels if row["Type"] == "Relu"} == {fmt}
        filters = [row for row in export.kernels if row["Type"] == "Conv2DBackpropFilter"]
        assert {row["Output Formats"] for row in filters} == {"FRACTAL_Z"}


def test_every_weight_is_reduced_once(healthy: list[Timeline]) -> None:
    for timeline in healthy:
        for step in timeline.steps:
            reduced = sum(part.data.nbytes for part in timeline.collectives if part.step == step.number)
            assert 2 * reduced == timeline.resident_bytes  # weights, and as many momenta
    assert len(healthy[0].collectives) > 4 * len(healthy[0].steps)


def test_the_optimizer_updates_all_weights_at_once_or_one_by_one(healthy: list[Timeline]) -> None:
    (apart,) = simulate(SCENARIOS["cnn-unfused-optimizer"], 0)
    weights = 3 * len(SCENARIOS["healthy-cnn"].training.shape.convolutions) + 2  # type: ignore[union-attr]

    def updates(timeline: Timeline) -> int:
        return sum(k.launch is not None and "SGD" in str(parents(k)) for k in timeline.kernels) // len(timeline.steps)

    def parents(task: object) -> list[str]:
        span = task.launch.span  # type: ignore[attr-defined]
        names = []
        while span is not None:
            names.append(span.name)
            span = span.parent
        return names

    assert (updates(healthy[0]), updates(apart)) == (4, 4 * weights)
