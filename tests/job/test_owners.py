"""Every moment of a step of a job has one owner, and waiting leads on to what the last rank did."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisor_core.job.job_replay import JobReplay
from advisor_core.result.plan import Owner
from tests.job.jobs import TRANSFER_US, meeting, modelled

US = 1_000


def owners(replayed: JobReplay) -> dict[tuple[int | None, str, str], int]:
    return {(owner.rank, owner.chain, owner.path): owner.ns for owner in replayed.critical_path()}


def test_waiting_leads_on_to_the_kernels_of_the_last_rank() -> None:
    found = owners(JobReplay(meeting([100, 100], [180, 40]), {}))
    assert found[1, "kernels", "compute/matmul"] == 180 * US
    assert found[0, "kernels", "compute/matmul"] == 100 * US
    assert found[None, "collectives", "communication"] == 2 * TRANSFER_US * US
    assert sum(found.values()) == (180 + 100 + 2 * TRANSFER_US) * US


def test_waiting_leads_on_to_the_host_of_the_last_rank() -> None:
    """Rank 1 reads a batch for 300 us before it hands over its kernel; rank 0 waits for it in the collective."""
    early, late = Scene(rank=0), Scene(rank=1)
    early.kernel(0, 100, launched=-50, op="aten::mm")
    early.collective(100, 320, None, launched=-40)
    late.kernel(-20, 10, launched=-30, op="aten::mul")
    late.event("cpu_op", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 300)
    late.kernel(310, 90, launched=301, op="aten::mm")
    late.collective(400, 20, None, launched=305)
    for scene in (early, late):
        scene.step(1, -60, 430)
    found = owners(JobReplay(modelled([early, late]), {}))
    assert found[1, "host", "idle/host/dataloader"] == 300 * US
    assert found[1, "kernels", "compute/matmul"] == 90 * US
    assert not any(rank == 0 for rank, *_ in found)


work = st.lists(st.integers(1, 500), min_size=3, max_size=3)


@settings(max_examples=10)
@given(st.lists(work, min_size=1, max_size=4))
def test_owners_add_up_to_the_step(ranks: list[list[int]]) -> None:
    replayed = JobReplay(meeting(*ranks), {})
    path: list[Owner] = replayed.critical_path()
    assert sum(owner.ns for owner in path) == replayed.step_ns()
    assert all(owner.ns > 0 for owner in path)
    assert [owner.ns for owner in path] == sorted((owner.ns for owner in path), reverse=True)


def test_nothing_on_the_path_has_no_owner() -> None:
    """A step whose end waits for nothing that began in it."""
    replayed = JobReplay(meeting([100, 100], [180, 40]), {})
    path = replayed._paths(frozenset())
    assert replayed._owners.of(path.at(np.zeros(len(path.nodes), dtype=np.bool_))).empty
