"""CO014: links of a group that are all slow."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import MB, advised, buckets, naming, training
from tests.advisors.cures import cure_of, shorter


def between_servers(*, bandwidth: float, transport: str = "HCCS", small: bool = False) -> Scene:
    """Two operations in a row that begin under computing and are longer than it; B/s of their link."""
    scene = buckets(1000, 1000, begin=400)
    size = MB if small else 20 * MB
    for number in (0, 1):
        scene.add(
            "links", name=f"allreduce-top{number}@0", group="0", op=f"hcom_allReduce__100_{number}_1", source_rank=0,
            target_rank=1, transport=transport, bytes=size, transit_us=size / bandwidth * 1e6,
        )  # fmt: skip
    return scene


def test_slow_links_save_what_the_usual_bandwidth_would() -> None:
    found = judge_rule("CO014", between_servers(bandwidth=1.87e9).store())
    seen = found.first.observation
    assert seen["ratio"] == pytest.approx(0.1) and seen["operations"] == 2
    # 1400 us uncovered; at ten times the bandwidth a tenth of the last 1000 us stays, all else is hidden.
    assert seen["saveable_ns"] == pytest.approx(1_300_000)
    assert found.first.severity == "high"
    # With slow links it is not the start of the transfers that is wrong.
    assert judge_rule("CO003", between_servers(bandwidth=1.87e9).store()).state == "pass"


def test_rdma_between_servers_has_settings_of_its_own() -> None:
    def settings(**about: Any) -> list[dict[str, str]]:
        return [one.set for one in advised("CO014", training(between_servers(bandwidth=1e9, **about))) if one.set]

    assert settings() == []
    assert settings(transport="RDMA") == [{"HCCL_INTER_HCCS_DISABLE": "FALSE"}, {"HCCL_RDMA_QPS_PER_CONNECTION": "4"}]


def test_gradients_are_reduced_less_often_in_training_only_and_last() -> None:
    trained = advised("CO014", training(between_servers(bandwidth=1e9)))
    (seldom,) = naming(trained, "accumulates")
    assert trained[-1] == seldom and seldom.hazards == ["crash", "accuracy"] and "FSDP" in seldom.risk.en
    assert not naming(advised("CO014", between_servers(bandwidth=1e9)), "accumulates")


def test_slow_links_states() -> None:
    assert judge_rule("CO014", between_servers(bandwidth=18e9).store()).state == "pass"
    # 64 % of the usual: as good as the links of older chips are, but not as those of this one.
    chips = {"pass": (32, 32), "fail": (24, 48)}
    for state, (cube, vector) in chips.items():
        chip = {"ai_core_num": cube, "aiv_num": vector, "aic_frequency": 1800}
        assert judge_rule("CO014", between_servers(bandwidth=12e9).store(chip=chip)).state == state
    assert judge_rule("CO014", between_servers(bandwidth=12e9).store()).state == "cannot_answer"
    assert judge_rule("CO014", between_servers(bandwidth=16e9).store()).state == "pass"
    assert judge_rule("CO014", between_servers(bandwidth=5e9, transport="RDMA").store()).state == "fail"
    assert judge_rule("CO014", between_servers(bandwidth=1e9, small=True).store()).state == "not_applicable"
    assert judge_rule("CO014", between_servers(bandwidth=1e9).store("links")).state == "cannot_answer"


def test_the_cure_makes_the_collectives_as_short_as_the_bandwidth_of_healthy_jobs_does() -> None:
    store = between_servers(bandwidth=1.87e9).store()
    cure = cure_of(judge_rule("CO014", store))
    # 400 us of the first and 1000 us of the second are uncovered, of which the end stays.
    for at, bandwidth in (("least", 18.7), ("usual", 19.8), ("most", 20.9)):
        saved = 1_400_000 - 1_000_000 * 1.87 / bandwidth
        less = shorter(store, cure.bound(at))
        assert less == {1: pytest.approx(saved * 4 / 14, abs=1), 2: pytest.approx(saved * 10 / 14, abs=1)}
