"""ME001, ME004: how much of the device is used, and by what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    MEMORY_RECORD,
    MODULE_MEMORY,
    OPERATOR_MEMORY,
    Facts,
    PeakMemory,
    Unavailable,
    ledger,
    memory_capacity,
    memory_curve,
    memory_peak,
    steps,
)
from advisors.measuring import leaves, records, row, share, step_ns, under
from advisors.memory.capacity import CAPACITY, used_of_capacity
from advisors.memory.columns import RESERVED, SIZE, TENSORS
from advisors.messages import message

_HOLDERS = (
    Column("component", "text", "", "component of the software that reserves memory", zh="组件"),
    RESERVED,
    Column("operator", "text", "", "operator that allocated the tensors", zh="算子"),
    TENSORS,
    SIZE,
)


@advisor(
    "memory.usage",
    needs=(MEMORY_RECORD,),
    wants=(memory_capacity, MODULE_MEMORY, memory_curve, memory_peak, steps, ledger),
    params=("capacity",),
    columns=(
        *CAPACITY,
        Column("reserved_bytes", "float", "B", "most that the framework's allocator had reserved", zh="已预留"),
        Column("allocated_bytes", "float", "B", "most that tensors took of it", zh="已分配"),
        Column(
            "returns",
            "float",
            "count",
            "how often the allocator gave reserved memory back to the driver",
            zh="归还次数",
        ),
        Column(
            "stall_share",
            "float",
            "ratio",
            "of the step: idle while device memory is allocated or freed",
            zh="停顿占比",
        ),
        Column(
            "host_share",
            "float",
            "ratio",
            "of the step: idle because the host was late; unknown where causes are",
            zh="host 等待占比",
        ),
    ),
    evidence=(*_HOLDERS,),
)
def usage(facts: Facts, params: Params) -> Observations:
    """The part of the device's memory that the process holds, and its cost."""
    curve, booked = facts.get(memory_curve), facts.get(ledger) is not None
    used = used_of_capacity(facts, params)
    if not np.isfinite(float(used["used_bytes"])):
        raise Unavailable(message("memory.no_process"), message("memory.no_process.collect"), ("memory",))
    reserved = curve["reserved_bytes"].to_numpy() if curve is not None else np.empty(0)
    frame = row(
        **used,
        reserved_bytes=float(reserved.max()) if len(reserved) else np.nan,
        allocated_bytes=float(curve["allocated_bytes"].max()) if curve is not None else np.nan,
        returns=float((np.diff(reserved) < 0).sum()) if len(reserved) else np.nan,
        stall_share=share(under(leaves(facts), "idle/host/memory"), step_ns(facts)) if booked else np.nan,
        host_share=_host_share(facts) if booked else np.nan,
    )

    def evidence(number: int) -> Sequence[Reference]:
        record = facts[MEMORY_RECORD]
        samples = record.index[record["component"] == "APP"].to_numpy()
        most = samples[np.argsort(-record["reserved_bytes"].to_numpy()[samples], kind="stable")[:1]]
        highest = Rows(message("memory.highest"), MEMORY_RECORD, most, ("component", "time_ns", "reserved_bytes"))
        return [*([highest] if len(most) else []), *_holders(facts)]

    return Observations(frame, evidence)


def _host_share(facts: Facts) -> float:
    """Idle time behind a late host, also where it was late because it had waited for the device. Unknown where the
    causes of more idle time than that are not known."""
    host, unknown = under(leaves(facts), "idle/host", "idle/sync"), under(leaves(facts), "idle/unknown")
    return share(host, step_ns(facts)) if host >= unknown else np.nan


def _holders(facts: Facts) -> list[Reference]:
    """The peak memory of each component, and the tensors of the peak."""
    references: list[Reference] = []
    modules = facts.get(MODULE_MEMORY)
    if modules is not None and len(modules):
        most = modules.groupby("component", observed=True)["reserved_bytes"].max()
        largest = most[most > 0].sort_values(ascending=False, kind="stable").reset_index()
        rows = records(largest, component="component", reserved="reserved_bytes")
        references.append(Metric(message("memory.components"), rows))
    return [*references, *_alive(facts.get(memory_peak))]


def _alive(peak: PeakMemory | None) -> list[Reference]:
    if peak is None or not len(peak.by_operator):
        return []
    rows = records(peak.by_operator, operator="name", tensors="tensors", size="bytes")
    columns = ("name", "bytes", "allocation_ns")
    return [
        Metric(message("memory.alive"), rows),
        Rows(message("memory.alive_rows"), OPERATOR_MEMORY, peak.rows, columns),
    ]
