"""Time that the end of a step does not wait for: the slack of operator types, of collectives, and of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from advisor_core.facts.grouping import aggregated
from advisor_core.facts.intervals import Ints
from advisor_core.facts.replay.nodes import TASK
from advisor_core.job.job_replay import JobReplay
from advisor_core.job.plan import WORTH
from advisor_core.job.rank_model import RankModel
from advisor_core.replay.slack import UNBOUNDED, repeated_slack, slack
from advisor_core.result.slack import Slack


@dataclass(frozen=True)
class JobSlack:
    """The slack of a job as recorded: in a long run of its steps where several were recorded."""

    replayed: JobReplay

    @cached_property
    def _of_nodes(self) -> Ints:
        job = self.replayed.job
        graph, lasting = self.replayed.whole()
        if job.repeats:
            between = job.between_ns([model.replay.recorded.graph for model in job.models])
            return repeated_slack(graph, lasting, between)
        until = np.full(len(job.free_ns), UNBOUNDED, dtype=np.int64)
        until[graph.chain[job.tasks]] = lasting.until
        return slack(graph, lasting.ended, until)

    def of_ranks(self) -> dict[int, int]:
        """By rank: the least of all that the rank does by itself. A rank that does nothing which anything waits for is
        left out."""
        found = {}
        for model, numbers in zip(self.replayed.job.models, self.replayed.job.numbers, strict=True):
            own = ~model.replay.recorded.talks & (model.replay.recorded.graph.duration > 0)
            least = int(self._of_nodes[numbers[own]].min(initial=UNBOUNDED))
            if least < UNBOUNDED:
                found[model.rank] = least
        return found

    def of_work(self) -> list[Slack]:
        """Operator types and collectives that are worth a row, the longest first."""
        replayed, job = self.replayed, self.replayed.job
        tasks = self._tasks()
        kind = ["talks", "operator"]
        sums = aggregated(tasks, kind, ns=("ns", "sum"), least=("slack", "min"), middle=("slack", "median"))
        # A call of several ranks is one node, which each of them has.
        nodes = aggregated(tasks.drop_duplicates("node"), kind, on_path=("on_path", "sum"))
        sums["on_path"] = nodes["on_path"].to_numpy()
        sums["ns"] //= job.steps * len(job.models)
        worth = sums[sums["ns"] >= WORTH * replayed.step_ns()].sort_values("ns", ascending=False, kind="stable")
        rows = (worth[column].tolist() for column in ("talks", "operator", "ns", "on_path", "least", "middle"))
        return [
            Slack(
                kind="collective" if talks else "operator",
                name=str(name),
                ns=ns,
                on_path_ns=on_path // job.steps,
                least_ns=_known(least),
                middle_ns=_known(middle),
            )
            for talks, name, ns, on_path, least, middle in zip(*rows, strict=True)
        ]

    def _tasks(self) -> pd.DataFrame:
        """``node``, ``operator``, ``talks``, ``ns``, ``slack`` and ``on_path`` of each task of each rank; those of a
        call that joins ranks are of the moving of its data."""
        job = self.replayed.job
        graph, _ = self.replayed.whole()
        path = self.replayed.path()
        held = np.zeros(len(graph), dtype=np.int64)
        held[path.nodes] = path.held_ns
        parts = []
        for model, numbers, hubs in zip(job.models, job.numbers, job.hubs, strict=True):
            tasks = np.flatnonzero(model.nodes.kind == TASK)
            node = np.where(hubs[tasks] >= 0, hubs[tasks], numbers[tasks])
            parts.append(
                pd.DataFrame(
                    {
                        "node": node,
                        "operator": _names(model)[model.nodes.row[tasks]],
                        "talks": model.replay.recorded.talks[tasks],
                        "ns": graph.duration[node],
                        "slack": self._of_nodes[node],
                        "on_path": held[node],
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)


def _names(model: RankModel) -> np.ndarray:
    """The name of each row of ``work``: its type, else its class; of a collective its operation."""
    types, classes = (model.operators[name].astype(str).to_numpy(dtype=object) for name in ("type", "operator_class"))
    names = np.where(types == "", classes, types)
    if model.calls is not None:
        names[model.calls["work"].to_numpy()] = model.calls["operation"].astype(str).to_numpy(dtype=object)
    return names


def _known(ns: float) -> int | None:
    return None if ns >= UNBOUNDED else int(ns)
