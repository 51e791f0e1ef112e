"""The place in the code that a call stack leads to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_PYTHON = re.compile(r"^(?!<)(?!nn\.Module: )(?P<file>.+?)\(\d+\)(?:: .*)?$")
"""``file(line): function``. Functions in C, and the calls of modules that a profiler of GPUs puts among the frames,
have no file."""

_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python")
_OF_FRAMEWORK = ("torch/", "torch_npu/")
"""Beginnings of files of the framework where its profiler shortens paths by the folders that Python searches."""


def frames_of(text: str) -> tuple[str, ...]:
    """The frames of a recorded call stack, innermost first."""
    return tuple(frame for line in text.splitlines() if (frame := line.strip().rstrip(";")))


def call_site(frames: Sequence[str]) -> str:
    """The innermost frame of Python code that is somebody's own; '' without frames.

    Not of functions in C, of installed packages, and of the framework. Where the profiler has shortened the paths of
    installed packages, a short path may be of one: a file with a whole path comes first, which is code that is worked
    on where it lies. A frame that a stack has twice passes calls on (a wrapper around operators) and comes after those
    that it has once. Where no frame is left it is the innermost one in Python, then the innermost of all.
    """
    files = {frame: found["file"].replace("\\", "/") for frame in frames if (found := _PYTHON.match(frame))}
    shortened = any(file.startswith(_OF_FRAMEWORK) for file in files.values())
    times = Counter(frames)
    own = [
        frame
        for frame in frames
        if (file := files.get(frame)) is not None
        and not file.startswith(_OF_FRAMEWORK)
        and not any(folder in file for folder in _INSTALLED)
    ]
    whole = [frame for frame in own if _is_whole(files[frame])] if shortened else []
    for choice in (whole, own):
        if choice:
            return next((frame for frame in choice if times[frame] == 1), choice[0])
    return next(iter(files), frames[0] if frames else "")


def _is_whole(file: str) -> bool:
    return file.startswith("/") or file[1:3] == ":/"
