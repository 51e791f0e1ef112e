"""Large libraries that a command may do without, loaded when it first uses one.

Nearly every module of ours that measures imports pandas, and what such a module declares, such as the columns that
rules may name, is needed by commands that measure nothing: to load pandas with pyarrow takes longer than all else that
these do.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any


class _Waiting(ModuleType):
    """A module that was imported and of which nothing was used yet. It becomes a module like any other at the first
    attribute that it does not have, be it the ``__path__`` that an import of one of its submodules asks for."""

    def __getattr__(self, name: str) -> Any:
        # From here on this method is gone, also for what the module imports of itself.
        object.__setattr__(self, "__class__", ModuleType)
        spec = self.__spec__
        assert spec is not None and spec.loader is not None
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        spec.loader.exec_module(self)
        return getattr(self, name)


def load_when_used(*names: str) -> None:
    """Have each of these packages run its code when something of it is used, not when it is imported; what is imported
    already, or is not there, stays as it is. For the first thread of a process: others that come meanwhile would see a
    package half loaded."""
    for name in names:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            continue
        module = importlib.util.module_from_spec(spec)
        vars(module).pop("__path__", None)
        module.__class__ = _Waiting
        sys.modules[name] = module
