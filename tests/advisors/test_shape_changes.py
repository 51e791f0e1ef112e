"""Shapes that are not the same in every step."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisors.shape_changes import varying, varying_share

rows = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from(["", "1", "2", "3"]), st.integers(4, 6)), min_size=1, max_size=30
)


@given(rows)
def test_a_kernel_varies_if_a_step_lacks_its_type_with_its_shapes(listed: list[tuple[str, str, int]]) -> None:
    frame = pd.DataFrame(listed, columns=["type", "input_shapes", "step"]).astype(
        {"type": "category", "input_shapes": "category"}
    )
    steps = frame["step"].nunique()
    found = {(kind, shapes): {row[2] for row in listed if row[:2] == (kind, shapes)} for kind, shapes, _ in listed}
    expected = [len(found[row[:2]]) < steps for row in listed]
    assert varying(frame, steps).tolist() == expected
    share = varying_share(frame, steps)
    known = steps > 1 and any(shapes for _, shapes, _ in listed)
    assert share == np.mean(expected) if known else np.isnan(share)
