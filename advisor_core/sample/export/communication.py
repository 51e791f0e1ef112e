"""Collectives by time, link and packet size: communication.json, communication_matrix.json and their tables.

Sizes are in MB of 10^6 bytes. As in real exports, waiting and transfer times are those of one plane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..timeline import Collective, PlaneTask, Timeline
from .overlap import GROUP_ID, collective_name
from .units import ms, us

Json = dict[str, object]
LARGE_PACKET_MB = 32.0
"""What msprof calls a large packet on these links."""
_TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")


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
    """Where the time of collectives went on the plane to the first peer, nanoseconds."""

    elapse: int = 0
    transit: int = 0
    wait: int = 0
    synchronization: int = 0

    def add(self, collective: Collective) -> None:
        plane = [task for task in collective.tasks if task.plane == 1]
        transfers = [task for task in plane if _moves_data(task)]
        waits = [task for task in plane if task.kind == "Notify_Wait"]
        self.elapse += collective.end - collective.start
        self.transit += _sum(transfers)
        self.wait += _sum(waits)
        self.synchronization += _sum(task for task in waits if task.start < transfers[0].start)

    def as_json(self) -> Json:
        return {
            "Elapse Time(ms)": ms(self.elapse),
            "Transit Time(ms)": ms(self.transit),
            "Wait Time(ms)": ms(self.wait),
            "Synchronization Time(ms)": ms(self.synchronization),
            "Idle Time(ms)": ms(self.elapse - self.transit - self.wait),
            "Wait Time Ratio": round(self.wait / (self.wait + self.transit), 4),
            "Synchronization Time Ratio": round(self.synchronization / (self.synchronization + self.transit), 4),
        }


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
    """Time and bandwidth of every collective, and their totals, per step."""
    return {
        step: {"p2p": {}, "collective": _collectives(collectives)} for step, collectives in _by_step(timeline).items()
    }


def _collectives(collectives: list[Collective]) -> Json:
    result: Json = {}
    total_times, total_traffic = _Times(), _Traffic()
    for collective in collectives:
        times, traffic = _Times(), _Traffic()
        moved = [task for task in collective.tasks if _moves_data(task)]
        times.add(collective)
        traffic.add(moved)
        total_times.add(collective)
        total_traffic.add(moved)
        result[f"{collective_name(collective)}@{GROUP_ID}"] = {
            "Communication Time Info": {"Start Timestamp(us)": us(collective.start), **times.as_json()},
            "Communication Bandwidth Info": {transport: _bandwidth(traffic, transport) for transport in _TRANSPORTS},
        }
    result["Total Op Info"] = {
        "Communication Time Info": total_times.as_json(),
        "Communication Bandwidth Info": {transport: _total(total_traffic, transport) for transport in _TRANSPORTS},
    }
    return result


def _bandwidth(traffic: _Traffic, transport: str) -> Json:
    if transport not in {"HCCS", "SDMA"}:
        return {
            "Transit Size(MB)": 0,
            "Transit Time(ms)": 0,
            "Bandwidth(GB/s)": 0,
            "Large Packet Ratio": 0,
            "Size Distribution": {},
        }
    # SDMA stands for all links that this engine drives and therefore repeats HCCS without packets.
    links = transport == "HCCS"
    return {
        "Transit Size(MB)": traffic.size_mb,
        "Transit Time(ms)": traffic.time_ms,
        "Bandwidth(GB/s)": round(traffic.size_mb / traffic.time_ms, 4),
        "Large Packet Ratio": traffic.large_ratio if links else 0,
        "Size Distribution": traffic.distribution if links else {},
    }


def _total(traffic: _Traffic, transport: str) -> Json:
    used = transport in {"HCCS", "SDMA"}
    return {
        "Transit Time(ms)": traffic.time_ms if used else 0,
        "Transit Size(MB)": traffic.size_mb if used else 0,
        "Size Distribution": traffic.distribution if transport == "HCCS" else {},
    }


@dataclass(frozen=True, slots=True)
class _LinkUse:
    """What one collective moved over one link."""

    operator: str
    nbytes: int
    ns: int
    local: bool

    @property
    def bandwidth(self) -> float:
        return self.nbytes / self.ns

    def as_json(self) -> Json:
        return {
            "Transport Type": "LOCAL" if self.local else "HCCS",
            "Transit Size(MB)": self.nbytes / 1e6,
            "Transit Time(ms)": ms(self.ns),
            "Bandwidth(GB/s)": round(self.bandwidth, 4),
            "Op Name": self.operator,
        }


def communication_matrix(timeline: Timeline) -> Json:
    """Per link the fastest, median and slowest collectives and the total, per step."""
    return {
        step: {"p2p": {}, "collective": _matrix(timeline.rank, collectives)}
        for step, collectives in _by_step(timeline).items()
    }


def _matrix(rank: int, collectives: list[Collective]) -> Json:
    links: dict[int, list[_LinkUse]] = defaultdict(list)
    for collective in collectives:
        by_peer: dict[int, list[PlaneTask]] = defaultdict(list)
        for task in collective.tasks:
            if task.peer is not None and task.nbytes:
                by_peer[task.peer].append(task)
        for peer, tasks in by_peer.items():
            size = sum(task.nbytes for task in tasks)
            links[peer].append(_LinkUse(collective_name(collective), size, _sum(tasks), peer == rank))
    ranked = {peer: sorted(uses, key=lambda use: -use.bandwidth) for peer, uses in links.items()}
    positions = {"top1": 0, "middle": len(collectives) // 2, "bottom1": -1, "bottom2": -2, "bottom3": -3}
    matrix: Json = {
        f"allreduce-{name}@{GROUP_ID}": {f"{rank}-{peer}": uses[index].as_json() for peer, uses in ranked.items()}
        for name, index in positions.items()
        if -len(collectives) <= index < len(collectives)
    }
    matrix[f"allreduce-total@{GROUP_ID}"] = {f"{rank}-{peer}": _link_total(uses) for peer, uses in ranked.items()}
    return matrix


def _link_total(uses: list[_LinkUse]) -> Json:
    total = _LinkUse("", sum(use.nbytes for use in uses), sum(use.ns for use in uses), uses[0].local).as_json()
    del total["Op Name"]
    return total
