"""What a third party can add through each hook, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from advisor_core.collecting.plan import plan
from advisor_core.contracts.capturing import CaptureOption
from advisor_core.contracts.facts import Fact, Facts, fact
from advisor_core.contracts.keys import Answers
from advisor_core.contracts.labels import Label
from advisor_core.contracts.owner import Owner
from advisor_core.contracts.registry import DuplicateError, Registry
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.store import FactStore
from advisor_core.plugins.hookspecs import hookimpl
from advisor_core.plugins.host import OWN, Host, load_host
from advisor_core.testing import fact_store, profile, table
from advisor_core.text.base import Text
from advisor_core.vocabulary.host_labels import LedgerLeaf
from advisor_core.vocabulary.operator_class import OperatorWords
from advisor_core.vocabulary.phases import PhaseMark
from reports.labels import Labels

LABEL = Text(en="My own", zh="自定义")


def plugin(hook: str, *things: Any) -> ModuleType:
    """A module that adds these things in one hook."""

    def register(registry: Any) -> None:
        registry.add(*things)

    module = ModuleType("other")
    setattr(module, f"advisor_register_{hook}", hookimpl(register))
    return module


def loaded(hook: str, *things: Any) -> Host:
    host = load_host([("other", plugin(hook, *things))])
    assert host.plugins[-1].problem is None
    return host


def store(host: Host, **tables: Any) -> FactStore:
    words = host.vocabulary("ascend")
    return fact_store(host, profile(vocabulary=words), **tables)


def kernels(*types: str) -> Any:
    return table("kernels", [{"start_us": 10 * n, "duration_us": 5, "type": t} for n, t in enumerate(types)])


def test_own_kernels_get_a_class_of_the_ledger() -> None:
    words = OperatorWords("other.kernels", "elementwise", ("my activation",))
    host = loaded("operator_words", words)
    booked = store(host, kernels=kernels("MyActivationSoftmax", "SoftmaxV2"))[ledger]
    assert booked.set_index("path")["ns"].to_dict().items() >= {"compute/elementwise": 5_000}.items()
    assert host.vocabulary("ascend").operator_classes.class_of("SoftmaxV2") == "normalisation"


def test_a_new_class_has_a_leaf_and_a_label() -> None:
    host = loaded("operator_words", OperatorWords("other.kernels", "physics", ("^lattice",), LABEL))
    booked = store(host, kernels=kernels("LatticeStep"))[ledger]
    assert "compute/physics" in booked["path"].tolist()
    assert "compute/physics" in host.ledger_paths
    assert Labels("zh", host.texts()).path("compute/physics") == "自定义"


def test_a_leaf_takes_the_idle_time_of_its_calls() -> None:
    host = loaded("ledger_leaves", LedgerLeaf("idle/host/checkpoint", "save_state", LABEL))
    events = [
        {"category": "user_annotation", "name": "ProfilerStep#1", "thread": 1, "start_us": 0, "duration_us": 1000},
        {"category": "cpu_op", "name": "aten::mul", "thread": 1, "start_us": 1, "duration_us": 9},
        {"category": "runtime", "name": "Node@launch", "thread": 1, "start_us": 5, "duration_us": 2},
        {"category": "python_function", "name": "save_state", "thread": 1, "start_us": 100, "duration_us": 600},
        {"category": "cpu_op", "name": "aten::mul", "thread": 1, "start_us": 890, "duration_us": 20},
        {"category": "runtime", "name": "Node@launch", "thread": 1, "start_us": 900, "duration_us": 2},
    ]
    flows = [
        {"kind": "host_to_device", "flow": n, "end": end, "time_us": time, "thread": thread, "device": end == "f"}
        for n, (begun, started) in enumerate(((6, 20), (901, 910)))
        for end, time, thread in (("s", begun, 1), ("f", started, 2))
    ]
    rows = [
        {"start_us": start, "duration_us": 30, "type": "Mul", "name": "Mul", "core": "AI_VECTOR_CORE", "stream": 2}
        for start in (20, 910)
    ]
    facts = store(
        host, kernels=table("kernels", rows), host_events=table("host_events", events), flows=table("flows", flows)
    )
    booked = facts[ledger].groupby("path")["ns"].sum()
    assert booked["idle/host/checkpoint"] == 600_000
    assert "idle/host/checkpoint" in host.ledger_paths


def test_marks_name_phases() -> None:
    words = loaded("phase_marks", PhaseMark("my_agent.play", "rollout")).vocabulary("ascend")
    assert words.phase_of("MY_AGENT.play_update_actor") == "rollout", "before the marks of our own"
    assert words.phase_of("update_actor") == "update_actor"


def test_labels_reach_reports() -> None:
    texts = loaded("labels", Label("heading.warp", LABEL), Label("path.compute/matmul", LABEL)).texts()
    assert Labels("zh", texts).name("warp") == "自定义"
    assert Labels("en", texts).path("compute/matmul") == "My own"
    assert Labels("en").name("warp") == "warp"


def test_an_option_is_part_of_a_configuration() -> None:
    option = CaptureOption(
        name="other.counters", default=True, provides=LABEL, cost=LABEL, settings={"msprof": "--other=on"}
    )
    host = loaded("capture_options", option)
    chosen = plan("msprof", host.capture_options)
    assert chosen.has("other.counters")
    assert "other.counters" in [choice.id for choice in plan("torch_npu", host.capture_options).beyond]


@pytest.mark.parametrize(
    "hook",
    [
        "loaders", "vocabularies", "operator_words", "ledger_leaves", "phase_marks", "chips", "labels",
        "capture_options", "facts", "advisors", "rulesets", "renderers",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_names_the_plugin(hook: str) -> None:
    host = load_host([("other", plugin(hook, object()))])
    assert host.plugins[-1].name == "other"
    assert "is given where a" in str(host.plugins[-1].problem)
    assert len(host.registries()[f"advisor_register_{hook}"]) == len(
        load_host().registries()[f"advisor_register_{hook}"]
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: OperatorWords("a", "physics", ("*glob*",)),
        lambda: OperatorWords("a", "Physics!", ("word",)),
        lambda: OperatorWords("a", "physics", ()),
        lambda: LedgerLeaf("compute/x", "call", LABEL),
        lambda: LedgerLeaf("idle/host/gc", "call", LABEL),
        lambda: LedgerLeaf("idle/host/x", "(", LABEL),
        lambda: PhaseMark("", "rollout"),
        lambda: Label("other.warp", LABEL),
    ],
)
def test_wrong_entries_are_refused_when_they_are_made(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        wrong()


def test_a_plugin_that_fails_leaves_nothing_behind() -> None:
    first, second = PhaseMark("first", "rollout"), object()
    host = load_host([("other", plugin("phase_marks", first, second))])
    assert "first" not in host.phase_marks


def test_what_a_plugin_prints_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    def register(registry: Any) -> None:
        print("hello from a plugin")  # noqa: T201

    module = ModuleType("other")
    module.advisor_register_labels = hookimpl(register)  # type: ignore[attr-defined]
    load_host([("other", module)])
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "hello from a plugin\n")


def test_a_plugin_that_takes_long_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from advisor_core.contracts import isolation

    monkeypatch.setattr(isolation, "PATIENCE_S", 0.01)
    with isolation.working(Owner("ours", "npu-advisor", builtin=True), "which measures"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
    with isolation.working(Owner("slow", "slow-plugin", "1.0"), "which derives weights"):
        time.sleep(0.3)
    assert capsys.readouterr().err == "waiting for plugin slow (slow-plugin 1.0), which derives weights\n"


def test_a_fact_that_takes_long_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from advisor_core.contracts import isolation

    @fact("slow_fact")
    def slow_fact(facts: Facts) -> int:
        time.sleep(0.3)
        return 1

    monkeypatch.setattr(isolation, "PATIENCE_S", 0.01)
    registry: Registry[Fact[object]] = Registry("fact")
    registry.plugin = Owner("slow", "slow-plugin", "1.0")
    registry.add(slow_fact)
    assert FactStore(registry, Answers())[slow_fact] == 1
    assert capsys.readouterr().err == "waiting for plugin slow (slow-plugin 1.0), which derives slow_fact\n"


def test_what_comes_later_is_there_when_it_is_asked_for() -> None:
    """Own things that take long to import come before those of others, with the right owner."""
    ours, theirs = Owner("ours", "npu-advisor", builtin=True), Owner("theirs", "other")
    calls = []

    def register() -> None:
        calls.append("registered")
        registry.add(Label("heading.first", LABEL))

    registry: Registry[Label] = Registry("label")
    registry.plugin = ours
    registry.later(register)
    assert calls == []
    registry.plugin = theirs
    with pytest.raises(DuplicateError, match=r"first.*of theirs.*registered by ours"):
        registry.add(Label("heading.first", LABEL))
    registry.add(Label("heading.second", LABEL))
    assert list(registry) == ["heading.first", "heading.second"] and calls == ["registered"]
    assert (registry.owner("heading.first"), registry.owner("heading.second")) == (ours, theirs)


def test_what_a_plugin_wanted_to_register_later_is_forgotten_with_it() -> None:
    ours = Owner("ours", "npu-advisor", builtin=True)
    registry: Registry[Label] = Registry("label")
    registry.plugin = ours
    registry.later(lambda: registry.add(Label("heading.first", LABEL)))
    registry.forget(ours)
    assert list(registry) == []


def test_our_own_facts_advisors_and_drawings_have_the_facts_that_they_ask_for() -> None:
    """`load_host` looks only where other plugins take part."""
    host = load_host([("other", ModuleType("other"))])
    assert [status.lacks for status in host.plugins if status.distribution == OWN] != []
    assert {status.lacks for status in host.plugins} == {()}
