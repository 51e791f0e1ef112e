"""What the end of a step does not wait for."""

from __future__ import annotations

from advisor_core.job.job_replay import JobReplay
from advisor_core.job.slack import JobSlack
from tests.job.jobs import TRANSFER_US, meeting

US = 1_000


def test_who_waits_could_take_longer_by_what_it_waits() -> None:
    """Rank 0 waits 80 us before the first collective; before the second one rank 1 waits 60."""
    found = JobSlack(JobReplay(meeting([100, 100], [180, 40]), {}))
    assert found.of_ranks() == {0: 0, 1: 0}
    found = JobSlack(JobReplay(meeting([100, 100], [180, 130]), {}))
    assert found.of_ranks() == {0: 30 * US, 1: 0}


def test_of_each_type_the_time_the_part_on_the_path_and_what_is_free() -> None:
    found = {row.name: row for row in JobSlack(JobReplay(meeting([100, 100], [180, 130]), {})).of_work()}
    kernels, call = found["MatMulV2"], found["allReduce"]
    assert (kernels.kind, kernels.ns, kernels.on_path_ns) == ("operator", 255 * US, 310 * US)
    assert (kernels.least_ns, kernels.middle_ns) == (0, 15 * US)
    assert (call.kind, call.ns, call.on_path_ns) == ("collective", 2 * TRANSFER_US * US, 2 * TRANSFER_US * US)
    assert (call.least_ns, call.middle_ns) == (0, 0)
