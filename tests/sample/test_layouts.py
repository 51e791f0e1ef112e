"""Layouts of several parallel dimensions: who communicates with whom, in which order, and that nobody moves early."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor_core.sample import SCENARIOS
from advisor_core.sample.job import simulate
from advisor_core.sample.layout import Dimension, Layout
from advisor_core.sample.loops.pipeline import Pass, Transfer, schedule
from advisor_core.sample.loops.training import Training
from advisor_core.sample.models.model import ModelShape
from advisor_core.sample.setup import RankSetup
from advisor_core.sample.timeline import Collective, PlaneTask, Timeline

DIVIDED: tuple[Dimension, ...] = ("tensor", "data", "pipeline", "expert", "expert_data")
PAIRWISE = {"batchSendRecv", "send", "receive"}
TINY = ModelShape(layers=4, hidden=512, heads=4, kv_heads=4, ffn=512, vocab=1024, sequence=256, batch=1)
MIXED = replace(TINY, experts=8, shared_ffn=512)


@st.composite
def layouts(draw: st.DrawFn, largest: int = 4) -> Layout:
    sizes = st.integers(1, largest)
    expert = draw(sizes)
    return Layout(data=expert * draw(st.integers(1, 2)), tensor=draw(sizes), pipeline=draw(sizes), expert=expert)


@given(layouts())
def test_groups_of_a_dimension_divide_the_ranks(layout: Layout) -> None:
    sizes = dict(zip(DIVIDED, (layout.tensor, layout.data, layout.pipeline, layout.expert), strict=False))
    sizes["expert_data"] = layout.data // layout.expert
    if layout.only_data:
        assert all(len(layout.groups(rank)) == (layout.ranks > 1) for rank in range(layout.ranks))
        return
    for dimension, size in sizes.items():
        members: Counter[int] = Counter()
        found = set()
        for rank in range(layout.ranks):
            group = layout.group(rank, dimension)
            assert (group is None) == (size == 1)
            if group is not None:
                assert rank in group.ranks and len(group.ranks) == size
                found.add(group.ranks)
        for ranks in found:
            members.update(ranks)
        assert size == 1 or members == Counter(range(layout.ranks))


def test_ranks_are_numbered_as_in_megatron() -> None:
    layout = Layout(data=2, tensor=2, pipeline=2)
    ranks = {dimension: layout.group(5, dimension) for dimension in ("tensor", "data", "pipeline", "world")}
    assert {name: group.ranks for name, group in ranks.items() if group is not None} == {
        "tensor": (4, 5),
        "data": (5, 7),
        "pipeline": (1, 5),
        "world": tuple(range(8)),
    }
    streams = [group.stream for group in layout.groups(5)]
    assert len(set(streams)) == len(streams)


@given(st.integers(1, 6), st.integers(1, 12))
def test_a_pipeline_schedule_is_complete_and_never_stuck(stages: int, micro_batches: int) -> None:
    """Plays all stages against each other; an exchange takes place when both neighbours have come to it."""
    programs = [list(schedule(stage, stages, micro_batches)) for stage in range(stages)]
    place = [0] * stages
    live = [0] * stages
    moved = True
    while moved:
        moved = False
        for stage, program in enumerate(programs):
            if place[stage] == len(program):
                continue
            part = program[place[stage]]
            if isinstance(part, Pass):
                live[stage] += -1 if part.backward else 1
                assert 0 <= live[stage] <= min(stages - stage, micro_batches)
                place[stage] += 1
                moved = True
                continue
            peer = stage + part.peer
            other = programs[peer][place[peer]] if place[peer] < len(programs[peer]) else None
            if isinstance(other, Transfer) and other.peer == -part.peer:
                assert (other.sends, other.receives) == (part.receives, part.sends)
                place[stage] += 1
                place[peer] += 1
                moved = True
    assert place == [len(program) for program in programs]
    for program in programs:
        for backward in (False, True):
            passes = [part.micro for part in program if isinstance(part, Pass) and part.backward == backward]
            assert passes == list(range(micro_batches))


def job(layout: Layout, shape: ModelShape = TINY, **training: object) -> list[Timeline]:
    """A small job in a layout."""
    scenario = SCENARIOS["healthy-compact"]
    loop = scenario.job.training
    assert isinstance(loop, Training)
    small = replace(loop, shape=shape, micro_batches=3, steps=2, bucket_bytes=1_000_000, **training)  # type: ignore[arg-type]
    setup = replace(scenario.job, training=small, ranks=(RankSetup(),) * layout.ranks, layout=layout)
    return simulate(replace(scenario, job=setup), 3)


@pytest.fixture(scope="module")
def uneven_experts() -> list[Timeline]:
    return job(Layout(data=4, expert=4), MIXED, expert_load=(1.0, 1.0, 3.0, 1.0))


def occasions(timelines: list[Timeline]) -> Iterator[dict[int, Collective]]:
    """Every operation with what each of its members recorded of it, by place in the group.

    A whole group counts its operations alike. Two ranks have their operations with each other in the same order.
    """
    met: dict[object, dict[int, Collective]] = defaultdict(dict)
    for timeline in timelines:
        pairs: Counter[object] = Counter()
        for part in timeline.collectives:
            member = part.group.ranks.index(timeline.rank)
            peers = {task.peer for task in part.tasks if task.peer not in {None, member}}
            place: tuple[object, ...] = (part.group.key, part.group.ranks)
            if part.operation in PAIRWISE:
                place = (*place, frozenset((member, *peers)))
                pairs[place] += 1
                met[place, pairs[place]][member] = part
            else:
                met[place, part.operation, part.index][member] = part
    yield from met.values()


def moves(part: Collective) -> list[PlaneTask]:
    return [task for task in part.tasks if task.plane and task.kind in {"Memcpy", "Reduce_Inline"}]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(
        [
            Layout(tensor=2, pipeline=2),
            Layout(tensor=2, data=2),
            Layout(pipeline=3, data=2, batched=False),
            Layout(pipeline=4),
            Layout(tensor=2, pipeline=2, data=2),
            Layout(data=4, expert=2),
            Layout(data=2, pipeline=2, expert=2),
            Layout(data=3),
        ]
    )
)
def test_nothing_moves_before_all_members_are_there(layout: Layout) -> None:
    stages = {1: (4,), 2: (3, 1), 3: (2, 1, 1), 4: (1, 1, 1, 1)}[layout.pipeline]
    timelines = job(layout, MIXED if layout.expert > 1 else TINY, stage_layers=stages)
    assert all([step.number for step in timeline.steps] == [10, 11] for timeline in timelines)
    seen = set()
    for members in occasions(timelines):
        one = next(iter(members.values()))
        seen.add(one.operation)
        expected = 2 if one.operation in PAIRWISE else len(one.group.ranks)
        assert len(members) == expected
        last = max(part.start for part in members.values())
        for part in members.values():
            assert all(task.start >= last for task in moves(part))
            assert part.start <= min(task.start for task in part.tasks)
            assert part.end == max(task.end for task in part.tasks)
    wanted = {"allReduce": layout.data > 1 or layout.tensor > 1, "allGather": layout.tensor > 1 or layout.expert > 1}
    wanted |= {"reduceScatter": layout.tensor > 1, "alltoallv": layout.expert > 1}
    wanted["batchSendRecv"] = layout.pipeline > 1 and layout.batched
    wanted["send"] = wanted["receive"] = layout.pipeline > 1 and not layout.batched
    assert seen == {operation for operation, used in wanted.items() if used}


def test_every_pair_of_an_all_to_all_moves_its_own_bytes(uneven_experts: list[Timeline]) -> None:
    """What goes to the experts comes back: the second of two exchanges is the first one turned round."""
    exchanges = [members for members in occasions(uneven_experts) if members[0].operation == "alltoallv"]
    exchanges.sort(key=lambda members: members[0].index)
    read = [
        {(at, task.peer): task.nbytes for at, part in members.items() for task in moves(part)} for members in exchanges
    ]
    assert len(read) == 2 * 3 * TINY.layers * 4
    row = TINY.hidden * 2
    for there, back in zip(read[::2], read[1::2], strict=True):
        assert {(source, reader): count for (reader, source), count in there.items()} == back
        assert all(count % row == 0 for count in there.values()) and len(set(there.values())) > 1
        incoming = [sum(count for (reader, _), count in there.items() if reader == at) for at in range(4)]
        assert max(incoming) == incoming[2]


def test_the_hot_rank_has_the_longest_grouped_products(uneven_experts: list[Timeline]) -> None:
    rows = []
    for timeline in uneven_experts:
        products = [task.kernel for task in timeline.kernels if task.kernel and task.kernel.type == "GroupedMatmul"]
        rows.append(sum(product.inputs[0].shape[0] for product in products))
    assert rows[2] == max(rows)
    others = [count for rank, count in enumerate(rows) if rank != 2]
    assert 2.2 < rows[2] / (sum(others) / 3) < 3.3


def test_a_layout_must_fit_the_job() -> None:
    with pytest.raises(ValueError, match="do not divide 3"):
        Layout(data=3, expert=2)
    with pytest.raises(ValueError, match="two dies"):
        Layout(tensor=4, paired=True)
    with pytest.raises(ValueError, match="layout of 4 ranks for a job of 2"):
        _ = replace(SCENARIOS["healthy-compact"].job, layout=Layout(data=4)).arrangement
    with pytest.raises(ValueError, match="stages"):
        job(Layout(pipeline=2), stage_layers=(1, 1))


def test_stages_of_the_healthy_pipeline_compute_alike() -> None:
    """One step of few micro-batches is enough to compare them; the last stage of the imbalanced one has the most."""
    spread = {}
    for name in ("healthy-pipeline", "pipeline-imbalance"):
        scenario = SCENARIOS[name]
        loop = scenario.setup.training
        assert isinstance(loop, Training)
        short = replace(scenario.job, training=replace(loop, micro_batches=4, steps=2))
        timelines = simulate(replace(scenario, job=short, causes=()), 0)
        times = [sum(task.end - task.start for task in timeline.kernels) for timeline in timelines]
        spread[name] = max(times) / (sum(times) / len(times))
        assert name == "healthy-pipeline" or max(times) == times[3]
    assert spread["healthy-pipeline"] < 1.06
    # 1.73 times the first stage of a real job of two is 1.27 of the mean (docs/sources.md#last-stage)
    assert spread["pipeline-imbalance"] > 1.27
