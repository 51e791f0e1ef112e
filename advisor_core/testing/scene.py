"""A small recording, written down event by event: one rank, with what a test needs and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

import pandas as pd

from advisor_core.contracts.facts import Fact
from advisor_core.contracts.missing import Missing
from advisor_core.facts.store import FactStore
from advisor_core.testing.scene_words import ASCEND, SceneWords
from advisor_core.testing.tables import fact_store, profile, table
from advisor_core.text.base import Text

PYTHON_THREAD: Final = 100
"""The thread of the host on which everything happens that is given no other: it feeds the device, as with
TASK_QUEUE_ENABLE=0."""

AHEAD_US: Final = 5.0
"""Time between the launch and the start of a kernel where nothing else is given: in time, and not worth a mention."""

_GROUP_HASH: Final = 100


class Scene:
    """One rank. Every time is in microseconds, points in time on one clock; each method returns the scene.

    What is filled in: a kernel has its task in stream 2, the call that launched it 5 us before it starts, and the arrow
    between the two; it is of step 1. There is no profiler step, and so the whole recording is one, until `step` marks
    some. Columns that nothing is told of have no value.

    ``rows``: table name to its rows, in the order in which they were written; keys are columns of the canonical table,
    those that end in ``_us`` microseconds. A test may change and remove rows before it asks for the facts.
    """

    def __init__(self, *, rank: int = 0, words: SceneWords = ASCEND) -> None:
        """``words``: of the vendor whose devices the rank has."""
        self.rank = rank
        self.words = words
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._arrows = 0
        self._collectives = 0

    def add(self, table: str, **row: Any) -> Self:
        """A row of any canonical table."""
        self.rows.setdefault(table, []).append(row)
        return self

    def event(
        self, category: str, name: str, start: float, duration: float, thread: int = PYTHON_THREAD, **more: Any
    ) -> Self:
        """Something that a thread of the host did. ``category``: ``cpu_op``, ``user_annotation``, ``runtime``, ``gc``
        and the others of the table ``host_events``; ``more``: further columns of it."""
        row = {"category": category, "name": name, "thread": thread, "start_us": start, "duration_us": duration}
        return self.add("host_events", **row, **more)

    def step(self, number: int, start: float, duration: float) -> Self:
        """The mark of PyTorch's profiler around a step."""
        return self.event("user_annotation", f"ProfilerStep#{number}", start, duration)

    def kernel(
        self,
        start: float,
        duration: float,
        type_: str | None = None,
        *,
        launched: float | None = None,
        op: str | None = None,
        stream: int = 2,
        step: int = 1,
        core: str | None = None,
        stack: str = "",
    ) -> Self:
        """A kernel that computes, on all cores for its whole duration. ``type_`` and ``core``: by default a matrix
        product, `SceneWords.kernel_type`. ``launched``: when the host launched it. ``op``: an operator of the framework
        that begins 5 us before the launch and ends 5 us after it, with the call stack ``stack``."""
        launched = start - AHEAD_US if launched is None else launched
        type_ = self.words.kernel_type if type_ is None else type_
        core = self.words.core if core is None else core
        times = {"start_us": start, "duration_us": duration}
        busy = {"aic_ns": 1000.0 * duration} if self.words.core_times else {}
        self.add("kernels", type=type_, name=type_, core=core, stream=stream, step=step, **times, **busy)
        self.add("device_tasks", name=type_, task_type=self.words.task_type or core, stream=stream, **times)
        self.event("runtime", self.words.launch, launched - 1, 2, item=type_)
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
    ) -> Self:
        """A kernel with its tensors, each ``"8,4 BF16"`` or ``"8,4 BF16 NCHW"``: shape, type and format, ND where none
        is given. ``hf32``: whether it may compute in HF32, as the column of the same name. ``more``: as of `kernel`."""
        self.kernel(start, duration, type_, **more)
        kernel = self.rows["kernels"][-1]
        kernel |= {"name": name or type_, "hf32": hf32}
        for side, tensors in (("input", reads), ("output", writes)):
            parts = [(*tensor.split(" "), "ND")[:3] for tensor in tensors]
            for place, what in enumerate(("shapes", "dtypes", "formats")):
                kernel[f"{side}_{what}"] = ";".join(part[place] for part in parts)
        return self

    def busy(self, blocks: int = 24, **pipes: float) -> Self:
        """Of the kernel written last: the number of its blocks, and how long its pipes were busy, by the column of the
        table ``kernels`` without its unit: ``aic_mac=80`` is 80 us."""
        self.rows["kernels"][-1] |= {"block_dim": blocks, **{f"{pipe}_us": time for pipe, time in pipes.items()}}
        return self

    def _arrow(self, launched: float, start: float, stream: int) -> Self:
        self._arrows += 1
        ends = (("s", launched, PYTHON_THREAD, False), ("f", start, stream, True))
        for end, time, thread, device in ends:
            row = {"kind": "host_to_device", "end": end, "flow": self._arrows, "time_us": time}
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
        transport: str | None = None,
        launched: float | None = None,
        step: int = 1,
        group: int = 0,
    ) -> Self:
        """A collective of the group number ``group``. ``planes``: the tasks inside of it, as start, end, and the rank
        that is waited for or ``None`` while data moves; ``planes=None``: tasks were not recorded. ``size``: the bytes
        that it moved, all of them over ``transport``; without it nothing is recorded of its size. Raises ValueError
        for tasks of a vendor whose profilers record none."""
        words = self.words
        call = self._collectives
        self._collectives += 1
        name = words.collective.format(operation=operation, group=_GROUP_HASH + group, call=call)
        launched = start - AHEAD_US if launched is None else launched
        times = {"start_us": start, "duration_us": duration}
        self.add("kernels", type="", name=name, core="COMMUNICATION", step=step, **times)
        self.event("runtime", words.launch_collective, launched - 1, 2)
        self._arrow(launched, start, -1)
        if words.wait_task:
            self._planes(name, times, planes, group)
        elif planes:
            raise ValueError(f"profiles of {words.vendor} do not record the tasks of collectives")
        if size is not None:
            self._bandwidth(name, start, duration, size, transport, step, group)
        return self

    def _planes(
        self,
        name: str,
        times: dict[str, float],
        planes: Sequence[tuple[float, float, int | None]] | None,
        group: int,
    ) -> None:
        if planes is None:
            return
        lane = {"lane": f"Group {group} Communication", "plane": -1, "name": name}
        self.add("communication_tasks", group=group, **lane, **times)
        for begin, end, peer in planes:
            task = {"lane": "Plane 1", "plane": 1, "start_us": begin, "duration_us": end - begin}
            moves = {"name": self.words.move_task, "peer_rank": -1}
            kind = moves if peer is None else {"name": self.words.wait_task, "peer_rank": peer}
            self.add("communication_tasks", **task, **kind, group=group, own_rank=self.rank)

    def _bandwidth(
        self, name: str, start: float, duration: float, size: int, transport: str | None, step: int, group: int
    ) -> None:
        call = {"step": step, "name": name, "group": str(group)}
        self.add("collectives", kind="collective", start_us=start, elapse_us=duration, **call)
        link = self.words.transport if transport is None else transport
        moved = {"bytes": size, "transit_us": duration, "packets": 2, "max_packet_bytes": size // 2}
        for counted in (link, self.words.totals.get(link, "")):
            if counted:
                self.add("collective_bandwidth", transport=counted, **moved, **call)

    def operator(
        self,
        name: str,
        host_self: float,
        host_total: float,
        device_total: float = 0,
        *,
        device_self: float = 0,
        **more: Any,
    ) -> Self:
        """A row of the exporter's list of operators: times on the host and on the device, of the operator alone and
        with those that it calls. ``more``: further columns of the table ``operators``."""
        times = {"host_self_us": host_self, "host_total_us": host_total}
        device = {"device_self_us": device_self, "device_total_us": device_total}
        return self.add("operators", name=name, **times, **device, **more)

    def table(self, name: str) -> pd.DataFrame:
        """The canonical table ``name`` as far as it is written. Raises KeyError for a column that it does not have."""
        return table(name, self.rows[name])

    def store(self, *without: str, facts: Iterable[Fact[object]] = (), **about: Any) -> FactStore:
        """The facts of all installed plugins, and ``facts``. ``without``: tables that the recording does not have.
        ``about``: fields of the profile, such as ``level="level0"`` or ``world_size=8``."""
        tables = {name: self.table(name) for name in self.rows if name not in without}
        missing = {name: Missing(Text(en=f"{name} is missing", zh=f"缺少 {name}")) for name in without}
        fields = {"rank": self.rank, "vendor": self.words.vendor, "missing": missing, **about}
        return fact_store(None, profile(**fields), facts, **tables)
