"""The steps of a program, one after the other, as the profiler marks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..kernels import Tensor
from ..program import Enter, Instruction, Leave, free_after_last_use

FIRST_STEP = 10
"""Number of the first profiled step: the schedule skips the ones before it."""


def program_of_steps(
    frames: Sequence[Enter], steps: int, step: Callable[[int], Iterable[Instruction]], kept: Iterable[Tensor] = ()
) -> list[Instruction]:
    """The instructions of all steps within these frames, with every tensor's last use known. ``step`` gives those of a
    step by its number; tensors of ``kept`` are held for good."""
    program: list[Instruction] = [*frames]
    for number in range(FIRST_STEP, FIRST_STEP + steps):
        program += [Enter(f"ProfilerStep#{number}", step=number), *step(number), Leave()]
    program += [Leave() for _ in frames]
    free_after_last_use(program, kept)
    return program
