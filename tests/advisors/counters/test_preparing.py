"""The stages of nodes that prepare data on the AI CPU."""

from __future__ import annotations

from advisor_core.api.testing import Scene
from advisors.counters.preparing import preparing
from tests.advisors.counters.test_tables import shown


def node(scene: Scene, name: str, dispatch: float, task: float, compute: float, copy: float, total: float) -> Scene:
    times = {"dispatch_ns": dispatch, "run_ns": task, "compute_ns": compute, "copy_ns": copy, "total_ns": total}
    return scene.add("ai_cpu_nodes", name=name, time_ns=-1, stream=1, task=1, **times)


def test_the_stages_of_a_node_are_its_time() -> None:
    scene = node(node(Scene().kernel(0, 30), "Decode", 10, 60, 40, 5, 100), "Decode", 10, 60, 40, 5, 100)
    node(scene, "Resize", 1, 9, 2, 7, 30)
    decode, resize = shown(preparing, scene)
    stages = ("Handed over", "Scheduled", "Prepared", "Computed", "Copied")
    assert [decode[stage] for stage in stages] == [20, 60, 30, 80, 10] and decode["Time"] == 200
    assert sum(decode[stage] for stage in stages) == decode["Time"]
    assert (decode["Calls"], decode["Mean"], decode["Its share"]) == (2, 100, 0.4)
    assert decode["Most of it"].en == "computing" and resize["Most of it"].en == "scheduling"
    assert resize["Scheduled"] == 20 and resize["Its share"] == 20 / 30


def test_a_stage_that_was_not_recorded_is_not_known() -> None:
    scene = node(Scene().kernel(0, 30), "Decode", 10, float("nan"), float("nan"), float("nan"), 100)
    (decode,) = shown(preparing, scene)
    assert "Computed" not in decode and decode["Handed over"] == 10 and decode["Its share"] == 0.1
