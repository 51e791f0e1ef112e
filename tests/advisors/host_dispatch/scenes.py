"""Scenes in which the host is late, or in time."""

from __future__ import annotations

from advisor_core.api.testing import Scene
from advisor_core.rules.model import AdviceSpec
from advisor_core.testing import profile
from tests.advisors.build import ACL_THREAD, FILES, book

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


def calling() -> Scene:
    """Short kernels, each launched by a call into CANN that a thread of its own could make."""
    scene = Scene().step(1, -10, 620)
    for start in range(0, 600, 60):
        scene.event("cpu_op", "aten::add", start, 58).event("runtime", "AscendCL@aclnnAdd", start + 15, 40)
        scene.kernel(start + 57, 3, launched=start + 50)
    return scene


def queued(prepares: float = 40) -> Scene:
    """Ten turns of 60 us of the host: an interface prepares a call for ``prepares`` us, until 50 us into the turn, when
    it is put into the task queue. The thread behind that launches it 5 us later; its kernel of 5 us starts 7 us on."""
    scene = Scene().step(1, -10, 640)
    for number in range(10):
        begun = 60.0 * number
        scene.event("cpu_op", "aten::add", begun, 58)
        scene.event("cpu_op", "aclnnAdd", begun + 50 - prepares, prepares + 6)
        scene.event("enqueue", "Enqueue@aclnnAdd", begun + 50, 3, correlation=number)
        scene.event("dequeue", "Dequeue@aclnnAdd", begun + 51, 8, ACL_THREAD, correlation=number)
        scene.kernel(begun + 62, 5, launched=begun + 55)
        scene.rows["flows"][-2]["thread"] = ACL_THREAD
    return scene


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
