"""The time of the parts whose work grows with the kernels: the replay of a graph, and what is told of the structure of
a network. Not part of the test run: ``make benchmark-size``. Seconds are those of CPU."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from advisor_core.loaders.discover import discover
from advisor_core.replay.graph import Graph
from advisor_core.replay.sweep import ends
from advisor_core.run.rank import fact_store
from advisors.fusion.chains import fusion_chains
from advisors.fusion.expert_loops import expert_loops
from advisors.fusion.nodes import kernel_nodes
from advisors.fusion.regions import fusion_regions
from advisors.layers.layers import layers
from advisors.step_kernels import step_kernels
from tests.advisors.build import host
from tests.benchmarks.conftest import Say
from tests.benchmarks.material import write_kernels

RANKS = 4
KERNELS_A_COLLECTIVE = 100
"""So many kernels of a rank lie between two collectives of all."""

COLLECTIVES_A_SYNC = 20
"""After so many collectives the host waits for its device."""


def job_graph(kernels: int) -> Graph:
    """A graph of `RANKS` ranks with so many kernels together: for each kernel the host, the task queue and the stream,
    and a hub for each collective. Durations are random, of 1 to 50 us."""
    collectives = kernels // RANKS // KERNELS_A_COLLECTIVE
    size = RANKS * KERNELS_A_COLLECTIVE * 3 + 1  # nodes up to a collective, the hub last
    hubs = np.arange(1, collectives + 1) * size - 1
    inside = np.arange(size - 1).reshape(RANKS, KERNELS_A_COLLECTIVE, 3)
    nodes = (hubs - size + 1)[:, np.newaxis, np.newaxis, np.newaxis] + inside
    chain = np.full(collectives * size, RANKS * 3)
    chain[nodes] = np.arange(RANKS)[:, np.newaxis, np.newaxis] * 3 + np.arange(3)
    host_thread, queue, stream = nodes[..., 0], nodes[..., 1], nodes[..., 2]
    edges = [(host_thread, queue), (queue, stream)]
    every = slice(COLLECTIVES_A_SYNC - 1, -1, COLLECTIVES_A_SYNC)
    for rank in range(RANKS):
        edges += [(stream[:, rank, -1], hubs), (hubs[:-1], stream[1:, rank, 0])]
        edges.append((stream[every, rank, -1], host_thread[COLLECTIVES_A_SYNC::COLLECTIVES_A_SYNC, rank, 0]))
    source, target = (np.concatenate([edge[end].ravel() for edge in edges]) for end in (0, 1))
    duration = np.random.default_rng(0).integers(1_000, 50_000, len(chain))
    return Graph(chain, duration, np.zeros(len(chain), np.int64), source, target, np.full(len(source), 2_000))


def test_replay(say: Say) -> None:
    """The times of a graph once its structure is known, beside finding that out."""
    say("")
    for kernels in (333_600, 3_336_000):
        graph = job_graph(kernels)
        since = time.process_time()
        layout = graph.structure.layout
        held = [
            *vars(layout).values(),
            layout.tracks.time,
            layout.tracks.edge_time,
            *vars(graph.structure).values(),
            graph.duration,
            graph.pause,
            graph.lag,
        ]
        structure = time.process_time() - since
        replays = []
        for share in (2, 3, 4):
            changed = graph.changed(duration=graph.duration // share)
            since = time.process_time()
            ends(changed)
            replays.append(time.process_time() - since)
        held_bytes = sum(array.nbytes for array in held if isinstance(array, np.ndarray))
        say(
            f"{len(graph):,} nodes in {len(layout.levels):,} levels: structure {structure:.2f} s, a replay "
            f"{min(replays):.3f} s, {held_bytes / len(graph):.0f} bytes a node"
        )


def test_structure(say: Say, tmp_path: Path) -> None:
    """Nodes of the data flow, computations, regions and layers of a million kernels."""
    loaders = host().loaders
    (source,) = discover(list(loaders.values()), write_kernels(tmp_path, 1_000_000))
    facts = fact_store(host(), loaders[source.loader].load(source))
    found = []
    for fact in (step_kernels, kernel_nodes, fusion_chains, expert_loops, fusion_regions, layers):
        since = time.process_time()
        assert facts.get(fact) is not None
        found.append((fact.name, time.process_time() - since))
    say(f"{len(facts[step_kernels].frame):,} kernels: " + ", ".join(f"{name} {took:.2f} s" for name, took in found))
