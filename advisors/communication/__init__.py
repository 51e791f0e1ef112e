"""Communication of one rank: what is not covered by computing, and whether it moves data or waits for a rank.

What a collective does is read from the tasks on all its planes (`collective_state`, `collective_calls`). The split into
wait and idle of communication.json comes from one plane and contradicts the others; it is shown and never judged.
"""

from __future__ import annotations

from advisors.communication import (
    after_sync,
    all_reduce,
    bandwidth,
    batch_norm,
    contention,
    expansion,
    gathered_logits,
    late_rank,
    launch_gaps,
    links,
    micro_batches,
    outliers,
    overlap,
    pipeline,
    ports,
    retransmission,
    single_calls,
    small_calls,
    transmit,
)

ADVISORS = (
    overlap.overlap,
    late_rank.late_rank,
    transmit.transmit,
    after_sync.after_sync,
    launch_gaps.launch_gaps,
    outliers.outliers,
    single_calls.single_calls,
    small_calls.small_calls,
    all_reduce.all_reduce,
    links.links,
    bandwidth.bandwidth,
    pipeline.pipeline,
    expansion.expansion,
    contention.contention,
    micro_batches.micro_batches,
    batch_norm.batch_norm,
    gathered_logits.gathered_logits,
    retransmission.retransmission,
    ports.ports,
)
