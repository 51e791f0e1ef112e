"""HD005: online compilation of operators."""

from __future__ import annotations

from advisors.host_dispatch.activity import activity_advisor, require_runtime_calls, runtime_calls_named

compilation = activity_advisor(
    "host_dispatch.compile",
    "Online compilation of operators while the device waited.",
    "idle/host/compile",
    runtime_calls_named("compile"),
    require_runtime_calls,
)
