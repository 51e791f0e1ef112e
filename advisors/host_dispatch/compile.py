"""HD005: online compilation of operators."""

from __future__ import annotations

from advisors.host_dispatch.activity import activity_advisor, cann_calls_named, require_cann

compilation = activity_advisor(
    "host_dispatch.compile",
    "Online compilation of operators while the device waited.",
    "idle/host/compile",
    cann_calls_named("compile"),
    require_cann,
)
