"""Recorded programs on the ranks of a tensor-parallel group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from advisor_core.sample.job import simulate
from advisor_core.sample.kernels import MatMulWork
from advisor_core.sample.layout import Layout
from advisor_core.sample.loops.communicator import Place
from advisor_core.sample.loops.recorded import RecordedLoop, RecordedTraining
from advisor_core.sample.models.recorded import PARTS, TrainingName
from advisor_core.sample.program import (
    AwaitCommunication,
    Backward,
    Call,
    Communicate,
    Instruction,
    Node,
    Op,
    memory_use,
)
from advisor_core.sample.scenarios import SCENARIOS
from advisor_core.sample.setup import RankSetup, Setup

HIDDEN = 2 * 2048 * 2048 * 2
"""Bytes of the states of all tokens."""


def program_of(name: TrainingName, layout: Layout, rank: int = 0, **settings: int) -> list[Instruction]:
    work = RecordedTraining(name, written_out=PARTS[name], steps=1, **settings)  # type: ignore[arg-type]
    return RecordedLoop(work, Place(layout, rank), 900_000).program()


def calls(program: list[Instruction]) -> Iterator[Call]:
    for one in program:
        if isinstance(one, Backward):
            yield from calls([*one.program])
        elif isinstance(one, Node):
            yield from one.calls
        elif isinstance(one, Op | Communicate | AwaitCommunication):
            yield one


def test_a_rank_has_half_of_every_product() -> None:
    def products(name: TrainingName, layout: Layout) -> int:
        works = [
            kernel.work
            for one in calls(program_of(name, layout))
            if isinstance(one, Op) and one.launch is not None
            for kernel in one.launch.kernels
        ]
        return sum(work.m * work.n * work.k for work in works if isinstance(work, MatMulWork))

    assert 2 * products("llama-tp2", Layout(tensor=2)) == products("llama", Layout())


def test_sums_of_all_ranks_are_where_the_plan_of_transformers_has_them() -> None:
    """Behind the words, attention and feed-forward of four layers; the logits are gathered. Backward behind every
    product that reads what all ranks have: of the words three for attention, two for feed-forward, and one of the
    logits."""
    transfers = [one for one in calls(program_of("llama-tp2", Layout(tensor=2))) if isinstance(one, Communicate)]
    assert Counter((one.operation, one.data.nbytes) for one in transfers) == {
        ("allReduce", HIDDEN): 1 + 4 * 2 + 4 * (3 + 2) + 1,
        ("allGather", 4096 * 64_128 * 2): 1,
    }


def test_a_result_is_waited_for_by_what_reads_it_first() -> None:
    """So the product of a weight's gradient goes on while the gradient of its input is summed up."""
    asked: dict[int, int] = {}
    waited: dict[int, int] = {}
    known = list(calls(program_of("qwen3-tp2", Layout(tensor=2))))
    for place, one in enumerate(known):
        if isinstance(one, Communicate):
            asked[id(one)] = place
        elif isinstance(one, AwaitCommunication):
            assert id(one.request) in asked and id(one.request) not in waited
            waited[id(one.request)] = place
            following = known[place + 1]
            if isinstance(following, Op) and one.request.data.nbytes == HIDDEN:
                read = {id(tensor.storage) for tensor in following.inputs}
                assert id(one.request.data.storage) in read or following.launch is None
    assert asked.keys() == waited.keys()
    between = [
        sum(isinstance(one, Op) and one.launch is not None for one in known[begin + 1 : waited[request]])
        for request, begin in asked.items()
    ]
    assert sum(count > 0 for count in between) >= 4


def test_norms_of_heads_sum_their_gradients_in_every_micro_batch() -> None:
    """Queries and keys of four layers of Qwen3, 128 channels; waited for at once."""
    for micro_batches in (1, 3):
        known = list(calls(program_of("qwen3-tp2", Layout(tensor=2), micro_batches=micro_batches)))
        places = [place for place, one in enumerate(known) if isinstance(one, Communicate) and one.data.nbytes == 256]
        assert len(places) == 8 * micro_batches
        assert all(isinstance(known[place + 1], AwaitCommunication) for place in places)


def test_memory_is_given_back() -> None:
    for rank in (0, 2):
        taken: set[int] = set()
        for allocated, freed in memory_use(
            program_of("llama-tp2", Layout(tensor=2, pipeline=2), rank, micro_batches=2)
        ):
            for tensor in allocated:
                assert id(tensor.storage) not in taken
                taken.add(id(tensor.storage))
            taken -= {id(tensor.storage) for tensor in freed}
        assert not taken


@pytest.mark.parametrize("layout", [Layout(tensor=2), Layout(data=2, tensor=2, pipeline=2)])
def test_all_ranks_meet(layout: Layout) -> None:
    work = RecordedTraining("llama-tp2", steps=2, micro_batches=layout.pipeline)
    job = Setup(work, ranks=(RankSetup(),) * layout.ranks, layout=layout)
    ranks = simulate(replace(SCENARIOS["healthy-training-single"], name="recorded", job=job, causes=()), 0)
    assert [[step.number for step in rank.steps] for rank in ranks] == [[10, 11]] * layout.ranks
    for rank in ranks:
        assert sum(one.operation == "allReduce" for one in rank.collectives) >= 2 * 12
