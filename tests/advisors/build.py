"""Small profiles for tests of advisors and rules, and one rule judged over one of them. Times are microseconds."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from advisor_core import testing
from advisor_core.contracts.advisor import Advisor, Observations
from advisor_core.contracts.keys import Answers
from advisor_core.contracts.missing import Missing, NotApplicable, Unavailable
from advisor_core.contracts.profile import PROFILE, Profile
from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.context import context
from advisor_core.facts.job_store import JobStore
from advisor_core.facts.store import FactStore
from advisor_core.job.settle import COMPARED, settle
from advisor_core.plugins.host import Host, load_host
from advisor_core.rules.book import RuleBook
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.judge import Context, Verdict, judge
from advisor_core.run.job_context import job_of
from advisor_core.text.base import Scalar

ROOT = Path(__file__).parent.parent.parent
MAIN, AUTOGRAD, ACL = 100, 101, 200
FILES = {"HD": "host_dispatch", "CO": "communication", "DQ": "capture", "NS": "network_structure"}
FILES |= {"PB": "pipeline_bound", "SA": "shape_affinity", "ME": "memory", "RL": "rl"}


@cache
def host() -> Host:
    return load_host()


@cache
def book(file: str) -> RuleBook:
    """The rules of one file; those of the other files are loaded with them, as rules may name rules of other files."""
    prefix = next(prefix for prefix, name in FILES.items() if name == file)
    rules = load_rules([ROOT / "rulesets" / "ascend"], host().advisors, names=host().name_book())
    return rules.select([prefix])


@cache
def judged_for_gpus() -> frozenset[str]:
    """The advisors that rules for GPUs judge."""
    return frozenset(rule.rule.advisor for rule in load_rules([ROOT / "rulesets" / "gpu"], host().advisors))


class Scene:
    """One rank, written down event by event.

    A kernel is given with the moment it was launched (by default 5 us before it starts) and the operator that
    launched it; the launch lies on the thread that feeds the device, as with TASK_QUEUE_ENABLE=0.
    """

    def __init__(self, *, rank: int = 0) -> None:
        self.rank = rank
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.flow = 0
        self.group = 0
        self.calls = 0

    def add(self, table: str, **row: Any) -> Scene:
        self.rows.setdefault(table, []).append(row)
        return self

    def event(self, category: str, name: str, start: float, duration: float, thread: int = MAIN, **more: Any) -> Scene:
        row = {"category": category, "name": name, "thread": thread, "start_us": start, "duration_us": duration}
        return self.add("host_events", **row, **more)

    def step(self, number: int, start: float, duration: float) -> Scene:
        return self.event("user_annotation", f"ProfilerStep#{number}", start, duration)

    def kernel(
        self,
        start: float,
        duration: float,
        type_: str = "MatMulV2",
        *,
        launched: float | None = None,
        op: str | None = None,
        stream: int = 2,
        step: int = 1,
        core: str = "AI_CORE",
        stack: str = "",
    ) -> Scene:
        """``op``: an operator that begins 5 us before the launch and ends 5 us after it."""
        launched = start - 5 if launched is None else launched
        kernel = {"type": type_, "name": type_, "core": core, "stream": stream, "step": step}
        self.add("kernels", start_us=start, duration_us=duration, aic_ns=1000.0 * duration, **kernel)
        self.add("device_tasks", name=type_, task_type=core, stream=stream, start_us=start, duration_us=duration)
        self.event("runtime", "Node@launch", launched - 1, 2, item=type_)
        if op is not None:
            self.event("cpu_op", op, launched - 5, 10, call_stack=stack)
        return self._arrow(launched, start, stream)

    def tensors(
        self,
        start: float,
        duration: float,
        type_: str,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        *,
        name: str | None = None,
        hf32: str = "",
        **more: Any,
    ) -> Scene:
        """A kernel with its tensors, each ``"8,4 BF16"`` or ``"8,4 BF16 NCHW"``."""
        self.kernel(start, duration, type_, **more)
        kernel = self.rows["kernels"][-1]
        kernel |= {"name": name or type_, "hf32": hf32}
        for side, tensors in (("input", reads), ("output", writes)):
            parts = [(*tensor.split(" "), "ND")[:3] for tensor in tensors]
            for place, what in enumerate(("shapes", "dtypes", "formats")):
                kernel[f"{side}_{what}"] = ";".join(part[place] for part in parts)
        return self

    def busy(self, blocks: int = 24, **pipes: float) -> Scene:
        """Blocks of the kernel added last, and how long its pipes were busy: ``aic_mac=80`` is 80 us."""
        self.rows["kernels"][-1] |= {"block_dim": blocks, **{f"{pipe}_us": time for pipe, time in pipes.items()}}
        return self

    def _arrow(self, launched: float, start: float, stream: int) -> Scene:
        self.flow += 1
        ends = (("s", launched, MAIN, False), ("f", start, stream, True))
        for end, time, thread, device in ends:
            row = {"kind": "host_to_device", "end": end, "flow": self.flow, "time_us": time}
            self.add("flows", thread=thread, device=device, **row)
        return self

    def collective(
        self,
        start: float,
        duration: float,
        planes: Sequence[tuple[float, float, int | None]] | None = (),
        *,
        operation: str = "allReduce",
        size: int | None = None,
        transport: str = "HCCS",
        launched: float | None = None,
        step: int = 1,
        group: int = 0,
    ) -> Scene:
        """``planes``: (start, end, rank that is waited for or None while data moves); ``None``: no tasks recorded."""
        name = f"hcom_{operation}__{100 + group}_{self.calls}_1"
        self.calls += 1
        launched = start - 5 if launched is None else launched
        row = {"start_us": start, "duration_us": duration}
        self.add("kernels", type="", name=name, core="COMMUNICATION", step=step, **row)
        self.event("runtime", "AscendCL@hcom", launched - 1, 2)
        self._arrow(launched, start, -1)
        if planes is not None:
            common = {"group": group, "own_rank": self.rank}
            lane = {"lane": f"Group {group} Communication", "plane": -1, "name": name}
            self.add("communication_tasks", group=group, **lane, **row)
            for begin, end, peer in planes:
                task = {"lane": "Plane 1", "plane": 1, "start_us": begin, "duration_us": end - begin}
                task |= (
                    {"name": "Memcpy", "peer_rank": -1} if peer is None else {"name": "Notify_Wait", "peer_rank": peer}
                )
                self.add("communication_tasks", **task, **common)
        if size is not None:
            full = {"step": step, "name": name, "group": str(group)}
            self.add("collectives", kind="collective", start_us=start, elapse_us=duration, **full)
            moved = {"bytes": size, "transit_us": duration, "packets": 2, "max_packet_bytes": size // 2}
            for kind in (transport, "SDMA" if transport != "RDMA" else None):
                if kind is not None:
                    self.add("collective_bandwidth", transport=kind, **moved, **full)
        return self

    def operator(
        self,
        name: str,
        host_self: float,
        host_total: float,
        device_total: float = 0,
        *,
        device_self: float = 0,
        **more: Any,
    ) -> Scene:
        times = {"host_self_us": host_self, "host_total_us": host_total}
        return self.add(
            "operators", name=name, device_self_us=device_self, device_total_us=device_total, **times, **more
        )

    def table(self, name: str) -> pd.DataFrame:
        return testing.table(name, self.rows[name])

    def store(self, *without: str, **about: Any) -> FactStore:
        """The facts; ``without`` these tables. ``about``: fields of the profile."""
        tables = {name: self.table(name) for name in self.rows if name not in without}
        missing = {name: Missing(_absent(name)) for name in without}
        profile = testing.profile(**{"rank": self.rank, "missing": missing, **about})
        return testing.fact_store(host(), profile, **tables)


def _absent(name: str) -> Any:
    from advisor_core.text.base import Text

    return Text(en=f"{name} is missing", zh=f"缺少 {name}")


class Outcome:
    """How one rule ended: ``state``, and where it found something the verdict and what was measured."""

    def __init__(self, state: str, verdict: Verdict | None = None, observed: Observations | None = None) -> None:
        self.state = state
        self.verdict = verdict
        self.observed = observed

    @property
    def first(self) -> Any:
        """The finding with the largest impact."""
        assert self.verdict is not None and self.verdict.rows, self.state
        return self.verdict.rows[0]

    def evidence(self) -> list[Any]:
        assert self.observed is not None
        return list(self.observed.evidence(self.first.row))


def outcome(rule: str, store: FactStore | Mapping[int, FactStore], **overrides: Scalar) -> Outcome:
    """The rule over one rank, or a job's rule over several. ``overrides``: parameters, in base units."""
    compiled = book(FILES[rule[:2]])[rule]
    advisor = compiled.advisor
    params = {**compiled.measure_params, **overrides}
    try:
        source = store if isinstance(store, FactStore) else _job(store, advisor)
        observed = advisor.measure(source.view(advisor.needs, advisor.wants), params)
    except NotApplicable:
        return Outcome("not_applicable")
    except Unavailable:
        return Outcome("cannot_answer")
    one = store if isinstance(store, FactStore) else next(iter(store.values()))
    profile: Profile = one[PROFILE]
    names = dict(one.get(context) or {})
    job = job_of(names, profile.versions, profile.variables, profile.vocabulary.phase_of(profile.role))
    judged = Context(profile=names, job=job)
    verdict = judge(compiled, advisor.conform(observed.frame), judged)
    for row in verdict.rows:
        assert advisor.evidence_of(observed, row.row), f"{rule} gives no evidence"
    return Outcome(verdict.state, verdict, observed)


def _job(stores: Mapping[int, FactStore], advisor: Advisor) -> JobStore:
    calls = {
        rank: found[list(COMPARED)]
        for rank, store in stores.items()
        if (found := store.get(recorded_calls)) is not None
    }
    sizes = [store[PROFILE].world_size or 0 for store in stores.values()]
    for rank, waits in settle(calls, max(sizes)).items():
        with contextlib.suppress(RuntimeError):  # these stores were settled for another rule
            stores[rank].settle(waits)
    ranks = {rank: Answers() for rank in stores}
    for rank, store in stores.items():
        for key in (*advisor.needs, *advisor.wants):
            ranks[rank].put(key, store.find(key))
    return JobStore(ranks)
