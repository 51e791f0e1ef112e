"""Each environment variable held against what the recorded steps need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from advisor_core.api import Text
from advisor_core.api.renderers import format_quantity
from advisors.environment.measured import Measured
from advisors.messages import message

Judge = Callable[[str | None, Measured], Text]
"""Of a value, '' recorded as not set, ``None`` not recorded: what it means for the job."""

ACLNN_ENTRIES = 10_000
"""Default of ACLNN_CACHE_LIMIT (docs/sources.md#environment-variables)."""

HCCL_BUFFER_BYTES = 200 << 20
"""Default of HCCL_BUFFSIZE, which HCCL counts in MiB (docs/sources.md#environment-variables)."""

DEFAULT_TRAFFIC_CLASS, DEFAULT_SERVICE_LEVEL = 132, 4
"""Defaults of HCCL_RDMA_TC and HCCL_RDMA_SL (docs/sources.md#environment-variables)."""


DEFAULT_LOG_LEVEL = 3
"""Of ASCEND_GLOBAL_LOG_LEVEL: errors (docs/sources.md#environment-variables)."""


def _quantity(value: float, unit: str) -> Text:
    return Text(en=format_quantity(value, unit, "en"), zh=format_quantity(value, unit, "zh"))


def _whole(value: str | None, least: int, most: int, default: int) -> int | None:
    """The number that holds; ``None`` for a value that is none of those allowed."""
    if not value:
        return default
    number = int(value) if value.strip().isdecimal() else -1
    return number if least <= number <= most else None


def _limit(value: str | None, limit: str) -> Text:
    """The limit that holds, with a word where it is supposed."""
    return Text(en=limit, zh=limit) if value is not None else message("environment.supposed", limit=limit)


def _aclnn_cache(value: str | None, found: Measured) -> Text:
    limit = _whole(value, 1, 10_000_000, ACLNN_ENTRIES)
    if limit is None:
        return message("environment.not_whole", least=1, most=10_000_000)
    shown = _limit(value, str(limit))
    if found.signatures is None:
        return message("environment.cache.unknown", limit=shown)
    name = "environment.cache.fits" if found.signatures <= limit else "environment.cache.full"
    return message(name, limit=shown, count=found.signatures)


_OFF = {True: "environment.off", False: "environment.unknown"}
"""By whether the value is recorded."""


def _host_cache(value: str | None, found: Measured) -> Text:
    shapes = found.varying_share
    is_on = value not in (None, "", "0")
    state = message("environment.on" if is_on else _OFF[value is not None])
    if shapes is None:
        return message("environment.shapes.unknown", state=state)
    if shapes == 0:
        return message("environment.shapes.same", state=state)
    name = "environment.shapes.served" if is_on else "environment.shapes.vary"
    return message(name, state=state, share=_quantity(shapes, "ratio"))


def _algorithm(value: str | None, found: Measured) -> Text:
    if found.collectives == 0:
        return message("environment.no_collectives")
    if value == "":
        return message("environment.algorithm.chosen")
    share = found.uncovered_share
    moving = message("environment.algorithm.unknown") if share is None else _quantity(share, "ratio")
    return message("environment.algorithm.fixed" if value else "environment.algorithm.not_recorded", share=moving)


def _traffic_class(value: str | None, found: Measured) -> Text:
    number = _whole(value, 0, 255, DEFAULT_TRAFFIC_CLASS)
    if number is None or number % 4:
        return message("environment.rdma.no_class")
    return _over_rdma(found, message("environment.rdma.class", value=number, dscp=number // 4))


def _service_level(value: str | None, found: Measured) -> Text:
    number = _whole(value, 0, 7, DEFAULT_SERVICE_LEVEL)
    if number is None:
        return message("environment.not_whole", least=0, most=7)
    return _over_rdma(found, message("environment.rdma.level", value=number))


def _over_rdma(found: Measured, expected: Text) -> Text:
    if found.rdma_bytes is None:
        return message("environment.rdma.unknown", expected=expected)
    if found.rdma_bytes == 0:
        return message("environment.rdma.unused")
    return message("environment.rdma.used", bytes=_quantity(found.rdma_bytes, "B"), expected=expected)


def _buffer(value: str | None, found: Measured) -> Text:
    number = _whole(value, 1, 1 << 20, HCCL_BUFFER_BYTES >> 20)
    if number is None:
        return message("environment.not_whole", least=1, most=1 << 20)
    if found.collectives == 0:
        return message("environment.no_collectives")
    limit = _limit(value, f"{number} MiB")
    if found.largest_bytes is None:
        return message("environment.buffer.unknown", limit=limit)
    fits = found.largest_bytes <= number << 20
    name = "environment.buffer.fits" if fits else "environment.buffer.exceeded"
    return message(name, limit=limit, largest=f"{found.largest_bytes / (1 << 20):.1f} MiB")


def _allocator(value: str | None, found: Measured) -> Text:
    if found.memory_calls is None:
        return message("environment.allocator.unknown")
    if found.memory_calls == 0:
        return message("environment.allocator.none")
    idle = message("environment.allocator.idle_unknown")
    if found.memory_ns is not None:
        idle = message("environment.allocator.idle", ns=_quantity(round(found.memory_ns), "ns"))
    return message("environment.allocator.calls", calls=f"{found.memory_calls:g}", idle=idle)


def _affinity(value: str | None, found: Measured) -> Text:
    if found.host_share is None:
        return message("environment.host.unknown")
    return message("environment.host.share", share=_quantity(found.host_share, "ratio"))


_QUEUE = {
    "off": "environment.queue.off",
    "on": "environment.queue.on",
    "workspace": "environment.queue.workspace",
    "unknown": "environment.queue.unknown",
}


def _task_queue(value: str | None, found: Measured) -> Text:
    return message(_QUEUE[found.task_queue])


def _blocking(value: str | None, found: Measured) -> Text:
    if value is None:
        return message("environment.blocking.unknown")
    number = _whole(value, 0, 1, 0)
    if number is None:
        return message("environment.not_whole", least=0, most=1)
    return message("environment.blocking.on" if number else "environment.blocking.off")


def _log_level(value: str | None, found: Measured) -> Text:
    if value is None:
        return message("environment.log.unknown")
    number = _whole(value, 0, 4, DEFAULT_LOG_LEVEL)
    if number is None:
        return message("environment.not_whole", least=0, most=4)
    return message("environment.log.slow" if number < 2 else "environment.log.fine")


JUDGES: Mapping[str, Judge] = {
    "ACLNN_CACHE_LIMIT": _aclnn_cache,
    "ASCEND_GLOBAL_LOG_LEVEL": _log_level,
    "ASCEND_LAUNCH_BLOCKING": _blocking,
    "CPU_AFFINITY_CONF": _affinity,
    "HCCL_ALGO": _algorithm,
    "HCCL_BUFFSIZE": _buffer,
    "HCCL_RDMA_SL": _service_level,
    "HCCL_RDMA_TC": _traffic_class,
    "HOST_CACHE_CAPACITY": _host_cache,
    "PYTORCH_NPU_ALLOC_CONF": _allocator,
    "TASK_QUEUE_ENABLE": _task_queue,
}
"""Environment variables of CANN and torch_npu to what is said of them."""

OF_PYTORCH = frozenset(("CPU_AFFINITY_CONF", "PYTORCH_NPU_ALLOC_CONF", "TASK_QUEUE_ENABLE"))
"""Those that torch_npu reads; other frameworks do not know them."""
