"""The matrix of links: all ranks in one, many ranks by neighbours, slow ones by their findings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from advisor_core.result.finding import Finding
from advisor_core.run.link_matrix import HOST_RANKS, LISTED, SINGLE_RANKS, link_matrix
from tests.report_fixtures import training

GB = 10**9


def frame(rank: int, targets: Sequence[int], bandwidth: float = 10 * GB, placed: bool = True) -> pd.DataFrame:
    """What a rank sent in one group, 1 GB to each of the others."""
    count = len(targets)
    return pd.DataFrame(
        {
            "group": "77",
            "source_rank": rank,
            "target_rank": list(targets),
            "transport": "HCCS",
            "source": rank if placed else -1,
            "target": list(targets) if placed else -1,
            "bytes": np.full(count, GB),
            "transit_ns": np.full(count, round(GB / bandwidth * 1e9)),
            "bandwidth": bandwidth,
            "links": count,
            "median_bandwidth": 10.0 * GB,
            "ratio": bandwidth / (10 * GB),
            "lost_ns": max(0, round(GB / bandwidth * 1e9 - GB / (10 * GB) * 1e9)),
        }
    )


def about(rank: int, target: int) -> Finding:
    subject = {"group": "77", "source_rank": rank, "target_rank": target, "transport": "HCCS"}
    found = training().findings[0]
    return found.model_copy(update={"subject": subject, "ranks": [rank], "fingerprint": f"slow-{rank}-{target}"})


def ring(count: int) -> dict[int, pd.DataFrame]:
    return {rank: frame(rank, [(rank + 1) % count]) for rank in range(count)}


@pytest.mark.parametrize(("count", "width"), [(2, 1), (8, 1), (SINGLE_RANKS, 1), (64, HOST_RANKS), (1024, 32)])
def test_rows_are_ranks_or_neighbours(count: int, width: int) -> None:
    matrix = link_matrix(ring(count), [])
    assert matrix is not None
    assert matrix.ranks_per_cell == width
    assert matrix.rows == list(range(0, count, width)) and len(matrix.rows) <= SINGLE_RANKS
    assert sum(cell.links for cell in matrix.cells) == matrix.recorded == count
    assert len(matrix.links) == min(count, LISTED)


def test_a_cell_has_what_moved_over_the_time_that_it_took() -> None:
    """1 GB at 10 GB/s and 1 GB at 2.5 GB/s: 2 GB in 0.5 s."""
    ranks = ring(64)
    ranks[0] = frame(0, [1], bandwidth=2.5 * GB)
    ranks = {rank: found for rank, found in ranks.items() if rank in (0, 1) or rank >= HOST_RANKS}
    matrix = link_matrix(ranks, [])
    assert matrix is not None
    cell = next(cell for cell in matrix.cells if (cell.source, cell.target) == (0, 0))
    assert cell.links == 2 and cell.bandwidth == pytest.approx(4 * GB)


def test_slow_links_are_those_of_findings() -> None:
    """Also where a slower link exists that no finding is about: the test is that of the rule."""
    ranks = ring(4)
    ranks[2] = frame(2, [3], bandwidth=GB)
    matrix = link_matrix(ranks, [about(1, 2), training().findings[0]])
    assert matrix is not None
    assert [(link.source, link.target, link.findings) for link in matrix.links][:2] == [
        (1, 2, ["slow-1-2"]),
        (2, 3, []),
    ]
    assert [(cell.source, cell.target) for cell in matrix.cells if cell.findings] == [(1, 2)]


def test_groups_without_ranks_are_placed_only_where_places_are_ranks() -> None:
    known = link_matrix({0: frame(0, [1, 2], placed=False), 1: frame(1, [0, 2], placed=False)}, [])
    assert known is not None
    assert (known.rows, known.unplaced, known.assumed) == ([0, 1, 2], 0, 2)
    alone = link_matrix({0: frame(0, [1, 2], placed=False)}, [])
    assert alone is not None
    assert (alone.rows, alone.cells, alone.links, alone.unplaced) == ([], [], [], 2)
    shifted = {4: frame(4, [1], placed=False).assign(source_rank=0), 5: frame(5, [0], placed=False)}
    other = link_matrix(shifted, [])
    assert other is not None and other.unplaced == 2


def test_no_links_no_matrix() -> None:
    assert link_matrix({}, []) is None
