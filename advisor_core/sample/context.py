"""What all threads and streams of one rank share: the clock, the record, randomness and memory."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import count
from math import exp
from random import Random
from typing import Literal

from .des import Signal, Simulator
from .kernels import Tensor
from .program import Communicate
from .timeline import Allocation, CannCall, Timeline

Actor = Literal["host", "cann", "device"]
ALLOCATION_BYTES = 512
SPREAD = 0.16
"""Standard deviation of the logarithm of host durations."""


@dataclass(frozen=True, slots=True)
class HostCosts:
    """What the host needs, nanoseconds (with stacks and shapes recorded).

    ``python`` and ``operator`` per forward operator, ``autograd`` per backward operator; ``cann`` per
    operator and ``launch`` per kernel on the thread that calls CANN; ``compile`` per compiled operator.
    ``malloc_ns`` per call into the driver's allocator, for tensors of at least ``malloc_bytes`` (0: the framework keeps
    its memory); ``gc_pause`` every ``gc_every`` operators (0: never).
    """

    python: int
    operator: int
    autograd: int
    cann: int = 7_500
    launch: int = 3_600
    compile: int = 330_000
    collective: int = 150_000
    malloc_bytes: int = 0
    malloc_ns: int = 0
    gc_every: int = 0
    gc_pause: int = 0

    def slower(self, factor: float) -> HostCosts:
        """The costs on a host that is slower by a factor; the counts stay."""
        if factor == 1.0:
            return self
        times = {
            field.name: round(getattr(self, field.name) * factor)
            for field in fields(self)
            if field.name not in {"malloc_bytes", "gc_every"}
        }
        return replace(self, **times)


class RankContext:
    """The shared state of one rank."""

    def __init__(self, simulator: Simulator, timeline: Timeline, costs: HostCosts, seed: str) -> None:
        self.simulator = simulator
        self.timeline = timeline
        self.costs = costs
        self.step = 0
        self.random: dict[Actor, Random] = {
            "host": Random(f"{seed}/{timeline.rank}/host"),
            "cann": Random(f"{seed}/{timeline.rank}/cann"),
            "device": Random(f"{seed}/{timeline.rank}/device"),
        }
        self._connection = count(936)
        self._python_id = count()
        self._communicated: dict[tuple[str, int], Signal] = {}
        self._live: dict[int, tuple[str, int, int, int]] = {}
        self._allocated = timeline.resident_bytes
        self._operators = 0

    @property
    def now(self) -> int:
        """The current time, nanoseconds."""
        return self.simulator.now

    def vary(self, actor: Actor, mean: float) -> int:
        """A duration around its mean, nanoseconds; long ones are more likely than short ones."""
        return max(150, round(mean * exp(self.random[actor].gauss(0.0, SPREAD))))

    def garbage_is_due(self) -> bool:
        """Counts an operator; whether the interpreter collects garbage before it."""
        self._operators += 1
        return self.costs.gc_every > 0 and self._operators % self.costs.gc_every == 0

    def next_python_id(self) -> int:
        """A fresh id of a Python frame."""
        return next(self._python_id)

    def communicated(self, request: Communicate) -> Signal:
        """The event recorded behind an operation on the stream of its group."""
        return self._communicated.setdefault((request.group.key, request.index), Signal())

    def call(self, name: str, tid: int, start: int, mode: str, level: str, item: str = "0") -> int:
        """Record a CANN call that ends now; returns its connection id."""
        connection = next(self._connection)
        identity = "0" if level in {"node", "hccl"} else name.partition("@")[2]
        self.timeline.cann.append(CannCall(name, tid, start, self.now, mode, level, identity, item, connection))
        return connection

    def allocate(self, tensor: Tensor, operator: str) -> None:
        """Take memory for a tensor; sizes are rounded up as in the caching allocator."""
        nbytes = -(-tensor.nbytes // ALLOCATION_BYTES) * ALLOCATION_BYTES
        self._allocated += nbytes
        self._live[id(tensor)] = (operator, nbytes, self.now, self._allocated)

    def free(self, tensor: Tensor) -> None:
        """Give the memory of a tensor back, if it has any."""
        if id(tensor) not in self._live:
            return
        operator, nbytes, start, total = self._live.pop(id(tensor))
        self._allocated -= nbytes
        self.timeline.allocations.append(Allocation(operator, nbytes, start, self.now, total, self._allocated))

    def close(self) -> None:
        """The profile ends: what is still allocated has no release."""
        self.timeline.end = self.now
        for operator, nbytes, start, total in self._live.values():
            self.timeline.allocations.append(Allocation(operator, nbytes, start, None, total, None))
