"""Who called whom on the host: the path of each event, from the outermost caller inwards.

Where the profiler recorded Python functions (``with_stack=True``), they lie around the operators on their thread, and
calls of the runtime lie within these. Older exporters write the stack of an operator as a text beside it; there the
frames of the outermost operator stand above it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.facts import (
    FLOWS,
    HOST_EVENTS,
    PROFILE,
    Facts,
    Vocabulary,
    enclosing_of,
    fact,
    matching,
    parents_of,
)
from advisor_core.api.renderers import FrameKind
from advisors.gradient_arrows import gradient_arrows

Ints = npt.NDArray[np.int64]

DEEPEST = 400
"""Events nested deeper belong to the one at this depth: the recursion limit of Python is 1000, and no one reads as
many."""

_KINDS: dict[str, FrameKind] = {
    "python_function": "python",
    "cpu_op": "operator",
    "user_annotation": "mark",
    "mstx": "mark",
}
"""Of other categories: calls of the runtime and of what serves it."""

_MODULE = re.compile(r"^(nn\.Module: .*?)(?:_\d+)?$")
_ADDRESS = re.compile(r"(?: object)? at 0x[0-9a-fA-F]+")


@dataclass
class Paths:
    """Places of a tree of calls, callers first: of each its ``parents`` (-1: none) and its ``frames``, names and
    kinds."""

    parents: list[int] = field(default_factory=list)
    frames: list[tuple[str, FrameKind]] = field(default_factory=list)
    _places: dict[tuple[int, str, FrameKind], int] = field(default_factory=dict)

    def copy(self) -> Paths:
        """The same places, to which more may be added."""
        return Paths(list(self.parents), list(self.frames), dict(self._places))

    def place(self, parent: int, name: str, kind: FrameKind) -> int:
        """The number of a frame below ``parent``, the same whenever it is asked for."""
        key = (parent, name, kind)
        if key not in self._places:
            self._places[key] = len(self.parents)
            self.parents.append(parent)
            self.frames.append((name, kind))
        return self._places[key]

    def below(self, parent: int, stack: str) -> int:
        """The place of the innermost frame of a recorded stack, which names it first, one frame a line."""
        for name in reversed(stack.splitlines()):
            parent = self.place(parent, *frame(name, "python"))
        return parent


@lru_cache(maxsize=1 << 14)
def frame(name: str, kind: FrameKind) -> tuple[str, FrameKind]:
    """A frame as it is shown: modules of one class are one, and objects are told by their type."""
    if kind == "python" and (found := _MODULE.match(name)):
        return found[1], "module"
    return _ADDRESS.sub("", name), kind


@dataclass(frozen=True)
class Nesting:
    """``around``: of each row of host events the row that it lies directly in, -1 for none. ``hidden``: rows that are
    no frame (marks of steps, whose numbers would part what is the same)."""

    around: Ints
    hidden: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, events: pd.DataFrame, words: Vocabulary) -> Nesting:
        starts = events["start_ns"].to_numpy()
        around = parents_of(events["thread"].to_numpy(), starts, starts + events["duration_ns"].to_numpy())
        return cls(around, np.asarray(matching(events["name"], words.step_mark), dtype=np.bool_))


@dataclass(frozen=True)
class Called:
    """Who called whom. ``nesting``: as the threads tell; ``places``: of each row of host events in ``paths``, where the
    backward pass lies below what it is the gradient of."""

    nesting: Nesting
    paths: Paths
    places: Ints


@fact("called", needs=(HOST_EVENTS, PROFILE), wants=(FLOWS,))
def called(facts: Facts) -> Called:
    """The path of each host event."""
    events = facts[HOST_EVENTS]
    nesting, paths = Nesting.of(events, facts[PROFILE].vocabulary), Paths()
    around = callers_of_gradients(facts, events, nesting.around)
    return Called(nesting, paths, placed(paths, events, nesting, around, np.full(len(events), -1, dtype=np.int64)))


def placed(paths: Paths, events: pd.DataFrame, nesting: Nesting, around: Ints, roots: Ints) -> Ints:
    """The place of each event, where one without an event ``around`` it is below ``roots`` of its row."""
    name_codes, names = _coded(events["name"])
    category_codes, categories = _coded(events["category"])
    written, stacks = _coded(events["call_stack"])
    codes = name_codes * len(categories) + category_codes
    kinds_of = [_KINDS.get(category, "runtime") for category in categories]
    has_text = np.array([bool(text) for text in stacks], dtype=np.bool_)
    uses_text = np.zeros(len(events), dtype=np.bool_)
    if not (events["category"] == "python_function").any() and len(has_text):
        uses_text = (written >= 0) & has_text[np.maximum(written, 0)]
    found = np.full(len(events), -1, dtype=np.int64)
    has_stack = np.zeros(len(events), dtype=np.bool_)
    is_done = np.zeros(len(events), dtype=np.bool_)
    left = np.arange(len(events))
    for depth in range(DEEPEST):
        outer = around[left]
        ready = (outer < 0) | is_done[np.maximum(outer, 0)]
        level, left = left[ready], left[~ready]
        if not len(level):
            break
        outer = np.maximum(around[level], 0)
        inside = around[level] >= 0
        above = np.where(inside, found[outer], roots[level])
        own_stack = uses_text[level] & ~(inside & has_stack[outer])
        kinds = (above + 1, np.where(own_stack, written[level], -1) + 1, codes[level])
        number, first = _distinct(kinds, (len(stacks) + 1, len(names) * len(categories)))
        places = []
        for parent, stack, code in zip(*(part[first].tolist() for part in kinds), strict=True):
            parent, stack = parent - 1, stack - 1
            base = paths.below(parent, stacks[stack]) if stack >= 0 else parent
            name, category = divmod(code, len(categories))
            places.append(paths.place(base, *frame(names[name], kinds_of[category])))
        found[level] = np.where(nesting.hidden[level], above, np.asarray(places, dtype=np.int64)[number])
        has_stack[level] = own_stack | (inside & has_stack[outer])
        is_done[level] = True
        if depth == DEEPEST - 1:
            _cut(found, around, left, is_done)
    return found


def _coded(column: pd.Series) -> tuple[Ints, list[str]]:
    """The values of a column as numbers, -1 for none, and the texts that these stand for."""
    values: Any = column.astype("category").array
    return values.codes.astype(np.int64), values.categories.astype(str).tolist()


def _distinct(parts: tuple[Ints, Ints, Ints], sizes: tuple[int, int]) -> tuple[Ints, Ints]:
    """The number of each row's combination of parts, and where each combination stands first. ``sizes``: how many
    values the second and the third part have."""
    second, third = sizes
    number, _ = pd.factorize((parts[0] * second + parts[1]) * third + parts[2])
    first = np.full(number.max() + 1, -1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return number.astype(np.int64), first


def _cut(found: Ints, around: Ints, left: Ints, is_done: npt.NDArray[np.bool_]) -> None:
    """Give what lies deeper the place of the deepest event around it that has one."""
    outer = around[left]
    while not is_done[outer].all():
        outer = np.where(is_done[outer], outer, around[outer])
    found[left] = found[outer]


def callers_of_gradients(facts: Facts, events: pd.DataFrame, around: Ints) -> Ints:
    """``around`` where the backward pass lies below what it is the gradient of: an outermost operator that arrows lead
    to from one operator is inside the call around that. One that arrows lead to from several stays where it is."""
    flows = facts.get(FLOWS)
    pairs = None if flows is None else gradient_arrows(flows)
    if pairs is None or pairs.empty:
        return around
    operators = events[(events["category"] == "cpu_op").to_numpy()]
    forward = enclosing_of(operators, pairs["thread_forward"].to_numpy(), pairs["time_ns_forward"].to_numpy())
    backward = enclosing_of(
        operators, pairs["thread_backward"].to_numpy(), pairs["time_ns_backward"].to_numpy(), outermost=True
    )
    linked = pd.DataFrame({"forward": forward, "backward": backward})
    linked = linked[(linked["forward"] >= 0) & (linked["backward"] >= 0)].drop_duplicates()
    linked["forward"] = around[linked["forward"].to_numpy()]
    linked = linked[linked["forward"] >= 0].drop_duplicates()
    linked = linked[~linked["backward"].duplicated(keep=False)]
    starts = events["start_ns"].to_numpy()
    forward, backward = linked["forward"].to_numpy(), linked["backward"].to_numpy()
    earlier = (around[backward] < 0) & (starts[forward] < starts[backward])
    joined = around.copy()
    joined[backward[earlier]] = forward[earlier]
    return joined


FACTS = (called,)
