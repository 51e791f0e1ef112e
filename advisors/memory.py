"""Device memory: distance to its limit, fragmentation, leaks, unused memory, and buffers of communication."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, Setting, Stack, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    HOST_EVENTS,
    MEMORY_RECORD,
    MODULE_MEMORY,
    OPERATOR_MEMORY,
    PROFILE,
    Facts,
    NotApplicable,
    PeakMemory,
    Unavailable,
    fact,
    ledger,
    memory_capacity,
    memory_curve,
    memory_peak,
    memory_steps,
    of_graph_engine,
    steps,
)
from advisors.measuring import frames_of, leaves, records, row, share, step_ns, under
from advisors.messages import message

_COMPARED = 3
"""Steps: two rises in a row, in the shortest profile that is advised anywhere. Ten tell more, and say so."""
_BUFFSIZE = 200 * 1024 * 1024
"""Bytes of HCCL_BUFFSIZE unless set; a communicator takes it twice, for what it sends and what it receives."""

_CAPACITY = (
    Column("used_bytes", "float", "B", "most that the process held", zh="已使用显存"),
    Column("capacity_bytes", "float", "B", "memory of the device: as given, else by the kind of chip", zh="显存容量"),
    Column("used_share", "float", "ratio", "used_bytes over capacity_bytes", zh="使用占比"),
    Column("capacity_basis", "text", "", "how the capacity is known", zh="容量依据"),
)

_SIZE = Column("size", "float", "B", "size of these tensors", zh="大小")
_TENSORS = Column("tensors", "int", "count", "tensors", zh="tensor 数")
_RESERVED = Column("reserved", "float", "B", "most memory that was reserved", zh="已预留")
_HOLDERS = (
    Column("component", "text", "", "component of the software that reserves memory", zh="组件"),
    _RESERVED,
    Column("operator", "text", "", "operator that allocated the tensors", zh="算子"),
    _TENSORS,
    _SIZE,
)
_PER_STEP = (
    Column("step", "int", "", "id of the step", zh="step"),
    Column("least", "float", "B", "least memory of tensors in the step", zh="最小"),
    Column("most", "float", "B", "most memory of tensors in the step", zh="最大"),
    _RESERVED,
)


def _capacity(facts: Facts, params: Params) -> tuple[float, str]:
    """Bytes and their basis; NaN where neither the user nor the chip tells."""
    given = float(params["capacity"])
    if given > 0:
        return given, "given"
    known = facts.get(memory_capacity)
    return (float(known.bytes), known.basis) if known is not None else (np.nan, "")


def _used(record: pd.DataFrame | None, modules: pd.DataFrame | None) -> float:
    """Most that the process held, in bytes: its own samples, else the sum of what its components held."""
    if record is not None:
        own = record.loc[record["component"] == "APP", "reserved_bytes"].max()
        if np.isfinite(own):
            return float(own)
    if modules is not None and len(modules):
        return float(modules.groupby("component", observed=True)["reserved_bytes"].max().sum())
    return float("nan")


def _of_capacity(facts: Facts, params: Params) -> dict[str, float | str]:
    used = _used(facts.get(MEMORY_RECORD), facts.get(MODULE_MEMORY))
    capacity, basis = _capacity(facts, params)
    return {
        "used_bytes": used,
        "capacity_bytes": capacity,
        "used_share": share(used, capacity),
        "capacity_basis": basis,
    }


def _holders(facts: Facts) -> list[Reference]:
    """What each component holds at most, and the tensors of the peak."""
    found: list[Reference] = []
    modules = facts.get(MODULE_MEMORY)
    if modules is not None and len(modules):
        most = modules.groupby("component", observed=True)["reserved_bytes"].max()
        largest = most[most > 0].sort_values(ascending=False, kind="stable").reset_index()
        rows = records(largest, component="component", reserved="reserved_bytes")
        found.append(Metric(message("memory.components"), rows))
    return [*found, *_alive(facts.get(memory_peak))]


def _alive(peak: PeakMemory | None) -> list[Reference]:
    if peak is None or not len(peak.by_operator):
        return []
    rows = records(peak.by_operator, operator="name", tensors="tensors", size="bytes")
    columns = ("name", "bytes", "allocation_ns")
    return [
        Metric(message("memory.alive"), rows),
        Rows(message("memory.alive_rows"), OPERATOR_MEMORY, peak.rows, columns),
    ]


# --- ME001, ME004: how much of the device is used


@advisor(
    "memory.usage",
    needs=(MEMORY_RECORD,),
    wants=(memory_capacity, MODULE_MEMORY, memory_curve, memory_peak, steps, ledger),
    params=("capacity",),
    columns=(
        *_CAPACITY,
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
    """How much of the device's memory the process holds, and what that costs."""
    curve, booked = facts.get(memory_curve), facts.get(ledger) is not None
    held = _of_capacity(facts, params)
    if not np.isfinite(float(held["used_bytes"])):
        raise Unavailable(message("memory.no_process"), message("memory.no_process.collect"), ("memory",))
    reserved = curve["reserved_bytes"].to_numpy() if curve is not None else np.empty(0)
    frame = row(
        **held,
        reserved_bytes=float(reserved.max()) if len(reserved) else np.nan,
        allocated_bytes=float(curve["allocated_bytes"].max()) if curve is not None else np.nan,
        returns=float((np.diff(reserved) < 0).sum()) if len(reserved) else np.nan,
        stall_share=share(under(leaves(facts), "idle/host/memory"), step_ns(facts)) if booked else np.nan,
        host_share=_host_share(facts) if booked else np.nan,
    )

    def evidence(number: int) -> Sequence[Reference]:
        record = facts[MEMORY_RECORD]
        own = record.index[record["component"] == "APP"].to_numpy()
        most = own[np.argsort(-record["reserved_bytes"].to_numpy()[own], kind="stable")[:1]]
        highest = Rows(message("memory.highest"), MEMORY_RECORD, most, ("component", "time_ns", "reserved_bytes"))
        return [*([highest] if len(most) else []), *_holders(facts)]

    return Observations(frame, evidence)


