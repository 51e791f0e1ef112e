"""GSA001: products whose axes are no multiples of what tensor cores load."""

from __future__ import annotations

import pandas as pd
import pytest

from advisor_core.api.testing import Scene
from tests.advisors.build import host
from tests.advisors.cures import shorter


def products(*made: tuple[float, str, str]) -> pd.DataFrame:
    """Kernels of so many us with the shapes of both operands, dtype included."""
    scene, at = Scene().step(1, -10, 10_020), 0.0
    for duration, left, right in made:
        scene.tensors(at, duration, "MatMulV3", ("7 BF16", left, right))
        at += duration
    advisor = host().advisors["shape_affinity.alignment"]
    store = scene.store()
    observed = advisor.measure(store.view(advisor.needs, advisor.wants), {"aligned": 16, "similar": 4})
    assert len(observed.frame) == 0 or observed.evidence(0)
    return advisor.conform(observed.frame).set_index("n")


def test_an_odd_axis_is_measured_against_aligned_products_of_its_size() -> None:
    """The odd product takes twice the time of an aligned one with as much work: half of it would be saved."""
    found = products((200, "64,1024 BF16", "1024,1001 BF16"), (100, "64,1024 BF16", "1024,1000 BF16"))
    assert found["alignment"].to_dict() == {1001: 2, 1000: 16}
    odd = found.loc[1001]
    assert odd["tflops"] == pytest.approx(2 * 64 * 1024 * 1001 / 200e3 / 1e3)
    assert odd["measured"] and odd["gain_ns"] == pytest.approx(100_000, rel=0.01)
    assert found.loc[1000, "gain_ns"] == 0


def test_without_aligned_products_nothing_is_promised() -> None:
    odd = products((200, "64,1024 BF16", "1024,1001 BF16")).loc[1001]
    assert not odd["measured"] and odd["gain_ns"] == 0 and odd["share_of_total"] == 1, "it is all of the step"


def test_bytes_count_and_not_elements() -> None:
    assert products((10, "8,64 FLOAT", "64,4 FLOAT"))["alignment"].tolist() == [16]
    assert products((10, "8,64 BF16", "64,4 BF16"))["alignment"].tolist() == [8]


def test_batches_are_multiplied() -> None:
    (row,) = products((10, "2,3,8,64 BF16", "2,3,64,16 BF16")).reset_index().to_dict("records")
    assert (row["m"], row["n"], row["k"]) == (8, 16, 64) and row["tflops"] == pytest.approx(2 * 6 * 8 * 16 * 64 / 1e7)


def test_the_cure_makes_the_odd_product_as_quick_as_its_peers() -> None:
    scene = Scene().step(1, -10, 10_020)
    scene.tensors(0, 200, "MatMulV3", ("7 BF16", "64,1024 BF16", "1024,1001 BF16"))
    scene.tensors(200, 100, "MatMulV3", ("7 BF16", "64,1024 BF16", "1024,1000 BF16"))
    advisor, store = host().advisors["shape_affinity.alignment"], scene.store()
    observed = advisor.measure(store.view(advisor.needs, advisor.wants), {"aligned": 16, "similar": 4})
    odd = int(observed.frame.index[observed.frame["n"] == 1001][0])
    assert observed.cure is not None
    cure = observed.cure(odd)
    assert cure is not None
    assert shorter(store, cure.promised(round(observed.frame["gain_ns"][odd]))) == {0: pytest.approx(100_000, rel=0.01)}
