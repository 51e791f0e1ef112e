"""Iterations of reinforcement learning that were recorded."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from advisor_core.sample.job import simulate
from advisor_core.sample.job_file import JobFileError
from advisor_core.sample.kernels import VectorWork
from advisor_core.sample.layout import Layout
from advisor_core.sample.loops.communicator import Place
from advisor_core.sample.loops.recorded_reinforcement import RecordedReinforcement, RecordedReinforcementLoop
from advisor_core.sample.models.recorded import RecordedModel, record_of
from advisor_core.sample.program import Backward, Communicate, Instruction, Item, Op, OpenMark, memory_use
from advisor_core.sample.scenarios import SCENARIOS, job_from
from advisor_core.sample.setup import RankSetup, Setup

PHASES = ["generate_sequences", "reward", "compute_ref_log_prob", "update_actor"]
WORK = RecordedReinforcement("llama-grpo", reward_ns=2_000_000, response=3, steps=1)


def program_of(ranks: int = 1, longest: float = 1.0) -> list[Instruction]:
    return RecordedReinforcementLoop(WORK, Place(Layout(data=ranks), 0), 900_000, longest).program()


def test_phases_follow_each_other() -> None:
    marks = [one.message for one in program_of() if isinstance(one, OpenMark)]
    assert marks == ["step", *PHASES]


def test_a_rollout_takes_a_pass_for_each_token() -> None:
    """Sampling draws one token for each sequence in each of them, the first one included."""

    def passes(longest: float) -> int:
        drawn = [one for one in program_of(longest=longest) if isinstance(one, Op) and one.name == "aten::multinomial"]
        return len(drawn)

    assert (passes(1.0), passes(2.0)) == (1 + 3, 1 + 6)


def test_every_value_that_trl_logs_is_read_back() -> None:
    """Of a loss with clipped ratios and a distance from the reference: nine of them, and two questions about masks."""
    reads = [one for one in RecordedModel(record_of("llama-grpo", ())).step().forward() if isinstance(one, Item)]
    assert len(reads) == 11


def test_the_gradient_of_a_gather_touches_what_it_adds() -> None:
    """One number for each of 512 tokens, in zeros of 512 x 128,256."""
    added = [
        kernel.work
        for node in RecordedModel(record_of("llama-grpo", ())).step().backward()
        for op in node.ops  # type: ignore[union-attr]
        if op.launch is not None and op.name == "aten::scatter_add_"
        for kernel in op.launch.kernels
    ]
    assert len(added) == 16
    assert all(isinstance(work, VectorWork) and work.write < 10_000 for work in added)


def test_gradients_of_all_weights_are_reduced() -> None:
    record = record_of("llama-grpo", ())
    model = RecordedModel(record)
    (backward,) = (one for one in program_of(ranks=2) if isinstance(one, Backward))
    reduced = sum(one.data.nbytes for one in backward.program if isinstance(one, Communicate))
    assert reduced == sum(model.new(storage).nbytes for found in record.gradients.values() for storage in found)


def test_memory_is_given_back() -> None:
    taken: set[int] = set()
    for allocated, freed in memory_use(program_of(ranks=2)):
        for tensor in allocated:
            assert id(tensor.storage) not in taken
            taken.add(id(tensor.storage))
        taken -= {id(tensor.storage) for tensor in freed}
    assert not taken


def test_ranks_wait_for_the_longest_responses() -> None:
    job = Setup(WORK, ranks=(RankSetup(), RankSetup(longest=3.0)))
    ranks = simulate(replace(SCENARIOS["healthy-training-single"], name="recorded", job=job, causes=()), 0)
    assert len(ranks[0].kernels) < len(ranks[1].kernels)
    (first,), (second,) = ([one.start for one in rank.collectives if one.operation == "allGather"] for rank in ranks)
    assert first < second
    for rank in ranks:
        assert [step.number for step in rank.steps] == [10]
        whole, *phases = sorted(rank.marks, key=lambda mark: mark.start)
        assert [mark.message for mark in (whole, *phases)] == ["step", *PHASES]
        assert all(before.end <= after.start for before, after in pairwise(phases))


def test_only_data_parallel_ranks_have_it(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("recorded_reinforcement: {program: llama-grpo, reward_ns: 1}\nlayout: {tp: 2}\n")
    with pytest.raises(JobFileError, match="only training is spread by tp, pp or ep"):
        job_from(path)