def _host_share(facts: Facts) -> float:
    """Idle time behind a late host, also where it was late because it had waited for the device. Unknown where the
    causes of more idle time than that are not known."""
    host, unknown = under(leaves(facts), "idle/host", "idle/sync"), under(leaves(facts), "idle/unknown")
    return share(host, step_ns(facts)) if host >= unknown else np.nan


# --- ME002, ME003: how it changes from step to step


@fact("memory_trend", needs=(memory_steps,), frames=memory_steps.frames)
def memory_trend(facts: Facts) -> pd.DataFrame:
    """The rows of memory_steps, where there are enough of them to compare."""
    steps = facts[memory_steps]
    if len(steps) < _COMPARED:
        reason = message("memory.few_steps", count=len(steps), needed=_COMPARED)
        raise Unavailable(reason, message("memory.few_steps.collect"), ("steps", "memory"))
    return steps


def _pace(values: np.ndarray) -> tuple[float, float]:
    """Rise per step from the first to the last, and at the median step."""
    return float(values[-1] - values[0]) / (len(values) - 1), float(np.median(np.diff(values)))


def _per_step(steps: pd.DataFrame) -> Metric:
    rows = records(steps, 20, step="step", least="trough_bytes", most="peak_bytes", reserved="reserved_bytes")
    return Metric(message("memory.per_step"), rows)


def _until_full(left: float, rise: float) -> float:
    return left / rise if rise > 0 else float("nan")


