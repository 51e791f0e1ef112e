"""The garbage collector of a process that analyses profiles."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 500_000
"""More than the modules, rules and models of a start are together: many small objects that live as long as the
process."""

_LATER = OBJECTS, 20, 50


def spare_lasting_objects() -> None:
    """Have the collector begin later: at its default thresholds it walks over what a start leaves for a tenth of a
    run, and finds nothing. When the process ends it would walk over all that is left several times, half a second of
    CPU: nothing of it waits for that to be put away."""
    gc.set_threshold(*_LATER)
    atexit.register(gc.freeze)


@contextmanager
def collecting_later() -> Iterator[None]:
    """The same meanwhile, for a process that does other things as well."""
    before = gc.get_threshold()
    gc.set_threshold(*_LATER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
