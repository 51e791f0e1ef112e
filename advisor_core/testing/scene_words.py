"""The words in which a `Scene` writes what it is told: those of one vendor's exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor_core.text.packaged import packaged_yaml


@dataclass(frozen=True)
class SceneWords:
    """``vendor``: the vocabulary that reads the words, by name.

    ``kernel_type``: what a kernel is that is given no type. ``core``: the column ``core`` of kernels; ``task_type``:
    the type of their tasks in the streams, '' where it is the core. ``core_times``: whether kernels have the time in
    which their cores were busy. ``launch``: the call of the runtime that launches a kernel, ``launch_collective`` a
    collective. ``collective``: the name of a collective, with the places ``{operation}``, ``{group}`` (digits of the
    hash of its group) and ``{call}`` (its number among those of the scene).

    ``wait_task``, ``move_task``: tasks of a collective in which it waits for a peer, and in which it moves data; ''
    where the profilers do not record what happens inside of a collective. ``transport``: the link that a collective
    goes over where none is given, '' where links are not recorded. ``totals``: a link to the one under which the
    exporter counts its bytes once more.
    """

    vendor: str
    kernel_type: str
    core: str
    task_type: str
    core_times: bool
    launch: str
    launch_collective: str
    collective: str
    wait_task: str
    move_task: str
    transport: str
    totals: Mapping[str, str]


def read_scene_words(package: str) -> SceneWords:
    """The file ``scene.yaml`` of a package, whose keys are the fields of `SceneWords`. Raises TypeError for a key that
    is none of them, and for one that is missing."""
    return SceneWords(**packaged_yaml(package, "scene.yaml"))


ASCEND = read_scene_words("advisor_core.ascend")
GPU = read_scene_words("advisor_core.gpu")