@advisor(
    "memory.fragmentation",
    needs=(memory_curve, PROFILE),
    wants=(memory_trend, memory_capacity, MEMORY_RECORD, MODULE_MEMORY),
    params=("capacity",),
    columns=(
        *_CAPACITY,
        Column("reserved_bytes", "float", "B", "most that the framework's allocator had reserved", zh="已预留"),
        Column("allocated_bytes", "float", "B", "most that tensors took of it", zh="已分配"),
        Column(
            "unused_bytes",
            "float",
            "B",
            "reserved_bytes less allocated_bytes: no tensor needed it at any moment",
            zh="未使用显存",
        ),
        Column("unused_share", "float", "ratio", "unused_bytes over reserved_bytes", zh="未使用占比"),
        Column("reserved_rise", "float", "B", "rise of the reserved memory per step", zh="预留每 step 增长"),
        Column(
            "allocated_rise",
            "float",
            "B",
            "rise per step of the most that was allocated in a step",
            zh="分配峰值每 step 增长",
        ),
        Column(
            "growing_steps",
            "float",
            "count",
            "steps in which more was reserved than in any before",
            zh="增长的 step 数",
        ),
        Column(
            "unfit",
            "float",
            "count",
            "reserved memory given back for a request, although more than that was free",
            zh="不合适而归还的次数",
        ),
        Column("steps_to_full", "float", "count", "steps until the device is full at this pace", zh="距占满的 step 数"),
    ),
    evidence=(
        *_PER_STEP,
        Column("allocated", "float", "B", "memory of tensors at most", zh="已分配"),
        Column("unused", "float", "B", "reserved less allocated", zh="未使用"),
    ),
)
def fragmentation(facts: Facts, params: Params) -> Observations:
    """What the allocator reserves beyond what tensors take, and whether that grows."""
    curve, steps = facts[memory_curve], facts.get(memory_trend)
    profile = facts[PROFILE]
    reserved, allocated = float(curve["reserved_bytes"].max()), float(curve["allocated_bytes"].max())
    held = _of_capacity(facts, params)
    rise = climb = growing = np.nan
    if steps is not None:
        highest = steps["reserved_bytes"].to_numpy()
        rise, climb = _pace(highest)[0], _pace(steps["peak_bytes"].to_numpy())[0]
        growing = float((np.diff(np.maximum.accumulate(highest)) > 0).sum())
    frame = row(
        **held,
        reserved_bytes=reserved,
        allocated_bytes=allocated,
        unused_bytes=reserved - allocated,
        unused_share=share(reserved - allocated, reserved),
        reserved_rise=rise,
        allocated_rise=climb,
        growing_steps=growing,
        unfit=_unfit(curve),
        steps_to_full=_until_full(float(held["capacity_bytes"]) - float(held["used_bytes"]), rise),
    )

    def evidence(number: int) -> Sequence[Reference]:
        name = "PYTORCH_NPU_ALLOC_CONF"
        found: list[Reference] = [_per_step(steps)] if steps is not None else []
        if name in profile.variables:
            file = profile.setting_files.get("variables", "")
            found.append(Setting(message("memory.setting"), name, profile.variables[name], file))
        most = [{"reserved": reserved, "allocated": allocated, "unused": reserved - allocated}]
        return [*found, Metric(message("memory.most"), most)]

    return Observations(frame, evidence)


def _unfit(curve: pd.DataFrame) -> float:
    """How often the allocator gave reserved memory back when it was asked for less than it had free: in pieces that did
    not fit. (An allocation and a fall of what is reserved in the same row.)"""
    reserved, allocated = curve["reserved_bytes"].to_numpy(), curve["allocated_bytes"].to_numpy()
    asked, free = np.diff(allocated), (reserved - allocated)[:-1]
    return float(((np.diff(reserved) < 0) & (asked > 0) & (asked <= free)).sum())


