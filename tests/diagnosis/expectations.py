"""What the rules ought to say about each cause: the knowledge of rules that the simulator must not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from advisor_core.result.finding import Finding
from advisor_core.sample.causes import Cause
from advisor_core.sample.loops.serving import Serving
from advisor_core.sample.setup import Setup

Names = Callable[[Finding, Cause], bool]


def anything(finding: Finding, cause: Cause) -> bool:
    """The rule alone says it; its rank must still be right."""
    return not cause.where or set(finding.ranks) <= set(cause.where)


def subject(**wanted: str) -> Names:
    """Columns of the finding must contain a word."""

    def names(finding: Finding, cause: Cause) -> bool:
        known = {**finding.observation, **finding.subject}
        return anything(finding, cause) and all(word in str(known.get(key)) for key, word in wanted.items())

    return names


def _layer(name: str) -> dict[str, Names]:
    """The layer of dispatch is the one that the step waits for, or would wait for next."""
    return {"HD002": subject(awaited_layers=name), "HD025": subject(layer=name)}


def _late(leaf: str) -> Names:
    """The job's view: the rank is named, and what it did too long."""

    def names(finding: Finding, cause: Cause) -> bool:
        found = str(finding.observation.get("cause"))
        return finding.subject.get("late") in cause.where and found.startswith(leaf)

    return names


def _slow(finding: Finding, cause: Cause) -> bool:
    """The rank is named; all others lose time with it."""
    return finding.subject.get("slow") in cause.where


def _longest(finding: Finding, cause: Cause) -> bool:
    """The job's view of uneven parts: the rank with most is named; the others lose the time."""
    return finding.observation.get("longest_rank") in cause.where


@dataclass(frozen=True)
class Expectation:
    """``says``: per rule, when its finding names the cause; the first that fires counts. ``also``: rules that may fire
    as well, being symptoms or other views of the same cause."""

    says: dict[str, Names]
    also: frozenset[str]


def _expect(says: dict[str, Names] | str, *also: str) -> Expectation:
    rules = {says: anything} if isinstance(says, str) else says
    return Expectation(rules, frozenset(also))


IDLE = ("HD001",)
# Ways to take work from a host that is too slow for whatever reason: they win a part of what it costs.
WAYS = ("HD021", "HD022")
TALK = ("CO001",)
VECTOR = ("NS001", "PB002", "PB003", "NS035", "PB001")
PRODUCT = ("PB001", "PB002", "PB004", "PB005", "PB011")
WAITING = ("CO001", "CO002", "CO010")
ROLLOUT = ("RL001", "HD004")
PIPELINE = ("CO001", "CO002", "CO008")

