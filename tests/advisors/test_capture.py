"""Capture quality: what the way of profiling hides or distorts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.store import FactStore
from advisor_core.result.run import Diagnostic, InputFile
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.sample import write_sample
from advisor_core.text.base import Text
from tests.advisors.real import real_job, real_rank
from tests.conftest import ROOT


def scene(*, type_: str = "MatMulV2") -> Scene:
    return Scene().kernel(0, 100, type_).kernel(100, 50, type_)


@pytest.mark.parametrize(
    ("level", "type_", "state"),
    [
        ("level0", "MatMulV2", "fail"),
        ("level_none", "MatMulV2", "fail"),
        ("level1", "MatMulV2", "pass"),
        ("level1", "", "fail"),
        (None, "", "fail"),
        (None, "MatMulV2", "cannot_answer"),
    ],
)
def test_level(level: str | None, type_: str, state: str) -> None:
    assert judge_rule("DQ001", scene(type_=type_).store(level=level)).state == state


def test_inflating_options_put_a_caveat_on_host_findings() -> None:
    found = judge_rule(
        "DQ002", scene().store(profiler={"with_stack": True, "record_shapes": True, "with_modules": False})
    )
    assert found.first.observation["inflating_options"] == "with_stack, record_shapes"
    assert found.first.caveat is not None and "record" in found.first.caveat.en
    assert judge_rule("DQ002", scene().store(profiler={"with_stack": False})).state == "pass"


@pytest.mark.parametrize("asked", [True, False, None])
def test_whether_shapes_were_asked_for(asked: bool | None) -> None:
    profiler = {} if asked is None else {"record_shapes": asked}
    found = judge_rule("DQ001", scene().store(level="level0", profiler=profiler))
    assert found.first.observation["shapes_asked"] is asked


def test_operators_with_shapes_say_that_they_were_asked_for() -> None:
    """Kernels of compiled functions have none, however the profiler is set."""
    shaped = scene().event("cpu_op", "aten::mm", 0, 10, input_shapes="8,8;8,8")
    found = judge_rule("DQ001", shaped.store(level="level0", profiler={}))
    assert found.first.observation["shapes_asked"] is True


def test_single_step() -> None:
    assert judge_rule("DQ003", scene().store()).state == "fail"
    assert judge_rule("DQ003", scene().kernel(200, 10, step=2).store()).state == "pass"


@pytest.mark.parametrize(
    ("schedule", "state"),
    [
        ({"schedule.skip_first": 0, "schedule.wait": 0, "schedule.warmup": 0}, "fail"),
        ({"schedule.skip_first": 0, "schedule.wait": 0, "schedule.warmup": 1}, "pass"),
        ({}, "cannot_answer"),
    ],
)
def test_warm_up(schedule: dict[str, Any], state: str) -> None:
    assert judge_rule("DQ004", scene().store(profiler=schedule)).state == state


def test_capture_findings_cost_nothing() -> None:
    for rule in ("DQ001", "DQ002", "DQ003", "DQ004"):
        store = scene().store(level="level0", profiler={"with_stack": True, "schedule.warmup": 0})
        assert judge_rule(rule, store).first.impact_ns == 0
        assert judge_rule(rule, store).first.severity == "low"


def test_alexnet(profiles: Path) -> None:
    level1 = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    assert [judge_rule(f"DQ00{n}", level1).state for n in (1, 2, 3, 4)] == ["pass", "fail", "fail", "pass"]
    assert judge_rule("DQ001", real_rank(profiles, "alexnet-ddp-text-level0", 0)).state == "fail"


NEW = [f"DQ{number:03}" for number in range(5, 16)]


@pytest.mark.parametrize(
    ("activities", "calls", "state"),
    [
        ("ProfilerActivity.CPU,ProfilerActivity.NPU", True, "pass"),
        ("ProfilerActivity.NPU", False, "fail"),
        (None, False, "fail"),  # the trace was read and has no call of the framework
        (None, True, "pass"),
        ("ProfilerActivity.CPU", True, "pass"),  # what is there counts, whatever was recorded
    ],
)
def test_activities(activities: str | None, calls: bool, state: str) -> None:
    made = scene()
    if calls:
        made.event("cpu_op", "aten::mm", 0, 5)
    profiler = {"activities": activities} if activities else {}
    assert judge_rule("DQ005", made.store(profiler=profiler)).state == state


def test_activities_without_a_trace() -> None:
    assert judge_rule("DQ005", scene().store("host_events")).state == "cannot_answer"
    asked = {"activities": "ProfilerActivity.CPU"}
    device_missing = Scene().event("cpu_op", "aten::mm", 0, 5).store(profiler=asked)
    assert judge_rule("DQ005", device_missing).state == "fail"


def job(
    *walls: float, kernels: int = 10, last: int | None = None, shapes: bool = False, recurring: bool = True
) -> Scene:
    """Steps of these wall times one after the other, each with as many kernels; ``last``: those of the last step."""
    made, start = Scene(), 0.0
    for number, wall in enumerate(walls):
        count = last if last is not None and number == len(walls) - 1 else kernels
        for kernel in range(count):
            at = start + kernel * wall / count
            axis = 8 if recurring else 8 + number
            reads = [f"{axis},4 BF16"] if shapes else []
            made.tensors(at, wall / count / 2, "Add", reads, step=number)
        start += wall
    return made


@pytest.mark.parametrize(
    ("walls", "state"),
    [
        ((100, 100, 100, 100), "pass"),
        ((129, 100, 100, 100), "pass"),
        ((140, 100, 100, 100), "fail"),
        ((100, 300, 100, 100), "pass"),  # another step than the first
        ((500, 100), "cannot_answer"),  # which of two is the odd one
    ],
)
def test_first_step(walls: tuple[float, ...], state: str) -> None:
    found = judge_rule("DQ006", job(*walls).store())
    assert found.state == state
    if state == "fail":
        assert found.first.observation["first_over_rest"] == pytest.approx(1.4)
        assert found.first.caveat is not None


@pytest.mark.parametrize(
    ("last", "state"),
    [(None, "pass"), (9, "pass"), (8, "pass"), (7, "fail"), (1, "fail")],
)
def test_last_step_cut_off(last: int | None, state: str) -> None:
    found = judge_rule("DQ007", job(100, 100, 100, 50, last=last).store())
    assert found.state == state
    if last == 7:
        assert found.first.observation["last_task_share"] == pytest.approx(0.7)
        assert {row["tasks"] for row in found.evidence()[0].rows} == {10, 7}


def test_last_step_of_two_cannot_be_told() -> None:
    assert judge_rule("DQ007", job(100, 50, last=1).store()).state == "cannot_answer"


@pytest.mark.parametrize(
    ("recurring", "skipped", "state"),
    [(True, 0, "pass"), (False, 0, "fail"), (False, 9, "fail"), (False, 10, "pass")],
)
def test_dynamic_shapes(recurring: bool, skipped: int, state: str) -> None:
    store = job(100, 100, 100, shapes=True, recurring=recurring).store(profiler={"schedule.skip_first": skipped})
    assert judge_rule("DQ008", store).state == state


def test_dynamic_shapes_cannot_be_told() -> None:
    schedule = {"schedule.skip_first": 0}
    assert judge_rule("DQ008", job(100, shapes=True).store(profiler=schedule)).state == "cannot_answer"
    assert judge_rule("DQ008", job(100, 100).store(profiler=schedule)).state == "cannot_answer"
    assert judge_rule("DQ008", job(100, 100, shapes=True, recurring=False).store()).state == "cannot_answer"


def test_launched_but_never_run() -> None:
    def launched(count: int) -> FactStore:
        made = job(100, 100, 100)
        for number in range(count):
            made.event("runtime", "Node@launch", 400 + number, 1, item="Add")
        return made.store()

    assert judge_rule("DQ009", launched(0)).state == "pass"
    found = judge_rule("DQ009", launched(3))
    assert found.state == "fail"
    assert (found.first.observation["never_run"], found.first.observation["launches"]) == (3, 33)
    assert len(found.evidence()[1].rows) == 3
    assert judge_rule("DQ009", job(100, 100).store("flows")).state == "cannot_answer"


def test_arrows_without_an_end() -> None:
    made = job(100, 100, 100)
    made.add("flows", kind="host_to_device", end="s", flow=999, time_us=10, thread=100, device=False)
    found = judge_rule("DQ009", made.store())
    assert found.state == "fail"
    assert found.first.observation["never_run"] == 1


@pytest.mark.parametrize(("early", "state"), [(0, "pass"), (90, "pass"), (110, "fail")])
def test_clocks(early: float, state: str) -> None:
    """A task that starts this long before its launch."""
    store = scene().kernel(1000, 10, launched=1000 + early).store()
    found = judge_rule("DQ010", store)
    assert found.state == state
    if state == "fail":
        assert found.first.observation["skew_ns"] == 110_000
        assert found.first.observation["early_share"] == pytest.approx(1 / 3)
    assert judge_rule("DQ010", scene().store("flows")).state == "cannot_answer"


def _said(*severities: Any) -> list[Diagnostic]:
    return [
        Diagnostic(severity=severity, source=f"{number}.csv", message=Text(en="broken", zh="损坏"))
        for number, severity in enumerate(severities)
    ]


def test_damage() -> None:
    files = [InputFile(name="a.csv", bytes=10, sha256="")]
    assert judge_rule("DQ011", scene().store(files=files)).state == "pass"
    assert judge_rule("DQ011", scene().store(files=files, diagnostics=_said("info"))).state == "pass"
    warned = judge_rule("DQ011", scene().store(files=files, diagnostics=_said("warning", "info")))
    assert (warned.first.severity, warned.first.observation["files"]) == ("low", "0.csv")
    lost = judge_rule("DQ011", scene().store(diagnostics=_said("error", "warning")))
    assert (lost.first.severity, lost.first.observation["errors"]) == ("medium", 1)
    assert lost.first.caveat is not None and "0\\.csv, 1\\.csv" in lost.first.caveat.en  # as Markdown
    assert judge_rule("DQ011", scene().store()).state == "not_applicable"


def test_size() -> None:
    def of(size: int, seconds: float) -> str:
        files = [InputFile(name="trace_view.json", bytes=size, sha256="")]
        return judge_rule("DQ012", scene().kernel(seconds * 1e6, 1).store(files=files)).state

    assert of(10**9, 10) == "pass"
    assert of(11 * 10**9, 10) == "fail"
    assert of(10**9, 301) == "fail"
    assert judge_rule("DQ012", Scene().event("cpu_op", "aten::mm", 0, 1).store()).state == "cannot_answer"


def _ranks(*about: dict[str, Any], starts: tuple[float, ...] = ()) -> dict[int, FactStore]:
    """A rank per entry, with a kernel; with a collective as well unless ``starts`` says when the kernel begins."""
    made = {rank: Scene(rank=rank).kernel(starts[rank] if starts else 10, 100) for rank in range(len(about))}
    if not starts:
        made = {rank: one.collective(200, 10) for rank, one in made.items()}
    return {rank: made[rank].store(**one) for rank, one in enumerate(about)}


@pytest.mark.parametrize(
    ("one", "other", "aspects"),
    [
        ({"versions": {"cann": "8.3"}}, {"versions": {"cann": "8.3"}}, ""),
        ({"versions": {"cann": "8.3"}}, {"versions": {"cann": "8.2"}}, "versions"),
        ({"versions": {"cann": "8.3"}}, {}, ""),  # unknown is no difference
        ({"level": "level0"}, {"level": "level1"}, "level"),
        ({"chip": {"name": "A100"}}, {"chip": {"name": "V100"}}, "chip"),
        ({"world_size": 8}, {"world_size": 16}, "world_size"),
        ({"parallel": {"tp": 2}}, {"parallel": {"tp": 4}}, "parallel"),
        (
            {"parallel": {"tp": 2}, "world_size": 4},
            {"parallel": {"tp": 4}, "world_size": 8},
            "world_size, parallel",
        ),
    ],
)
def test_profiles_of_different_jobs(one: dict[str, Any], other: dict[str, Any], aspects: str) -> None:
    found = judge_rule("DQ013", _ranks(one, other))
    assert found.state == ("fail" if aspects else "pass")
    if aspects:
        assert found.first.observation["aspects"] == aspects


def test_profiles_of_different_times() -> None:
    assert judge_rule("DQ013", _ranks({}, {}, starts=(0, 50))).state == "pass"
    found = judge_rule("DQ013", _ranks({}, {}, starts=(0, 5_000_000)))
    assert found.first.observation["aspects"] == "start"
    assert found.first.observation["apart_ns"] == 5_000_000_000 - 100_000
    assert judge_rule("DQ013", _ranks({})).state == "not_applicable"


def test_one_recording_under_several_numbers() -> None:
    found = judge_rule("DQ020", _ranks({}, {}, {}, {}, starts=(10, 50, 10, 50)))
    assert (found.first.observation["copied"], found.first.observation["copied_ranks"]) == (2, "0, 2; 1, 3")
    assert judge_rule("DQ020", _ranks({}, {}, starts=(10, 10.001))).state == "pass"
    assert judge_rule("DQ020", _ranks({})).state == "not_applicable"


@pytest.mark.parametrize(("peers", "state"), [((1,), "pass"), ((1, 2, 3), "fail")])
def test_ranks_that_collectives_name(peers: tuple[int, ...], state: str) -> None:
    """Nothing is recorded of groups, but the tasks of a collective name the ranks that are waited for."""
    planes = [(200 + 10 * peer, 210 + 10 * peer, peer) for peer in peers]
    stores = {rank: Scene(rank=rank).kernel(10, 100).collective(200, 100, planes).store() for rank in (0, 1)}
    found = judge_rule("DQ014", stores)
    assert found.state == state
    if state == "fail":
        assert (found.first.observation["profiled"], found.first.observation["expected"]) == (2, 4)


def test_ranks_not_profiled() -> None:
    assert judge_rule("DQ014", _ranks({"world_size": 2}, {"world_size": 2})).state == "pass"
    found = judge_rule("DQ014", _ranks({"world_size": 4}, {}))
    assert (found.first.observation["missing"], found.evidence()[0].rows[0]["missing_ranks"]) == (2, "2, 3")
    grouped = judge_rule("DQ014", _ranks({"groups": {"7": [0, 5]}}))
    assert grouped.evidence()[0].rows[0]["missing_ranks"] == "5"
    assert judge_rule("DQ014", _ranks({}, {})).state == "cannot_answer"
    assert judge_rule("DQ014", {0: scene().store("kernels", "device_tasks")}).state == "cannot_answer"
    assert judge_rule("DQ014", _ranks({}, {}, starts=(0, 0))).state == "not_applicable"


@pytest.mark.parametrize("name", ["alexnet-ddp-text-level0", "alexnet-ddp-text-level1", "alexnet-ddp-db-level1"])
def test_alexnet_is_captured_well(profiles: Path, name: str) -> None:
    """Complete exports of one job with one step each: nothing to complain of, and what needs more steps says so."""
    stores = real_job(profiles, name)
    for store in stores.values():
        states = {rule: judge_rule(rule, store).state for rule in NEW if rule not in ("DQ013", "DQ014")}
        assert {rule for rule, state in states.items() if state == "fail"} == set()
        assert {rule for rule, state in states.items() if state == "cannot_answer"} == {"DQ006", "DQ007", "DQ008"}
    assert judge_rule("DQ013", stores).state == ("pass" if len(stores) > 1 else "not_applicable")
    # an old export without groups or world size; only level 1 names the peers, and there were eight ranks
    ranks = judge_rule("DQ014", stores)
    assert ranks.state == ("fail" if "level1" in name else "cannot_answer")
    if ranks.state == "fail":
        assert (ranks.first.observation["profiled"], ranks.first.observation["expected"]) == (2, 8)


@pytest.mark.parametrize("scenario", ["healthy-training", "healthy-decode"])
def test_healthy_samples(shared_sample: Callable[..., Path], scenario: str) -> None:
    found = run([shared_sample(scenario)], RunOptions(select=("DQ",)), jobs=1)
    assert [finding.rule for finding in found.findings if finding.severity != "low"] == []
    assert [finding.rule for finding in found.findings if finding.rule in NEW] == []
    assert {rule.state for rule in found.rules if rule.rule in NEW} <= {"pass", "not_applicable", "cannot_answer"}


def test_a_caveat_reaches_the_findings_it_concerns(shared_sample: Callable[..., Path]) -> None:
    """One rank of a job: what its report says about communication carries that others are missing."""
    found = run([shared_sample(headers="2025")], RunOptions(), rank=0, jobs=1)
    assert "DQ014" in {finding.rule for finding in found.findings}
    said = {
        finding.rule[:2]: any("ranks were given" in caveat.en for caveat in finding.caveats)
        for finding in found.findings
        if finding.rule[:2] in ("CO", "SA", "NS")
    }
    assert said.pop("CO")
    assert said and not any(said.values())


def test_a_trace_that_was_cut_off(tmp_path: Path) -> None:
    """From the damaged file to the caveat: the trace ends in the middle, as when a disk is full."""
    write_sample(tmp_path, scenario="task-queue-off")
    (trace,) = tmp_path.rglob("trace_view.json")
    content = trace.read_bytes()
    trace.write_bytes(content[: len(content) // 2])
    found = run([tmp_path], RunOptions(), jobs=1)
    (damaged,) = (finding for finding in found.findings if finding.rule == "DQ011")
    assert damaged.observation["warnings"] == 1  # what stands before the cut is read
    assert "trace_view.json" in str(damaged.observation["files"])
    others = [finding for finding in found.findings if not finding.rule.startswith("DQ")]
    assert others
    for finding in others:
        assert any("could not be read" in caveat.en for caveat in finding.caveats), finding.rule


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [(0, 0, "pass"), (10, 10, "pass"), (0, 22, "pass"), (0, 23, "fail"), (23, 0, "fail"), (60, 40, "fail")],
)
def test_work_outside_the_steps(before: float, after: float, state: str) -> None:
    """200 us of kernels in two steps from 1000 to 2100; what carries no step runs before or after them."""
    made = Scene().kernel(1000, 100, step=1).kernel(2000, 100, step=2)
    made.kernel(1500, 5, step=-1)  # between two steps, so within the first
    if before:
        made.kernel(100, before, step=-1).kernel(100, before / 2, stream=3, step=-1)
    if after:
        made.kernel(3000, after, step=-1)
    found = judge_rule("DQ015", made.store())
    assert found.state == state
    if (before, after) == (60, 40):
        seen = found.first.observation
        assert (seen["before_ns"], seen["after_ns"], seen["outside_ns"]) == (60_000, 40_000, 100_000)
        assert seen["outside_share"] == pytest.approx(100 / 305) and seen["outside_tasks"] == 3
        evidence = found.evidence()
        assert [e.end_ns - e.start_ns for e in evidence[:2]] == [60_000, 40_000]
        assert [made.rows["kernels"][row]["duration_us"] for row in evidence[2].rows] == [60, 40, 30]


def test_work_outside_where_there_are_no_steps() -> None:
    assert judge_rule("DQ015", Scene().kernel(0, 100, step=-1).store()).state == "not_applicable"
    assert judge_rule("DQ015", Scene().kernel(0, 100, step=1).store()).state == "pass"
    assert judge_rule("DQ015", scene().store("kernels", "device_tasks")).state == "cannot_answer"


SET = ROOT / "rulesets" / "ascend"
RULES: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted((SET / "capture").glob("*.yaml"))
}
CHINESE: list[dict[str, Any]] = [
    yaml.safe_load((SET / "zh" / "capture" / f"{rule}.yaml").read_text(encoding="utf-8")) for rule in RULES
]


def texts(part: object) -> Iterator[str]:
    """All texts in a part of a rule, in both languages."""
    if isinstance(part, dict):
        for value in part.values():
            yield from texts(value)
    elif isinstance(part, list):
        for value in part:
            yield from texts(value)
    elif isinstance(part, str):
        yield part


def advised(rule: str) -> str:
    """The first advice, which holds everywhere."""
    first: str = RULES[rule]["advice"][0]["text"]
    return first


def python_calls(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The calls in code font: name to keyword to source."""
    for code in re.findall(r"`([^`]+)`", text):
        try:
            tree = ast.parse(code)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func), {word.arg or "": ast.unparse(word.value) for word in node.keywords}


