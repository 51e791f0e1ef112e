"""GHD008: allocating and freeing device memory once the device runs."""

from __future__ import annotations

from advisors.host_dispatch.activity import activity_advisor, require_runtime_calls, runtime_calls_named
from advisors.host_dispatch.device_start import start_of_the_device

allocation_once_started = activity_advisor(
    "host_dispatch.allocator_once_started",
    "Allocating and freeing device memory while the device waited, without the call that waits for its start.",
    "idle/host/memory",
    runtime_calls_named("memory"),
    require_runtime_calls,
    read=("start",),
    but=start_of_the_device,
)
