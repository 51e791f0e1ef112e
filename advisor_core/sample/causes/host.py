"""Causes on the host: dispatch, synchronisation, loading, memory of the driver, the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from ..described import Natural, Positive
from ..setup import Dispatch, Setup
from .cause import Cause, CauseOnRanks, change_code, change_host, change_work


@dataclass(frozen=True, slots=True)
class SlowHost(Cause):
    """One layer of dispatch costs more per operator. Real forward operators take 200-500 us with stacks, shapes and
    memory recorded (docs/sources.md#recorded-alexnet-job)."""

    divisible: ClassVar[bool] = True

    layer: Literal["python", "framework", "runtime"]
    ns: Natural

    @property
    def name(self) -> str:
        return f"slow-{self.layer}"

    @property
    def cure(self) -> str:
        return {
            "python": "less Python per operator",
            "framework": "bound threads, fewer checks, graph mode",
            "runtime": "bound CANN thread, cached workspace and tiling",
        }[self.layer]

    def afflict(self, setup: Setup) -> Setup:
        if self.layer == "framework":
            operator, autograd = self.part(setup.host.operator, self.ns), self.part(setup.host.autograd, self.ns)
            return change_host(setup, operator=operator, autograd=autograd)
        if self.layer == "runtime":
            return change_host(setup, cann=self.part(setup.host.cann, self.ns))
        return change_host(setup, python=self.part(setup.host.python, self.ns))


@dataclass(frozen=True, slots=True)
class SlowDispatch(Cause):
    """Every layer of dispatch at the cost of an untuned job (docs/sources.md#recorded-alexnet-job)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "slow-host-dispatch"
    cure: ClassVar[str] = "bound threads, fewer recorded options, graph mode"

    python: Natural = 56_000
    operator: Natural = 82_000
    autograd: Natural = 26_000

    def afflict(self, setup: Setup) -> Setup:
        return change_host(
            setup,
            python=self.part(setup.host.python, self.python),
            operator=self.part(setup.host.operator, self.operator),
            autograd=self.part(setup.host.autograd, self.autograd),
        )


@dataclass(frozen=True, slots=True)
class TaskQueueOff(Cause):
    """TASK_QUEUE_ENABLE=0: the thread that runs the model also calls CANN (docs/sources.md#task-queue)."""

    name: ClassVar[str] = "task-queue-off"
    cure: ClassVar[str] = "TASK_QUEUE_ENABLE=1"

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, dispatch=replace(setup.dispatch, task_queue=False))


@dataclass(frozen=True, slots=True)
class WorkspaceOnMainThread(Cause):
    """TASK_QUEUE_ENABLE=1 where the host only just keeps up with 2: the thread that runs the model also works out the
    workspace of its operators (docs/sources.md#task-queue)."""

    name: ClassVar[str] = "workspace-on-main-thread"
    cure: ClassVar[str] = "TASK_QUEUE_ENABLE=2"

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, dispatch=replace(setup.dispatch, queued_workspace=False))


@dataclass(frozen=True, slots=True)
class LaunchBlocking(Cause):
    """ASCEND_LAUNCH_BLOCKING=1: every operator waits for its kernels, and there is no task queue
    (docs/sources.md#launch-blocking)."""

    name: ClassVar[str] = "launch-blocking"
    cure: ClassVar[str] = "ASCEND_LAUNCH_BLOCKING=0"

    def afflict(self, setup: Setup) -> Setup:
        variables = (*setup.variables, ("ASCEND_LAUNCH_BLOCKING", "1"))
        return replace(setup, dispatch=Dispatch(task_queue=False, blocking=True), variables=variables)


@dataclass(frozen=True, slots=True)
class FrequentItem(Cause):
    """The loss of every micro-batch and the norm of every gradient are read back with ``.item()``, and Python works
    on the loss for ``log_ns`` before it goes on. The dose is the share of the norms and losses that are read."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "item-synchronisation"
    cure: ClassVar[str] = "keep the norms on the device, read the loss once per step"

    log_ns: Natural = 900_000

    def afflict(self, setup: Setup) -> Setup:
        return change_work(setup, items_read=self.dose, reads_loss=True, loss_log_ns=self.log_ns)

    def remedy(self, setup: Setup) -> Setup:
        return change_work(setup, gradient_norms=True)


@dataclass(frozen=True, slots=True)
class SynchronousSampling(Cause):
    """A serving step waits for its tokens before the next one is scheduled
    (docs/sources.md#asynchronous-scheduling)."""

    name: ClassVar[str] = "synchronous-sampling"
    cure: ClassVar[str] = "asynchronous scheduling"

    def afflict(self, setup: Setup) -> Setup:
        return change_work(setup, waits_for_tokens=True)


@dataclass(frozen=True, slots=True)
class EagerDecode(Cause):
    """A serving step launches its kernels one by one, which could be captured as a graph and replayed
    (docs/sources.md#eager-decode)."""

    name: ClassVar[str] = "eager-decode"
    cure: ClassVar[str] = "decode captured as a graph"

    def afflict(self, setup: Setup) -> Setup:
        return change_work(setup, captured=False)


@dataclass(frozen=True, slots=True)
class SlowLoader(CauseOnRanks):
    """The data loader needs ``loading_ns`` for a batch; more than 10 ms is a problem
    (docs/sources.md#slow-data-loader)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "slow-data-loader"
    cure: ClassVar[str] = "more workers, pinned memory, prefetching"

    loading_ns: Natural
    ranks: tuple[int, ...] = ()

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, loading_ns=self.part(self.before(setup).loading_ns, self.loading_ns))


@dataclass(frozen=True, slots=True)
class GarbageCollection(Cause):
    """Python collects garbage for ``pause_ns`` every ``operators`` operators. A collection of the oldest generation
    takes tens to hundreds of ms where many objects live (docs/sources.md#garbage-collection)."""

    divisible: ClassVar[bool] = True
    cure: ClassVar[str] = "gc.freeze() after building the model, gc.disable() in the loop"

    operators: Positive
    pause_ns: Natural
    recorded: bool

    @property
    def name(self) -> str:
        return "garbage-collection" if self.recorded else "unrecorded-garbage-collection"

    def afflict(self, setup: Setup) -> Setup:
        changed = change_host(setup, gc_every=self.operators, gc_pause=self.part(0, self.pause_ns))
        return replace(changed, gc_threshold_ms=1.0 if self.recorded else None)


@dataclass(frozen=True, slots=True)
class AllocatorChurn(Cause):
    """Tensors of at least ``nbytes`` are taken from the driver and given back to it each time, as when the cache of
    the allocator is emptied or disabled. 400 us per call: assumed."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "allocator-churn"
    cure: ClassVar[str] = "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, no empty_cache()"

    nbytes: Positive = 40 << 20
    call_ns: Natural = 400_000

    def afflict(self, setup: Setup) -> Setup:
        return change_host(setup, malloc_bytes=self.nbytes, malloc_ns=self.part(0, self.call_ns))


@dataclass(frozen=True, slots=True)
class OnlineCompilation(Cause):
    """Splits and concatenations go through the operator compiler at each call (docs/sources.md#online-compilation). The
    dose is the share of the time that it takes."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "online-compilation"
    cure: ClassVar[str] = "set_compile_mode(jit_compile=False), binary operators"

    def afflict(self, setup: Setup) -> Setup:
        setup = change_host(setup, compile=self.part(0, setup.host.compile))
        return change_code(setup, compiled_concat=True)
