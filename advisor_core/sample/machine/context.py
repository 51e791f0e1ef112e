"""The state that all threads and streams of one rank share: the clock, the record, randomness and memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import count

from ..described import FROM_FILES, Natural
from ..kernels import Tensor
from ..program import Communicate, Instruction, Launch, Op, memory_use
from ..timeline import Allocation, CannCall, Timeline, Workspace
from .allocator import Allocator, Block, DriverCall
from .des import Chain, Signal, Simulator
from .draws import Draws
from .physics import IDEAL, Disturbance, Physics

_WITH_CUBE = frozenset({"AI_CORE", "MIX_AIC"})
WARM_UP = 4
"""Runs of a step before the profile after which the allocator is taken as it is, if it still calls the driver."""
WORKSPACE_SHARE = 0.25
"""The part of an operator's time on the host that goes into its workspace and parameters. Assumed: the interfaces that
the operators of docs/sources.md#recorded-alexnet-job call take up to 0.44 of them, with the queueing."""
WORKSPACE_BYTES = 16 << 20
"""Workspace that the kernel library asks for on this family for any kernel that uses the cube."""
SHORTEST_NS = 150
"""Nothing that the host does takes less."""
SPREAD = 0.16
"""Standard deviation of the logarithm of host durations."""


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Durations of the host's work, nanoseconds (with stacks and shapes recorded); those of a tuned job, which
    binds its threads and records less than the usual options.

    ``python`` and ``operator`` per forward operator, ``autograd`` per backward operator; ``cann`` per
    operator and ``launch`` per kernel on the thread that calls CANN; ``compile`` per compiled operator; ``replay`` per
    graph that is replayed, and ``replayed`` per kernel in it (docs/sources.md#replay-of-a-graph).
    ``malloc_ns`` per call into the driver's allocator: assumed. Tensors of at least ``malloc_bytes`` call it always
    (0: the framework keeps its memory); ``gc_pause`` every ``gc_every`` operators (0: never).
    """

    __pydantic_config__ = FROM_FILES
    python: Natural = 11_000
    operator: Natural = 13_000
    autograd: Natural = 11_000
    cann: Natural = 7_500
    launch: Natural = 3_600
    compile: Natural = 330_000
    collective: Natural = 150_000
    replay: Natural = 40_000
    replayed: Natural = 3_000
    malloc_bytes: Natural = 0
    malloc_ns: Natural = 400_000
    gc_every: Natural = 0
    gc_pause: Natural = 0

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


TUNED_HOST = HostCosts()


class RankContext:
    """The shared state of one rank."""

    def __init__(
        self,
        simulator: Simulator,
        timeline: Timeline,
        costs: HostCosts,
        draws: Draws,
        allocator: Allocator,
        physics: Physics = IDEAL,
        *,
        records: bool = True,
    ) -> None:
        """``records``: the timeline is to be filled; else only the time passes."""
        self.records = records
        self.simulator = simulator
        self.timeline = timeline
        self.costs = costs
        self.allocator = allocator
        self.step = 0
        self.draws = draws
        self.disturbance = Disturbance(physics, draws, timeline.rank)
        self.host, self.cann = self._varying("host"), self._varying("cann")
        self._connection = count(936)
        self._python_id = count()
        self._communicated: dict[tuple[str, int], Signal] = {}
        self._parameters: dict[int, Signal] = {}
        self._blocks: dict[int, Block] = {}
        self._live: dict[int, Allocation] = {}
        self._operators = 0

    @property
    def now(self) -> int:
        """The current time, nanoseconds."""
        return self.simulator.now

    def _varying(self, actor: str) -> Callable[[float], int]:
        """Durations around their means, nanoseconds; long ones are more likely than short ones."""
        factors = self.draws.log_normal(f"{self.timeline.rank}/{actor}", SPREAD)
        factors = self.disturbance.of_host(actor, factors)

        def vary(mean: float) -> int:
            drawn = round(mean * next(factors))
            return drawn if drawn > SHORTEST_NS else SHORTEST_NS

        return vary

    def behind(self, chain: Chain) -> int:
        """The time by which the clock is behind a chain, ns: a process that waits for it goes on in order."""
        return chain.at - self.simulator.now

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

    def expect_parameters(self, op: Op) -> Signal:
        """The replay that comes next waits for new parameters of this operator; to be fired when they are given."""
        self._parameters[id(op)] = given = Signal()
        return given

    def parameters_of(self, op: Op) -> Signal | None:
        """That the parameters of a captured operator have been given anew, if it needs that."""
        return self._parameters.get(id(op))

    def call(self, name: str, tid: int, start: int, mode: str, level: str, item: str = "0") -> int:
        """Record a CANN call that ends now; returns its connection id."""
        connection = next(self._connection)
        identity = "0" if level in {"node", "hccl"} else name.partition("@")[2]
        self.timeline.cann.append(CannCall(name, tid, start, self.now, mode, level, identity, item, connection))
        return connection

    def warm_up(self, step: list[Instruction]) -> None:
        """Let the allocator live through the step until it holds all that the step needs, as before a profile."""
        for _ in range(WARM_UP):
            live: dict[int, Block] = {}
            calls: list[DriverCall] = []
            for taken, given in memory_use(step):
                for tensor in taken:
                    live[id(tensor)], asked = self.allocator.allocate(tensor.nbytes)
                    calls += asked
                for tensor in given:
                    if id(tensor) in live:
                        calls += self.allocator.free(live.pop(id(tensor)))
            for block in live.values():
                calls += self.allocator.free(block)
            if not calls:
                return

    def allocate(self, tensor: Tensor, operator: str, at: int) -> list[DriverCall]:
        """Take memory for a tensor; returns what the driver was asked for."""
        block, calls = self.allocator.allocate(tensor.nbytes)
        self._blocks[id(tensor)] = block
        if self.records:
            total, reserved = self.allocator.allocated, self.allocator.reserved
            self._live[id(tensor)] = Allocation(operator, block.size, at, total, reserved)
        return calls

    def free(self, tensor: Tensor, at: int) -> list[DriverCall]:
        """Give the memory of a tensor back, if it has any; returns what the driver was asked for."""
        block = self._blocks.pop(id(tensor), None)
        if block is None:
            return []
        calls = self.allocator.free(block)
        if self.records:
            total, reserved = self.allocator.allocated, self.allocator.reserved
            lived = self._live.pop(id(tensor))
            self.timeline.allocations.append(replace(lived, end=at, total_at_end=total, reserved_at_end=reserved))
        return calls

    def request_workspace(self, launch: Launch, at: int) -> None:
        """Take the scratch memory of a call from its pool, which grows to the largest request and stays that large."""
        needed = WORKSPACE_BYTES if any(kernel.core in _WITH_CUBE for kernel in launch.kernels) else 0
        if not needed or not self.records:
            return
        held = self.timeline.workspace[-1].reserved if self.timeline.workspace else 0
        self.timeline.workspace.append(Workspace(at, needed, max(held, needed)))

    def close(self, at: int) -> None:
        """The profile ends: what is still allocated has no release."""
        self.timeline.end = at
        self.timeline.allocations += self._live.values()
