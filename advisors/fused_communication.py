"""Which kernels communicate with other ranks by themselves, beside what they compute."""

from __future__ import annotations

import re
from typing import Final

FUSED_COMMUNICATION: Final = re.compile(
    r"Mo[eE](Distribute)?(Dispatch|Combine)|Dispatch(FFN|Gmm)Combine|Notify_?Dispatch"
    r"|(AllGather|All[Rr]educe|ReduceScatter|All[Tt]oAll)\w*Mat[Mm]ul"
    r"|Mat[Mm]ul\w*(AllReduce|Allreduce|ReduceScatter|All[Tt]oAll)"
)
"""Types of fused MoE dispatch and combine, alone or with the experts between them, and of MC2 (a matrix product with
its collective); in their definitions (CANN ops-transformer, csrc of vllm-ascend, csrc/deepep of sgl-kernel-npu) each
names a group of HCCL."""