EXPECTATIONS: dict[str, Expectation] = {
    # Where phases are marked, what the host does too slowly shows in the rollout first.
    "slow-python": _expect({**_layer("python"), "RL004": anything}, *IDLE, *WAYS, "HD003", *ROLLOUT),
    "slow-framework": _expect({**_layer("framework"), "HD003": anything, "RL004": anything}, *IDLE, *WAYS, *ROLLOUT),
    "slow-runtime": _expect({**_layer("runtime"), "RL004": anything}, *IDLE, *WAYS, "HD003", *ROLLOUT),
    "slow-host-dispatch": _expect({"HD002": anything}, *IDLE, *WAYS, "HD003"),
    # TASK_QUEUE_ENABLE is not recorded; its rule tells it from the trace.
    "task-queue-off": _expect({"HD021": subject(task_queue="off")}, *IDLE, *WAYS, "HD002", "HD003"),
    "workspace-on-main-thread": _expect({"HD021": subject(task_queue="on")}, *IDLE, "HD002", "HD003"),
    "eager-decode": _expect("HD022", *IDLE, "HD002", "HD003"),
    "launch-blocking": _expect("HD006", *IDLE, "HD002", "HD003", "HD004"),
    "item-synchronisation": _expect({"HD004": subject(operator="item")}, *IDLE, "HD002", "HD003", "HD012"),
    "synchronous-sampling": _expect({"HD004": subject(operator="item")}, *IDLE, "HD002", "HD012"),
    # No two batches take equally long: ranks that share a slow loader wait for each other as well.
    "slow-data-loader": _expect({"HD007": anything, "CO010": _late("idle/host/dataloader")}, *IDLE, *WAITING),
    "garbage-collection": _expect("HD008", *IDLE),
    # Without the lane of the collector all that can be said is that something held the host for long.
    "unrecorded-garbage-collection": _expect({"HD008": anything, "HD014": anything}, *IDLE, "HD002"),
    "allocator-churn": _expect("HD009", *IDLE, "HD002", "HD003"),
    "online-compilation": _expect("HD005", *IDLE, "HD002", "HD003"),
    "unfused-rms-norm": _expect("NS010", *VECTOR, "NS005"),
    # Gate and up can be two products: then these are to be merged first.
    "unfused-swiglu": _expect({"NS011": anything, "NS018": anything}, *VECTOR, "NS002"),
    "unfused-rotary": _expect("NS012", *VECTOR, "NS002", "NS004", "NS006"),
    "unfused-cross-entropy": _expect("NS014", *VECTOR, "NS005"),
    "unfused-optimizer": _expect({"NS015": anything, "NS034": anything}, *VECTOR, "NS005"),
    "unfused-attention": _expect("NS013", *VECTOR, *PRODUCT, "NS002", "NS006"),
    # Where experts run one by one, the host asks the device for each of them.
    "unfused-experts": _expect({"NS039": anything}, *VECTOR, *IDLE, "NS002", "NS052", "HD002", "HD004"),
    "unfused-cache-write": _expect({"NS045": anything}, *VECTOR, "NS004"),
    "unfused-sampling": _expect("NS040", *VECTOR, "NS005"),
    "unfused-group-norm": _expect("NS033", *VECTOR),
    "unfused-geglu": _expect("NS030", *VECTOR, "NS002"),
    "unaligned-vocabulary": _expect("SA001", *PRODUCT, "NS003", "NS001"),
    # The axis of the two projections in one is a multiple as well: the cure, another size, is the same.
    "tail-of-16-kib": _expect("SA002", *PRODUCT),
    "small-matmuls-on-one-input": _expect("SA005", *PRODUCT, "SA004", "SA009"),
    "format-conversions": _expect("NS003", "NS001"),
    "fp32-where-bf16-would-do": _expect("NS022", *PRODUCT),
    "ai-cpu-operator": _expect({"NS021": subject(operator="Sort")}, "NS001"),
    "communication-not-overlapped": _expect({"CO003": anything}, *TALK, "CO006"),
    "small-communication-packets": _expect("CO005", *TALK, "CO003", "CO006", "CO009"),
    "slow-link": _expect("CO007", *TALK, "CO003", "CO006", "CO002"),
    "slow-network": _expect({"CO014": anything, "CO007": anything}, *TALK, "CO003", "CO006"),
    "pipeline-stage-imbalance": _expect("CO011", *PIPELINE, "CO010"),
    "pipeline-bubble": _expect("CO013", *PIPELINE),
    "expert-imbalance": _expect({"CO012": _longest}, *WAITING),
    "throttled-clock": _expect({"PB015": _slow, "PB014": anything, "CO010": _late("compute/")}, *WAITING, "CO008"),
    "clock-drops": _expect({"PB014": anything, "CO010": _late("compute/")}, *WAITING, "DQ006"),
    "slow-host-of-a-rank": _expect({"HD002": anything, "CO010": _late("idle/host")}, *WAITING, *IDLE, *WAYS, "HD003"),
    "data-parallel-imbalance": _expect({"CO010": _late("compute/")}, *WAITING),
    "convolution-format-conversions": _expect("NS003", "NS001"),
    # The stage may be named by its own rules, or the rank by what the others wait for.
    "long-tail-rollout": _expect({"RL002": _longest, "CO010": _late("")}, "RL001", *WAITING, *IDLE, "HD002"),
    # A reward function calls nothing that is recorded: without marks the host is late for no reason.
    # What the stage needs is read back from the device first, which then has nothing to do; no two ranks take equally
    # long for it.
    "slow-reward": _expect({"RL003": subject(kind="reward"), "HD002": anything}, *IDLE, "HD004", *WAITING),
    # Its cure is graph mode, which HD022 advises.
    "slow-rollout": _expect(
        {"RL004": anything, "HD002": anything, "HD022": anything}, "RL001", *IDLE, "HD003", "HD004"
    ),
    # Before it gives memory back the allocator waits for the device.
    "memory-near-the-limit": _expect("ME001", "HD004", "HD009"),
    "fragmentation": _expect("ME002"),
    "leak": _expect({"ME003": subject(operator="rms_norm")}),
}
"""By name of the cause."""


def expectation(cause: Cause) -> Expectation:
    """What is expected of a cause; one that some ranks have makes the others wait."""
    expected = EXPECTATIONS[cause.name]
    return replace(expected, also=expected.also | frozenset(WAITING)) if cause.where else expected


def names(finding: Finding, cause: Cause) -> bool:
    """Whether a finding names this cause, on the right rank."""
    says = expectation(cause).says.get(finding.rule)
    return says is not None and says(finding, cause)


def allowed(causes: tuple[Cause, ...]) -> frozenset[str]:
    """The rules that may fire at medium or high severity in a job with these causes."""
    rules: frozenset[str] = frozenset()
    for cause in causes:
        expected = expectation(cause)
        rules |= expected.also | frozenset(expected.says)
    return rules


def true_of(job: Setup) -> frozenset[str]:
    """The rules that may fire at medium or high severity whatever the causes are: what they say is true of the program.
    A server that launches the kernels of its steps one by one would be quicker with a graph: simulated with one, the
    step of ``decode-slow-scheduler`` takes 24.8 % less, that of ``healthy-decode`` 1.4 %."""
    work = job.training
    return frozenset({"HD022"}) if isinstance(work, Serving) and not work.captured else frozenset()
