"""Host dispatch: where the device is idle because the host was late, and what the host was doing instead.

Everything is decided gap by gap (`late_gaps`, `bookings`): a rank whose launches lead its kernels by half a
millisecond at the median can still lose most of its idle time to a few dozen late launches.
"""

from __future__ import annotations

from advisors.host_dispatch import (
    allocator,
    allocator_once_started,
    capture,
    compile,
    copies,
    cpu_collectives,
    cpu_operators,
    dataloader,
    dependency,
    device_start,
    gc,
    host_only,
    idle,
    late_launches,
    launch_blocking,
    logging,
    next_layers,
    operators,
    pass_sizes,
    pauses,
    queue_mode,
    replayed_steps,
    step_boundary,
    sync_calls,
    task_switch,
    tiling,
)

ADVISORS = (
    idle.idle,
    late_launches.late_launches,
    next_layers.next_layers,
    operators.operators,
    sync_calls.synchronising,
    compile.compilation,
    launch_blocking.launch_blocking,
    dataloader.data_loading,
    gc.garbage,
    allocator.allocation,
    allocator_once_started.allocation_once_started,
    device_start.device_start,
    task_switch.task_switch,
    logging.logging,
    copies.copies,
    step_boundary.step_boundary,
    pauses.pauses,
    host_only.host_only,
    cpu_collectives.cpu_collectives,
    cpu_operators.cpu_operators,
    dependency.dependency,
    replayed_steps.replayed_steps,
    tiling.tiling,
    queue_mode.queue_mode,
    capture.capture,
    pass_sizes.pass_sizes,
)