def test_calls_fit_the_profiler() -> None:
    """`wait` and `active` have no default; one recording is wanted."""
    found = [call for rule in (*RULES.values(), *CHINESE) for text in texts(rule) for call in python_calls(text)]
    schedules = [words for name, words in found if name.endswith("schedule")]
    assert len(schedules) >= 8
    for words in schedules:
        assert {"wait", "warmup", "active", "repeat"} <= words.keys()
        assert words["repeat"] == "1"


def test_the_first_advice_holds_for_every_job_and_is_safe() -> None:
    """It names no call of one framework; DQ001 begins otherwise where level 1 was recorded already."""
    for rule in RULES.values():
        first = rule["advice"][0]
        assert not {"unless", "holds_for", "hazards"} & first.keys(), rule["id"]
        assert "when" not in first or rule["id"] == "DQ001", rule["id"]
        assert "torch_npu" not in first["text"] and "prof.step" not in first["text"], rule["id"]


def test_advice_without_effect_is_not_given() -> None:
    """torch_npu waits for the device when it stops, and network time does not steer the clock that is compared."""
    assert "synchronize" not in advised("DQ009") and "disk" in advised("DQ009")
    assert "ntpd" not in advised("DQ010") and "keep it short" in advised("DQ010")


def test_a_running_job_can_be_recorded() -> None:
    (later,) = RULES["DQ004"]["advice"][2:]
    assert "`dynamic_profile`" in later["text"] and "`advisor collect --for torch_npu`" in later["text"]
    assert "No other profiler" in later["risk"] and later["holds_for"]["framework"] == ["pytorch"]


def test_how_a_tool_is_told_is_printed_and_not_repeated() -> None:
    """The keys of verl and vLLM stand in the templates of ``advisor collect`` alone, where they are tested."""
    for rule in ("DQ001", "DQ005", "DQ012", "DQ014"):
        said = [advice["text"] for advice in RULES[rule]["advice"]]
        assert any("`advisor collect`" in text for text in said), rule
        assert not any("tool_config" in text for text in said), rule


def test_nothing_internal_is_named() -> None:
    for rule in RULES.values():
        for text in texts(rule):
            assert not re.search(r"\bseed \d|\bfacts? [A-Z]\d", text), text
