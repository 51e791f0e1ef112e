"""Phases of an iteration: which names are known, and that dividing the ledger by phase loses nothing."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core import testing
from advisor_core.contracts.missing import NotApplicable
from advisor_core.contracts.tables import FLOWS, SCHEMAS
from advisor_core.facts.host.launches import launches
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.steps.phases import phase_ledger, phases
from advisor_core.facts.store import FactStore
from advisor_core.plugins.host import load_host
from advisor_core.testing import table
from tests.facts import small
from tests.facts.reference import Story
from tests.facts.test_ledger import ORIGIN, build, stories

TABLES = ("kernels", "flows", "host_events", "device_tasks", "communication_tasks")
NAMES = ("generate_sequences", "compute_ref_log_prob", "compute_log_prob", "update_actor", "wake_up")

WORDS = load_host().vocabulary("ascend")


def with_marks(store: FactStore, marks: list[tuple[str, float, float]], **about: Any) -> FactStore:
    """The same profile with MSTX ranges, in us, by name, start and end."""
    rows = [small.host("mstx", name, small.MAIN, start, end - start) for name, start, end in marks]
    tables = {name: store[SCHEMAS[name]] for name in TABLES}
    if rows:
        events = pd.concat([tables["host_events"].astype(object), table("host_events", rows).astype(object)])
        tables["host_events"] = SCHEMAS["host_events"].conform(events.reset_index(drop=True))
    profile = testing.profile(**about)
    return testing.fact_store(about=profile, **tables)


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("generate_sequences", "rollout"),
        ("ActorHybridWorkerBase.generate_sequences", "rollout"),
        ("rollout_generate", "rollout"),
        ("agent_loop_rollout_replica_3", "rollout"),
        ("async_rollout", "rollout"),
        ("gen", "rollout"),
        ("Generate_Sequences", "rollout"),
        ("compute_log_prob", "log_prob"),
        ("actor_compute_log_prob", "log_prob"),
        ("old_log_prob", "log_prob"),
        ("compute_ref_log_prob", "ref_log_prob"),
        ("ref_compute_log_prob", "ref_log_prob"),
        ("IntegratedWorker.compute_ref_log_prob", "ref_log_prob"),
        ("ref", "ref_log_prob"),
        ("ActorRolloutHybrid.update_actor", "update_actor"),
        ("actor_update", "update_actor"),
        ("train_batch", "update_actor"),
        ("update_critic", "update_critic"),
        ("Reward.compute_rm_score", "reward"),
        ("reward", "reward"),
        ("adv", "advantage"),
        ("values", "values"),
        ("update_weights", "weight_sync"),
        ("testing", "validation"),
        ("save_checkpoint", "checkpoint"),
        ("step", ""),
        ("generic_gen", ""),
        ("prefetch", ""),
        ("ProfilerStep#2", ""),
        ("", ""),
    ],
)
def test_names_of_the_frameworks(name: str, phase: str) -> None:
    assert WORDS.phase_of(name) == phase


def test_what_the_user_says_comes_first() -> None:
    assert WORDS.phase_of("MyAgent.Play", [("agent.play", "rollout")]) == "rollout"
    assert WORDS.phase_of("update_actor_and_critic", [("and_critic", "update_critic")]) == "update_critic"


@st.composite
def marks(draw: st.DrawFn) -> list[tuple[str, float, float]]:
    found = []
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(-50, 300))
        found.append((draw(st.sampled_from(NAMES)), ORIGIN + start, ORIGIN + start + draw(st.integers(0, 200))))
    return found


@given(stories(), marks())
def test_the_phases_of_a_step_add_up_to_its_ledger(story: Story, marked: list[tuple[str, float, float]]) -> None:
    store = with_marks(build(story), marked)
    try:
        divided, spans = store[phase_ledger], store[phases]
    except NotApplicable:
        return
    whole = store[ledger]
    key = ["step", "path"]
    sums = divided.groupby(key)["ns"].sum()
    assert sums.to_dict() == whole.set_index(key)["ns"].to_dict()
    lengths = (spans["end_ns"] - spans["start_ns"]).groupby(spans["phase"]).sum()
    named = divided[divided["phase"] != ""].groupby("phase")["ns"].sum()
    assert named.to_dict() == lengths.to_dict()
    assert (spans["start_ns"].to_numpy()[1:] >= spans["end_ns"].to_numpy()[:-1]).all()
    assert (spans["end_ns"] > spans["start_ns"]).all()


def two_steps() -> FactStore:
    rows = [small.kernel(start, 10, step=step) for step, start in ((1, 0), (1, 30), (1, 60), (2, 100), (2, 130))]
    flows = [end for number, row in enumerate(rows) for end in small.launch(number, row["start_us"], row["start_us"])]
    events = [small.host("runtime", "Node@launch", small.ACL, row["start_us"] - 1, 2) for row in rows]
    empty = {name: table(name, []) for name in ("device_tasks", "communication_tasks")}
    return small.store(
        kernels=table("kernels", rows), flows=table("flows", flows), host_events=table("host_events", events), **empty
    )


def test_marks_divide_the_steps() -> None:
    """The outer mark keeps the time of one inside it; a mark over two steps is in both."""
    marked = [
        ("generate_sequences", -5, 50),
        ("actor_update", 50, 110),
        ("compute_log_prob", 60, 70),
        ("step", -5, 150),
        ("compute_ref_log_prob", 120, 130),
        ("compute_ref_log_prob", 130, 135),
    ]
    spans = with_marks(two_steps(), marked)[phases]
    shown = [
        (row.step, row.phase, row.start_ns // small.US, row.end_ns // small.US) for row in spans.itertuples(index=False)
    ]
    assert shown == [
        (0, "rollout", 0, 50),
        (0, "update_actor", 50, 100),
        (1, "update_actor", 100, 110),
        (1, "ref_log_prob", 120, 135),
    ]
    assert spans["kind"].tolist() == spans["phase"].tolist()


def test_marks_are_brought_to_the_clock_of_the_device() -> None:
    store = two_steps()
    late = store[FLOWS].assign(time_ns=lambda frame: frame["time_ns"] + (~frame["device"]) * 7 * small.US)
    tables = {name: store[SCHEMAS[name]] for name in TABLES if name != "flows"}
    shifted = with_marks(small.store(flows=late, **tables), [("generate_sequences", 27, 57)])
    assert shifted[launches].skew_ns == 7 * small.US
    (span,) = shifted[phases].itertuples()
    assert (span.start_ns // small.US, span.end_ns // small.US) == (20, 50)


def test_a_role_that_was_profiled_by_itself_is_one_phase_whatever_it_marks() -> None:
    marked = [("generate_sequences", 10, 20)]
    spans = with_marks(two_steps(), marked, role="actor_update")[phases]
    assert spans[["step", "phase", "kind"]].to_numpy().tolist() == [
        [0, "actor_update", "update_actor"],
        [1, "actor_update", "update_actor"],
    ]
    assert (spans["end_ns"] - spans["start_ns"]).sum() == 140 * small.US
    of_own_name = with_marks(two_steps(), [], role="teacher")[phases]
    assert set(of_own_name["phase"]) == {"teacher"} and set(of_own_name["kind"]) == {""}
    end_to_end = with_marks(two_steps(), marked, role="e2e")[phases]
    assert end_to_end["phase"].tolist() == ["rollout"]


def test_marks_that_the_user_names() -> None:
    marked = [("Agent.play", 0, 50), ("Agent.learn", 50, 100)]
    with pytest.raises(NotApplicable, match=r"none of the 2 marks .*Agent.play, Agent.learn"):
        with_marks(two_steps(), marked)[phases]
    aliases = (("agent.PLAY", "rollout"), ("learn", "distil"))
    spans = with_marks(two_steps(), marked, phase_marks=aliases)[phases]
    assert spans["phase"].tolist() == ["rollout", "distil"]
    assert spans["kind"].tolist() == ["rollout", ""]


def test_training_has_no_phases() -> None:
    with pytest.raises(NotApplicable, match="no marks of the phases"):
        with_marks(two_steps(), [])[phases]
    outside = [("generate_sequences", 1000, 2000)]
    with pytest.raises(NotApplicable):
        with_marks(two_steps(), outside)[phases]
