"""The links of a rank: which ranks of the job they join, and how fast each is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from advisor_core.api.testing import Scene
from advisor_core.facts.communication.links import link_speeds
from advisor_core.run.link_matrix import rank_links

MB = 10**6


def sending(rank: int, pairs: Sequence[tuple[int, int]], took_us: float = 100) -> Scene:
    """A rank that has these links in group 77, of 1 MB each."""
    scene = Scene(rank=rank).kernel(0, 10)
    for source, target in pairs:
        scene.add(
            "links", step=1, name="send-total@77", group="77", source_rank=source, target_rank=target,
            transport="HCCS", bytes=MB, transit_us=took_us,
        )  # fmt: skip
    return scene


@pytest.mark.parametrize(
    ("rank", "pairs", "about", "found"),
    [
        (5, [(1, 0), (1, 2)], {"groups": {"77": [3, 5, 9]}}, [(5, 3), (5, 9)]),  # places in the group
        (9, [(9, 1)], {"groups": {"77": [1, 9]}}, [(9, 1)]),  # ranks of the job
        (1, [(1, 0), (1, 2)], {"world_size": 3}, [(1, 0), (1, 2)]),  # a group of all ranks
        (1, [(1, 0), (1, 2)], {"world_size": 8}, [(-1, -1), (-1, -1)]),
        (1, [(1, 0)], {"groups": {"77": [4, 5]}}, [(-1, -1)]),  # another group of the same name
    ],
)
def test_links_join_ranks_of_the_job(
    rank: int, pairs: list[tuple[int, int]], about: dict[str, Any], found: list[tuple[int, int]]
) -> None:
    frame = sending(rank, pairs).store(**about)[link_speeds]
    assert list(zip(frame["source"].tolist(), frame["target"].tolist(), strict=True)) == found


def test_the_only_link_of_its_kind_has_no_median() -> None:
    frame = sending(0, [(0, 1)]).store()[link_speeds]
    assert frame["bandwidth"].tolist() == [1e10]
    assert frame["links"].tolist() == [1] and frame["median_bandwidth"].isna().all()


def test_what_a_link_loses_is_told_per_step() -> None:
    scene = sending(0, [(0, 1), (0, 2)]).add(
        "links", step=2, name="send-total@77", group="77", source_rank=0, target_rank=1, transport="HCCS",
        bytes=MB, transit_us=300,
    ).kernel(60, 10).step(1, 0, 50).step(2, 50, 50)  # fmt: skip
    frame = rank_links(scene.store())
    assert frame is not None
    # 2 MB in 400 us against 1 MB in 100 us: 200 us in two steps.
    assert frame["bytes"].tolist() == [MB, MB // 2]
    assert frame["lost_ns"].tolist() == [100_000, 0]
