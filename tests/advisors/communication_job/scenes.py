"""A job in a pipeline."""

from __future__ import annotations

from advisor_core.api.testing import Scene
from advisor_core.facts.store import FactStore

STAGES = {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}


def stage(
    rank: int,
    computing: float,
    *,
    slots: int,
    wait: float = 0,
    loss: float = 0,
    layer: float = 0,
    batched: bool = True,
    **about: object,
) -> FactStore:
    """A rank of a pipeline of two stages: ``slots`` micro-batches of ``computing`` us in all, ``loss`` of it on
    another operator, between exchanges that wait for ``wait`` us in all and move data for 10 us each. With ``layer``
    the rest is kernels of so many us, of the same shapes; without, one kernel per micro-batch, without shapes."""
    scene = Scene(rank=rank).step(1, -10, 1e6)
    time, exchanges = 0.0, slots + 1
    apart = ("send", "receive") if rank < 2 else ("receive",)
    for _ in range(slots):
        for operation in ("batchSendRecv",) if batched else apart:
            time = _exchange(scene, time, wait / exchanges, operation)
        for _ in range(round((computing - loss) / slots / layer) if layer else 0):
            scene.tensors(time, layer, "MatMulV2", ["4096,4096 BF16", "4096,4096 BF16"], ["4096,4096 BF16"])
            time += layer
        if not layer:
            scene.kernel(time, (computing - loss) / slots)
            time += (computing - loss) / slots
        if loss:
            scene.kernel(time, loss / slots, "CrossEntropyLoss")
            time += loss / slots
    for _ in range(1 if batched else slots):
        time = _exchange(scene, time, wait / exchanges, "batchSendRecv" if batched else "send")
    groups = {"groups": {"7100": STAGES[rank]}, "parallel": {"pp": 2}, **about}
    return scene.store(**groups)


def _exchange(scene: Scene, time: float, wait: float, operation: str) -> float:
    scene.collective(
        time, wait + 10, [(time, time + wait, 1), (time + wait, time + wait + 10, None)], operation=operation
    )
    return time + wait + 10