@advisor(
    "memory.growth",
    needs=(memory_trend,),
    wants=(OPERATOR_MEMORY, HOST_EVENTS, memory_capacity, MEMORY_RECORD, MODULE_MEMORY),
    params=("capacity",),
    columns=(
        *_CAPACITY,
        Column("steps", "int", "count", "steps compared", zh="step 数"),
        Column(
            "rise",
            "float",
            "B",
            "rise per step of the least that was allocated in a step, first to last",
            zh="每 step 增长",
        ),
        Column("median_rise", "float", "B", "the same at the median step", zh="每 step 增长中位数"),
        Column(
            "rising_share",
            "float",
            "ratio",
            "of the steps: the least allocated is above that of the step before",
            zh="增长 step 占比",
        ),
        Column("steps_to_full", "float", "count", "steps until the device is full at this pace", zh="距占满的 step 数"),
        Column(
            "operator",
            "text",
            "",
            "operator with most memory that recurs step by step and is never released",
            zh="算子",
        ),
        Column("unreleased_bytes", "float", "B", "its memory per step", zh="未释放显存"),
        Column("unreleased", "int", "count", "tensors of all such operators", zh="未释放张量数"),
    ),
    evidence=(
        *_PER_STEP,
        _SIZE,
        _TENSORS,
        Column("per_step", "float", "B", "bytes allocated per step and never released", zh="每步"),
    ),
)
def growth(facts: Facts, params: Params) -> Observations:
    """Whether the memory that remains between steps grows, and which tensors are never released."""
    steps = facts[memory_trend]
    least = steps["trough_bytes"].to_numpy()
    rise, median = _pace(least)
    held = _of_capacity(facts, params)
    kept, rows = _unreleased(facts.get(OPERATOR_MEMORY), steps)
    lead = kept.iloc[0] if len(kept) else None
    frame = row(
        **held,
        steps=len(steps),
        rise=rise,
        median_rise=median,
        rising_share=float((np.diff(least) > 0).mean()),
        steps_to_full=_until_full(float(held["capacity_bytes"]) - float(held["used_bytes"]), rise),
        operator=str(lead["name"]) if lead is not None else "",
        unreleased_bytes=float(lead["per_step"]) if lead is not None else np.nan,
        unreleased=len(rows),
    )

    def evidence(number: int) -> Sequence[Reference]:
        found: list[Reference] = [_per_step(steps)]
        if not len(kept):
            return found
        listed = records(kept, operator="name", size="bytes", tensors="tensors", steps="steps", per_step="per_step")
        columns = ("name", "bytes", "allocation_ns")
        return [
            *found,
            Metric(message("memory.unreleased"), listed),
            Rows(message("memory.unreleased_rows"), OPERATOR_MEMORY, rows, columns),
            *_allocated_by(facts, str(kept["name"].iloc[0]), rows),
        ]

    return Observations(frame, evidence)


