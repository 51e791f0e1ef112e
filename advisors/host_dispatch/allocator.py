"""HD009: allocating and freeing device memory."""

from __future__ import annotations

from advisors.host_dispatch.activity import activity_advisor, require_runtime_calls, runtime_calls_named

allocation = activity_advisor(
    "host_dispatch.allocator",
    "Allocating and freeing device memory while the device waited.",
    "idle/host/memory",
    runtime_calls_named("memory"),
    require_runtime_calls,
)
