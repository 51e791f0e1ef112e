"""Collectives by time, link and packet size: communication.json, communication_matrix.json and their tables.

Sizes are in MB of 10^6 bytes. As in real exports, waiting and transfer times are those of one plane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..layout import CommunicationGroup
from ..program import POINT_TO_POINT
from ..timeline import Collective, PlaneTask, Timeline
from .overlap import collective_name, double_hash
from .units import ms, us

Json = dict[str, object]
LARGE_PACKET_MB = 32.0
"""Least size of a packet that msprof calls large on these links."""
_TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
_LABELS = {
    "allReduce": "allreduce",
    "allGather": "allgather",
    "reduceScatter": "reduce",
    "alltoallv": "alltoall",
    "batchSendRecv": "batchsendrecv",
    "send": "send",
    "receive": "receive",
}
"""The label of an operation in the matrix: the exporter takes the first of the names it knows that fits
(docs/sources.md#communication-matrix)."""


@dataclass(slots=True)
class _Traffic:
    """Packets over one kind of link: count and time (ns) by size in bytes."""

    packets: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, tasks: Iterable[PlaneTask]) -> None:
        for task in tasks:
            entry = self.packets[task.nbytes]
            entry[0] += 1
            entry[1] += task.end - task.start

    @property
    def size_mb(self) -> float:
        return sum(size * count for size, (count, _) in self.packets.items()) / 1e6

    @property
    def time_ms(self) -> float:
        return ms(sum(time for _, time in self.packets.values()))

    @property
    def distribution(self) -> Json:
        return {str(size / 1e6): [count, ms(time)] for size, (count, time) in self.packets.items()}

    @property
    def large_ratio(self) -> float:
        large = sum(count for size, (count, _) in self.packets.items() if size / 1e6 > LARGE_PACKET_MB)
        return round(large / sum(count for count, _ in self.packets.values()), 4)


@dataclass(slots=True)
class _Times:
    """Time of the operations on the plane to the first peer, by kind, nanoseconds."""

    elapse: int = 0
    transit: int = 0
    wait: int = 0
    synchronization: int = 0

    def add(self, collective: Collective) -> None:
        first = min(task.plane for task in collective.tasks if task.plane > 0)
        plane = [task for task in collective.tasks if task.plane == first]
        transfers = [task for task in plane if _moves_data(task)]
        waits = [task for task in plane if task.kind == "Notify_Wait"]
        begun = transfers[0].start if transfers else collective.end
        self.elapse += collective.end - collective.start
        self.transit += _sum(transfers)
        self.wait += _sum(waits)
        self.synchronization += _sum(task for task in waits if task.start < begun)

    def as_json(self) -> Json:
        return {
            "Elapse Time(ms)": ms(self.elapse),
            "Transit Time(ms)": ms(self.transit),
            "Wait Time(ms)": ms(self.wait),
            "Synchronization Time(ms)": ms(self.synchronization),
            "Idle Time(ms)": ms(self.elapse - self.transit - self.wait),
            "Wait Time Ratio": _share(self.wait, self.transit),
            "Synchronization Time Ratio": _share(self.synchronization, self.transit),
        }


def _share(part: int, rest: int) -> float:
    return round(part / (part + rest), 4) if part else 0


def _sum(tasks: Iterable[PlaneTask]) -> int:
    return sum(task.end - task.start for task in tasks)


def _moves_data(task: PlaneTask) -> bool:
    return task.plane > 0 and task.kind in {"Memcpy", "Reduce_Inline"}


def _by_step(timeline: Timeline) -> dict[str, list[Collective]]:
    return {
        f"step{step.number}": [part for part in timeline.collectives if part.step == step.number]
        for step in timeline.steps
    }


def communication(timeline: Timeline) -> Json:
    """Time and bandwidth of every operation, and their totals, per step."""
    return {
        step: {section: _operations(parts) for section, parts in _sections(operations).items()}
        for step, operations in _by_step(timeline).items()
    }


def _sections(operations: list[Collective]) -> dict[str, list[Collective]]:
    """Operations between two ranks, and those of whole groups."""
    sections: dict[str, list[Collective]] = {"p2p": [], "collective": []}
    for operation in operations:
        sections["p2p" if operation.operation in POINT_TO_POINT else "collective"].append(operation)
    return sections


def _operations(operations: list[Collective]) -> Json:
    if not operations:
        return {}
    result: Json = {}
    total_times, totals = _Times(), {transport: _Traffic() for transport in _TRANSPORTS}
    for operation in operations:
        times, traffic = _Times(), _Traffic()
        moved = [task for task in operation.tasks if _moves_data(task)]
        times.add(operation)
        traffic.add(moved)
        total_times.add(operation)
        used = {operation.group.transport, "SDMA"} if moved else set()
        for transport in used:
            totals[transport].add(moved)
        result[f"{collective_name(operation)}@{double_hash(operation.group.key)}"] = {
            "Communication Time Info": {"Start Timestamp(us)": us(operation.start), **times.as_json()},
            "Communication Bandwidth Info": {
                transport: _bandwidth(traffic if transport in used else None, transport) for transport in _TRANSPORTS
            },
        }
    result["Total Op Info"] = {
        "Communication Time Info": total_times.as_json(),
        "Communication Bandwidth Info": {transport: _total(totals[transport], transport) for transport in _TRANSPORTS},
    }
    return result