def _unreleased(operators: pd.DataFrame | None, steps: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Tensors allocated before the last step and never released, of kinds that recur in at least half of these steps.

    By kind, which is an operator and a size: ``name``, ``bytes``, ``tensors``, ``steps``, ``per_step`` (bytes per
    step), most memory first; and the rows of ``operator_memory``, those of the first kind first.
    """
    nothing = pd.DataFrame(columns=["name", "bytes", "tensors", "steps", "per_step"]), np.empty(0, np.int64)
    if operators is None:
        return nothing
    starts = steps["start_ns"].to_numpy()
    began = operators["allocation_ns"].to_numpy()
    step = np.searchsorted(starts, began, side="right") - 1
    compared = len(steps) - 1  # what the last step allocated may still be released
    stays = (operators["release_ns"] < 0).to_numpy() & (operators["bytes"] > 0).to_numpy()
    kept = operators[stays & (step >= 0) & (step < compared) & ~of_graph_engine(operators)]
    if kept.empty:
        return nothing
    kinds = kept.assign(name=kept["name"].astype(str), step=step[kept.index.to_numpy()])
    grouped = kinds.groupby(["name", "bytes"], sort=False)
    table = grouped.agg(tensors=("step", "size"), steps=("step", "nunique")).reset_index()
    table["per_step"] = table["bytes"] * table["tensors"] / compared
    table = table[table["steps"] * 2 >= compared].sort_values("per_step", ascending=False, kind="stable")
    table = table.reset_index(drop=True)
    order = kinds.reset_index().merge(table.reset_index(names="kind")[["name", "bytes", "kind"]], on=["name", "bytes"])
    rows = order.sort_values(["kind", "allocation_ns"], kind="stable")["index"].to_numpy()
    return table, rows.astype(np.int64)


def _allocated_by(facts: Facts, name: str, rows: np.ndarray) -> list[Reference]:
    """The call stack of the operator that allocated the first of the rows, as far as it is recorded."""
    events, operators = facts.get(HOST_EVENTS), facts.get(OPERATOR_MEMORY)
    if events is None or operators is None or not len(rows):
        return []
    time = int(operators["allocation_ns"].iloc[rows[0]])
    calls = events[(events["category"] == "cpu_op") & (events["name"] == name) & (events["start_ns"] <= time)]
    inside = calls[calls["start_ns"] + calls["duration_ns"] >= time]
    frames = frames_of(str(inside["call_stack"].iloc[-1])) if len(inside) else ()
    return [Stack(message("common.stack", name=name), frames)] if frames else []


# --- ME005: communication


@advisor(
    "memory.communication",
    needs=(MODULE_MEMORY, PROFILE),
    wants=(memory_capacity, MEMORY_RECORD, COLLECTIVES),
    params=("capacity",),
    columns=(
        *_CAPACITY,
        Column("hccl_bytes", "float", "B", "most that HCCL held", zh="HCCL 占用"),
        Column("hccl_share", "float", "ratio", "hccl_bytes over capacity_bytes", zh="HCCL 占比"),
        Column("communicators", "float", "count", "communication groups that the profile knows of", zh="通信域数"),
        Column(
            "default_bytes",
            "float",
            "B",
            "what these take at the default of HCCL_BUFFSIZE, twice per group",
            zh="默认占用",
        ),
    ),
    evidence=(
        Column("hccl", "float", "B", "most that HCCL held", zh="HCCL 占用"),
        Column("default", "float", "B", "what the groups take at the default of HCCL_BUFFSIZE", zh="默认占用"),
    ),
)
def communication(facts: Facts, params: Params) -> Observations:
    """What the buffers of communication take of the device."""
    modules = facts[MODULE_MEMORY]
    profile = facts[PROFILE]
    own = modules[modules["component"] == "HCCL"]
    most = float(own["reserved_bytes"].max()) if len(own) else 0.0
    if not most > 0:
        raise NotApplicable(message("memory.no_hccl"))
    collectives = facts.get(COLLECTIVES)
    groups = float(collectives["group"].nunique()) if collectives is not None and len(collectives) else np.nan
    groups = np.fmax(groups, float(len(profile.groups)) or np.nan)
    held = _of_capacity(facts, params)
    frame = row(
        **held,
        hccl_bytes=most,
        hccl_share=share(most, float(held["capacity_bytes"])),
        communicators=groups,
        default_bytes=2 * _BUFFSIZE * groups,
    )

    def evidence(number: int) -> Sequence[Reference]:
        highest = own["reserved_bytes"].idxmax()
        counted: list[dict[str, Scalar]] = [{"communicators": groups, "hccl": most, "default": 2 * _BUFFSIZE * groups}]
        columns = ("component", "time_ns", "reserved_bytes")
        return [
            Rows(message("memory.hccl"), MODULE_MEMORY, np.array([highest], dtype=np.int64), columns),
            Metric(message("memory.buffers"), counted),
        ]

    return Observations(frame, evidence)


FACTS = (memory_trend,)
ADVISORS = (usage, fragmentation, growth, communication)
