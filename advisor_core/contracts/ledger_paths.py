"""The ledger paths that a rule may claim. A separate module, so that checking rules does not import pandas."""

from __future__ import annotations

import re
from functools import cache

from advisor_core.text.packaged import packaged_yaml

_HOST = ("python", "framework", "runtime", "compile", "dataloader", "gc", "memory", "copy", "unknown")
_LEAVES = (
    "communication/transmit",
    "communication/wait/rank N",
    "communication/wait/group rank N",
    "communication/wait/pipeline",
    "communication/wait/unknown",
    "communication/launch",
    "communication/unknown",
    *(f"idle/host/{activity}" for activity in _HOST),
    "idle/sync",
    "idle/copy",
    "idle/dependency",
    "idle/task_switch",
    "idle/launch_latency",
    "idle/step_boundary",
    "idle/unknown",
)
_PLACEHOLDER = re.compile(r"\{\{ \w+ \}\}")
_NUMBER = re.compile(r"\d+")


@cache
def ledger_paths() -> frozenset[str]:
    """Every leaf, and everything above one. ``N`` stands for the number of a rank."""
    classes = (*packaged_yaml("advisor_core.vocabulary", "operator_classes.yaml"), "aicpu", "other")
    leaves = (*_LEAVES, *(f"compute/{name}" for name in classes))
    return frozenset("/".join(parts[:end]) for leaf in leaves for parts in [leaf.split("/")] for end in range(1, 4))


def is_ledger_path(path: str) -> bool:
    """Whether a path, in which ``{{ column }}`` stands for anything, can be one of the ledger."""
    steps = _NUMBER.sub("N", path).split("/")
    if all(_PLACEHOLDER.fullmatch(step) for step in steps):
        return True
    return any(
        len(known) == len(steps)
        and all(_PLACEHOLDER.fullmatch(step) or step == place for step, place in zip(steps, known, strict=True))
        for known in (found.split("/") for found in ledger_paths())
    )