def _bandwidth(traffic: _Traffic | None, transport: str) -> Json:
    if traffic is None:
        return {
            "Transit Size(MB)": 0,
            "Transit Time(ms)": 0,
            "Bandwidth(GB/s)": 0,
            "Large Packet Ratio": 0,
            "Size Distribution": {},
        }
    # SDMA stands for all links that this engine drives and therefore repeats them without packets.
    link = transport != "SDMA"
    return {
        "Transit Size(MB)": traffic.size_mb,
        "Transit Time(ms)": traffic.time_ms,
        "Bandwidth(GB/s)": round(traffic.size_mb / traffic.time_ms, 4),
        "Large Packet Ratio": traffic.large_ratio if link else 0,
        "Size Distribution": traffic.distribution if link else {},
    }


def _total(traffic: _Traffic, transport: str) -> Json:
    used = bool(traffic.packets)
    return {
        "Transit Time(ms)": traffic.time_ms if used else 0,
        "Transit Size(MB)": traffic.size_mb if used else 0,
        "Size Distribution": traffic.distribution if transport != "SDMA" else {},
    }


@dataclass(frozen=True, slots=True)
class _LinkUse:
    """Data that one operation moved over one link."""

    operator: str
    nbytes: int
    ns: int
    transport: str

    @property
    def bandwidth(self) -> float:
        return self.nbytes / self.ns

    def as_json(self) -> Json:
        return {
            "Transport Type": self.transport,
            "Transit Size(MB)": self.nbytes / 1e6,
            "Transit Time(ms)": ms(self.ns),
            "Bandwidth(GB/s)": round(self.bandwidth, 4),
            "Op Name": self.operator,
        }


def communication_matrix(timeline: Timeline) -> Json:
    """Per type, group and link the fastest, median and slowest operations and the total, per step."""
    return {
        step: {section: _matrix(timeline.rank, parts) for section, parts in _sections(operations).items()}
        for step, operations in _by_step(timeline).items()
    }


def _matrix(rank: int, operations: list[Collective]) -> Json:
    matrix: Json = {}
    kinds: dict[tuple[str, CommunicationGroup], list[Collective]] = defaultdict(list)
    for operation in operations:
        kinds[_LABELS[operation.operation], operation.group].append(operation)
    for (label, group), members in kinds.items():
        matrix |= _matrix_of(label, group, group.local(rank), members)
    return matrix


def _matrix_of(label: str, group: CommunicationGroup, rank: int, operations: list[Collective]) -> Json:
    """The links of one type of operation in one group; ranks are places in the group
    (docs/sources.md#communication-matrix)."""
    links: dict[int, list[_LinkUse]] = defaultdict(list)
    for operation in operations:
        by_peer: dict[int, list[PlaneTask]] = defaultdict(list)
        for task in operation.tasks:
            if task.peer is not None and task.nbytes:
                by_peer[task.peer].append(task)
        for peer, tasks in by_peer.items():
            size = sum(task.nbytes for task in tasks)
            transport = "LOCAL" if peer == rank else group.transport
            links[peer].append(_LinkUse(collective_name(operation), size, _sum(tasks), transport))
    ranked = {peer: sorted(uses, key=lambda use: -use.bandwidth) for peer, uses in links.items()}
    hash_ = double_hash(group.key)
    matrix: Json = {}
    for name in ("top1", "middle", "bottom1", "bottom2", "bottom3"):
        chosen = {f"{rank}-{peer}": use.as_json() for peer, uses in ranked.items() if (use := _ranked(uses, name))}
        if chosen:
            matrix[f"{label}-{name}@{hash_}"] = chosen
    if ranked:
        totals = {f"{rank}-{peer}": _link_total(uses) for peer, uses in ranked.items()}
        matrix[f"{label}-total@{hash_}"] = totals
    return matrix


def _ranked(uses: list[_LinkUse], name: str) -> _LinkUse | None:
    """The use of a link at a place of the order from fast to slow, if there are as many."""
    index = {"top1": 0, "middle": len(uses) // 2, "bottom1": -1, "bottom2": -2, "bottom3": -3}[name]
    return uses[index] if index >= -len(uses) else None


def _link_total(uses: list[_LinkUse]) -> Json:
    total = _LinkUse("", sum(use.nbytes for use in uses), sum(use.ns for use in uses), uses[0].transport).as_json()
    del total["Op Name"]
    return total
