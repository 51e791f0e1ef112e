"""A serving step whose layers are replayed as a graph."""

from __future__ import annotations

import itertools
from dataclasses import replace

from advisor_core.sample.job import simulate
from advisor_core.sample.loops.serving import Serving
from advisor_core.sample.machine.device import GRAPH_GAP_NS
from advisor_core.sample.scenarios import SCENARIOS, Scenario


def job(captured: bool) -> Scenario:
    decode = SCENARIOS["healthy-decode"]
    work = decode.job.training
    assert isinstance(work, Serving)
    smaller = replace(work, shape=replace(work.shape, layers=2), captured=captured, steps=1)
    return replace(decode, job=replace(decode.job, training=smaller))


def test_one_call_launches_all_kernels_of_the_layers() -> None:
    (eager,), (graph,) = (simulate(job(captured), 0) for captured in (False, True))
    names = [[task.name for task in sorted(line.kernels, key=lambda task: task.start)] for line in (eager, graph)]
    assert names[0] == names[1], "the same work"
    calls = [call for call in graph.cann if "aclmdlRIExecute" in call.name]
    launched = [task.launch.connection for task in graph.kernels if task.launch is not None]
    replayed = [connection for connection in launched if connection == calls[0].connection]
    assert len(calls) == 1 and len(replayed) == len(names[0]) - 2, "logits and the choice of tokens are launched"
    assert len(launched) == len(names[0])


def test_kernels_follow_each_other_but_for_attention_which_waits_for_its_lengths() -> None:
    (graph,) = simulate(job(True), 0)
    tasks = sorted(graph.kernels, key=lambda task: task.start)[:-2]
    updates = sorted(call.end for call in graph.cann if "TaskUpdate" in call.name)
    attention = [task for task in tasks if "Attention" in task.name]
    assert len(updates) == len(attention) == 2
    assert all(task.start >= given for task, given in zip(attention, updates, strict=True))
    gaps = [later.start - task.end for task, later in itertools.pairwise(tasks) if later not in attention]
    assert set(gaps) == {GRAPH_GAP_NS}
