"""Scenes in which the host is late, or in time."""

from __future__ import annotations

from advisor_core.api.testing import Scene
from advisor_core.rules.model import AdviceSpec
from advisor_core.testing import profile
from tests.advisors.build import FILES, book

WORDS = profile().vocabulary


def late() -> Scene:
    """A gap of 300 us: the next kernel is launched 290 us into it, from within aten::conv2d."""
    scene = Scene().step(1, -10, 620)
    scene.kernel(0, 100, op="aten::mul")
    scene.event(
        "cpu_op", "aten::conv2d", 130, 270, call_stack="/train/model.py(7): forward;\n/train/train.py(3): main;"
    )
    return scene.kernel(400, 200, launched=390)


def busy() -> Scene:
    """Two kernels back to back, launched in time."""
    return Scene().step(1, -10, 620).kernel(0, 300, op="aten::mul").kernel(301, 299, launched=40, op="aten::conv2d")


def specs(rule: str) -> list[AdviceSpec]:
    return list(book(FILES[rule[:2]])[rule].rule.advice)


def synchronised(*, held: float) -> Scene:
    """The host waits for the device until 150, 50 us longer than it is busy, and launches again at 300. It was held for
    ``held`` us while the device was busy."""
    scene = Scene().step(1, -20, 640)
    scene.kernel(0, 100, op="aten::mul")
    stack = "/site-packages/torch/_tensor.py(9): item;\n/train/train.py(42): log;\n/train/train.py(3): main;"
    scene.event("cpu_op", "aten::item", 99 - held, 53 + held, call_stack=stack)
    scene.event("runtime", "AscendCL@aclrtSynchronizeStreamWithTimeout", 100 - held, 50 + held)
    return scene.kernel(310, 290, launched=300, op="aten::conv2d")


ACTIVITIES = {
    "HD005": ("runtime", "AscendCL@aclopCompileAndExecute"),
    "HD007": ("cpu_op", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    "HD008": ("gc", "GC"),
    "HD009": ("runtime", "AscendCL@aclrtMallocPhysical"),
    "HD012": ("runtime", "AscendCL@aclrtMemcpy"),
}
