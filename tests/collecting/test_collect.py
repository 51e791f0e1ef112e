"""`advisor collect`: the configuration asks for what was missing, is valid in its language, and says what it costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from advisor_core.advisor import Advisor, Scope
from advisor_core.collecting.options import TOOLS, Tool, known_options
from advisor_core.collecting.plan import plan
from advisor_core.collecting.render import render
from advisor_core.engine import run
from advisor_core.facts.spec import Unavailable
from advisor_core.facts.store import FactStore
from advisor_core.judging import _settled
from advisor_core.models.base import Text
from advisor_core.models.run import (
    Environment,
    Input,
    InputFile,
    Profile,
    RuleOutcome,
    RunResult,
    StageTime,
    State,
    StepInfo,
)
from advisor_core.models.run import (
    Tool as Program,
)
from advisor_core.rank_run import RunOptions, prepared
from advisor_core.rules.judge import Verdict
from advisor_core.sample import write_sample

ROOT = Path(__file__).parent.parent.parent
OPTIONS = known_options().options

# as the guides of the profilers spell them
NAMES: dict[Tool, set[str]] = {
    "verl": {
        "global_profiler.tool",
        "global_profiler.steps",
        "global_profiler.save_path",
        *(f"actor_rollout_ref.{role}.profiler.{name}" for role in ("actor", "rollout", "ref") for name in ("enable",)),
        *(f"actor_rollout_ref.{role}.profiler.{name}" for role in ("actor", "rollout", "ref") for name in ("ranks",)),
        *(f"actor_rollout_ref.{role}.profiler.all_ranks" for role in ("actor", "rollout", "ref")),
        *(
            f"actor_rollout_ref.actor.profiler.tool_config.npu.{n}"
            for n in ("level", "contents", "discrete", "analysis")
        ),
    },
    "mindie": {"ATB_PROFILING_ENABLE", "PROFILING_LEVEL", "WITH_STACK_ENABLE", "PROFILING_FILEPATH"},
    "msprof": {
        "--output",
        "--task-time",
        "--ascendcl",
        "--ai-core",
        "--aic-mode",
        "--aic-metrics",
        "--sys-hardware-mem",
    },
}
CALLS = {
    "_ExperimentalConfig": {"profiler_level", "aic_metrics", "gc_detect_threshold"},
    "profile": {
        "activities",
        "schedule",
        "on_trace_ready",
        "record_shapes",
        "profile_memory",
        "with_stack",
        "with_modules",
        "experimental_config",
    },
    "schedule": {"wait", "warmup", "active", "repeat", "skip_first"},
    "tensorboard_trace_handler": set(),
}


def outcome(rule: str, *options: str, state: State = "cannot_answer") -> RuleOutcome:
    reason = Text(en=f"{rule} lacks\nsomething", zh="缺少")
    title = Text(en="x", zh="x")
    return RuleOutcome(rule=rule, name="x", title=title, state=state, reason=reason, options=list(options))


def result(
    *rules: RuleOutcome,
    level: str = "level1",
    ranks: tuple[int, ...] = (0,),
    steps: int = 3,
    world_size: int | None = None,
    kind: str = "training",
    size: int = 1_000_000,
    profiler: dict[str, Any] | None = None,
) -> RunResult:
    """A profile with ``size`` bytes per rank and steps of 0.1 s."""
    return RunResult(
        tool=Program(name="npu-advisor", version="0"),
        inputs=[
            Input(
                path=".",
                kind="x",
                rank=rank,
                level=level,
                framework=None,
                sha256="",
                files=[InputFile(name="a", bytes=size, sha256="")],
            )
            for rank in ranks
        ],
        environment=Environment(profiler=profiler or {}),
        profile=Profile(
            kind=kind,
            ranks=list(ranks),
            world_size=world_size,
            steps=[
                StepInfo(rank=rank, step=step, start_ns=step * 10**8, end_ns=(step + 1) * 10**8)
                for rank in ranks
                for step in range(steps)
            ],
        ),
        ledger=[],
        findings=[],
        rules=list(rules),
        views=[],
        diagnostics=[],
    )


def code(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def calls(tool: Tool, given: RunResult | None = None) -> dict[str, dict[str, str]]:
    """The calls of torch_npu.profiler in the configuration: name to keyword to source."""
    found = {}
    for node in ast.walk(ast.parse(render(plan(tool, given), "en"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            where = ast.unparse(node.func)
            if where.startswith("torch_npu.profiler."):
                found[node.func.attr] = {word.arg or "": ast.unparse(word.value) for word in node.keywords}
    return found


@pytest.mark.parametrize("tool", ["torch_npu", "vllm"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("world", [None, 8])
def test_python_compiles(tool: Tool, lang: str, world: int | None) -> None:
    ast.parse(render(plan(tool, result(outcome("AB001", "level1"), world_size=world)), lang))
    found = calls(tool)
    assert found.keys() == CALLS.keys()
    for name, words in found.items():
        assert words.keys() <= CALLS[name], name


@pytest.mark.parametrize("tool", ["verl", "mindie", "msprof"])
@pytest.mark.parametrize("world", [None, 8])
def test_shell_uses_known_names(tool: Tool, world: int | None) -> None:
    text = render(plan(tool, result(world_size=world)), "en")
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    used = set(re.findall(r"([\w.-]+)=", code(text)))
    assert used <= NAMES[tool]
    assert len(used) > 3


@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_is_set_as_its_comment_says(tool: Tool) -> None:
    """What the comments call a setting is in the code, wherever its value is not an ellipsis."""
    given = result(outcome("AB001", *OPTIONS), world_size=None)
    chosen = plan(tool, given)
    text = code(render(chosen, "en"))
    for choice in chosen.choices:
        setting = choice.option.settings[tool].replace("=...", "=")
        for word in re.findall(r"[\w.-]+", setting):
            assert word in text, f"{choice.id}: {setting}"


def test_a_rule_brings_its_option_and_is_named() -> None:
    assert calls("torch_npu")["profile"]["profile_memory"] == "False"
    given = result(outcome("AB001", "memory"), outcome("AB002", "memory", state="pass"))
    assert calls("torch_npu", given)["profile"]["profile_memory"] == "True"
    chosen = plan("torch_npu", given)
    assert chosen.answered() == ("AB001",)
    assert "AB001" in render(chosen, "en")
    assert "AB002" not in render(chosen, "en")


def test_what_the_tool_cannot_record_is_said() -> None:
    chosen = plan("msprof", result(outcome("AB001", "gc")))
    assert [choice.id for choice in chosen.beyond if choice.rules] == ["gc"]
    assert chosen.answered() == ()
    assert "AB001" in render(chosen, "en")


def test_what_no_option_answers_is_said_on_one_line() -> None:
    text = render(plan("torch_npu", result(outcome("AB001"))), "en")
    assert "AB001 needs something else than an option: AB001 lacks something" in text
    ast.parse(text)


def test_unknown_option_of_a_plugin_is_not_dropped() -> None:
    assert plan("torch_npu", result(outcome("AB001", "of_a_plugin"))).open[0][0] == "AB001"


def test_missing_ranks_ask_for_all_ranks() -> None:
    assert plan("torch_npu", result(world_size=8)).ranks is None
    assert "PROFILED_RANKS = None\n" in render(plan("torch_npu", result(world_size=8)), "en")
    assert "PROFILED_RANKS = {0, 3}\n" in render(plan("torch_npu", result(ranks=(0, 3), world_size=2)), "en")
    assert plan("torch_npu", result(ranks=(0, 3), world_size=2)).ranks == (0, 3)
    assert "all_ranks=True" in render(plan("verl", result(world_size=8)), "en")


def test_decode_records_a_window() -> None:
    """As seed articles teach: decode steps 30 to 60."""
    assert calls("torch_npu", result(kind="decode"))["schedule"] | {"repeat": "1"} == {
        "skip_first": "0",
        "wait": "29",
        "warmup": "1",
        "active": "30",
        "repeat": "1",
    }
    assert calls("vllm")["schedule"]["active"] == "30"
    assert calls("torch_npu")["schedule"]["active"] == "3"


def test_estimate_follows_steps_ranks_and_level() -> None:
    """3 MB over 3 steps is 1 MB per step and rank."""
    one = plan("torch_npu", result(size=3_000_000)).estimate
    assert one is not None
    assert (one.measured, one.bytes, one.seconds) == (1_000_000, 3_000_000, pytest.approx(0.3))
    eight = plan("torch_npu", result(size=3_000_000, world_size=8)).estimate
    assert eight is not None and eight.bytes == 8 * one.bytes
    low = plan("torch_npu", result(size=3_000_000, level="level0")).estimate
    assert low is not None and low.growth is not None and low.bytes == round(one.bytes * low.growth) > one.bytes
    unknown = plan("torch_npu", result(size=3_000_000, level="level2"))
    assert unknown.estimate is not None and unknown.estimate.growth is None
    assert "not known and not counted in" in " ".join(render(unknown, "en").replace("#", "").split())


def test_stretching_options_are_named() -> None:
    assert plan("torch_npu", result(profiler={"with_stack": True, "with_modules": False})).stretched == ("with_stack",)


def test_options_that_code_names_exist() -> None:
    named = set()
    for path in (*ROOT.glob("advisors/*.py"), *ROOT.glob("advisor_core/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Unavailable":
                named |= {option for given in node.args[2:] for option in _texts(given)}
    assert {"gc", "level1"} <= named <= OPTIONS.keys()


def _texts(node: ast.expr) -> set[str]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}


def test_options_of_loaders_exist() -> None:
    from advisor_core.loaders import ascend_db, ascend_files, export

    named = {option for options in export._OPTIONS.values() for option in options}
    assert named <= OPTIONS.keys()
    asked = {table.collect for table in ascend_db.TABLES} | {file.collect for file in ascend_files.DELIVERABLES}
    assert asked <= export._OPTIONS.keys()


@pytest.fixture(scope="module")
def level0(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    directory = tmp_path_factory.mktemp("level0")
    write_sample(directory, scenario="transformer-training", level="level0")
    return run([directory], RunOptions(), jobs=1)


def test_rules_that_level0_leaves_open_are_answered_by_the_configuration(level0: RunResult, tmp_path: Path) -> None:
    """What the plan promises holds: taken with its options, none of these rules lacks them."""
    promised = {rule for c in plan("torch_npu", level0).choices if c.id in ("level1", "pipes") for rule in c.rules}
    assert {"PB001", "HD005", "SA001"} <= promised
    write_sample(tmp_path, scenario="transformer-training", level="level1")
    again = {o.rule: o for o in run([tmp_path], RunOptions(), jobs=1).rules}
    assert [rule for rule in sorted(promised) if {"level1", "pipes"} & set(again[rule].options)] == []


def test_command(level0: RunResult, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(level0.model_dump_json(), encoding="utf-8")

    def collect(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "advisor_core.cli", "collect", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = collect(file, "--lang", "zh")
    assert done.returncode == 0, done.stderr
    ast.parse(done.stdout)
    assert "规则" in done.stdout
    broken = tmp_path / "broken.json"
    broken.write_text("{}", encoding="utf-8")
    assert collect(broken).returncode == 3
    assert collect("--for", "nothing").returncode == 2


def test_command_knows_every_tool() -> None:
    from advisor_core.cli import collect

    (option,) = (o for o in collect.params if o.name == "tool")
    assert tuple(option.type.choices) == TOOLS  # type: ignore[attr-defined]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["html", "md"])
def test_report_leads_to_the_command(lang: str, name: str) -> None:
    renderer = prepared(RunOptions())[0].renderers[name]
    command = "advisor collect report.json"
    assert command in renderer.render(result(outcome("AB001", "gc")), lang)
    assert command not in renderer.render(result(outcome("AB001", state="pass")), lang)


def test_a_rule_that_lacks_a_wanted_fact_asks_for_it() -> None:
    """The advisor ran without the fact that it wanted; that a value is not known is due to that."""
    collect = Text(en="profile with it", zh="打开采集")
    nothing = Unavailable(Text(en="gone", zh="没有"), collect, ("gc",))
    store = FactStore({}, {"there": 1}, {"gone": nothing})
    asking = Advisor("a.b", "", Scope.RANK, (), ("there", "gone"), (), (), (), lambda facts, params: None)  # type: ignore
    unknown = Verdict("cannot_answer", unknown_columns=("x",), reason=Text(en="x is unknown", zh="x 未知"))
    state = _settled(unknown, asking, store)
    assert (state.options, state.collect, state.reason) == (("gc",), collect, unknown.reason)
    assert _settled(Verdict("pass"), asking, store).options == ()


def test_result_of_an_earlier_version_is_read() -> None:
    """A report.json without the options of its rules."""
    old = result(outcome("AB001")).model_dump(mode="json")
    for rule in old["rules"]:
        del rule["options"]
    assert plan("torch_npu", RunResult.model_validate(old)).open[0][0] == "AB001"


def enabled(text: str) -> dict[str, bool]:
    return {role: f"actor_rollout_ref.{role}.profiler.enable=True" in text for role in ("actor", "rollout", "ref")}


def with_stages(*kinds: str, roles: bool) -> RunResult:
    found = result()
    stages = [
        StageTime(rank=0, step=1, stage=kind, kind=kind, wall_ns=1, spans=1, entries={"idle/unknown": 1})
        for kind in kinds
    ]
    profile = found.profile.model_copy(update={"stages": dict.fromkeys(kinds, "training") if roles else {}})
    return found.model_copy(update={"stages": stages, "profile": profile})


def test_verl_records_the_roles_whose_stages_were_there() -> None:
    seen = render(plan("verl", with_stages("rollout", "update_actor", roles=True)), "en")
    assert enabled(seen) == {"actor": True, "rollout": True, "ref": False}
    assert "npu.discrete=True" in seen
    seen = render(plan("verl", with_stages("ref_log_prob", "rollout", "log_prob", roles=False)), "en")
    assert enabled(seen) == {"actor": True, "rollout": True, "ref": True}
    assert "npu.discrete=False" in seen  # as it was: in one profile
    assert enabled(render(plan("verl"), "en")) == {"actor": True, "rollout": False, "ref": True}
    assert enabled(render(plan("verl", result(kind="decode")), "en")) == {
        "actor": False,
        "rollout": True,
        "ref": False,
    }


def test_a_rule_that_several_stages_lack_is_told_once() -> None:
    found = result(outcome("AB001", "host"), outcome("AB001", "host"), outcome("CD001"), outcome("CD001"))
    chosen = plan("verl", found)
    assert [choice.rules for choice in chosen.choices if choice.id == "host"] == [("AB001",)]
    assert [rule for rule, _ in chosen.open] == ["CD001"]
