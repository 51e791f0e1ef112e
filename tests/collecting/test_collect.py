"""`advisor collect`: the configuration asks for what was missing, is valid in its language, and says what it costs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from advisor_core.cli.main import cli
from advisor_core.collecting import TOOLS
from advisor_core.collecting import plan as planning
from advisor_core.collecting.render import render
from advisor_core.collecting.tool import tools
from advisor_core.contracts.advisor import Advisor, Scope
from advisor_core.contracts.keys import Answers, Key
from advisor_core.contracts.missing import Missing
from advisor_core.facts.store import FactStore
from advisor_core.plugins.host import load_host
from advisor_core.result.finding import Advice, Evidence, Finding, Impact
from advisor_core.result.run import (
    Environment,
    Input,
    InputFile,
    LedgerStep,
    PhaseTime,
    Profile,
    RuleOutcome,
    RunResult,
    State,
    StepInfo,
)
from advisor_core.result.run import Tool as Program
from advisor_core.rules.judge import Verdict
from advisor_core.run.prepared import installed_host
from advisor_core.run.run_rules import _settled
from advisor_core.text.base import Text
from tests.once import ResultOf

ROOT = Path(__file__).parent.parent.parent
OPTIONS = load_host().capture_options
IDS = {option.id for option in OPTIONS.values()}

ROLES = {
    "actor": "actor_rollout_ref.actor",
    "rollout": "actor_rollout_ref.rollout",
    "ref": "actor_rollout_ref.ref",
    "critic": "critic",
}

# as the guides of the profilers spell them; of verl, as the configuration files of verl 0.9.1 do
NAMES: dict[str, set[str]] = {
    "verl": {
        "global_profiler.tool",
        "global_profiler.steps",
        "global_profiler.save_path",
        *(f"{key}.profiler.{name}" for key in ROLES.values() for name in ("enable", "ranks", "all_ranks")),
        *(
            f"{key}.profiler.tool_config.npu.{name}"
            for key in ROLES.values()
            for name in ("level", "contents", "discrete", "analysis")
        ),
        *(f"{ROLES['rollout']}.profiler.tool_config.npu.profile_token_{end}" for end in ("start", "end")),
    },
    "mindie": {
        "SERVICE_PROF_CONFIG_PATH",
        "ATB_PROFILING_ENABLE",
        "PROFILING_LEVEL",
        "PROFILING_FILEPATH",
        "--export",
        "--output",
    },
    "msprof": {
        "--output",
        "--delay",
        "--duration",
        "--task-time",
        "--ascendcl",
        "--ai-core",
        "--aic-mode",
        "--aic-metrics",
        "--task-memory",
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
    "tensorboard_trace_handler": {"analyse_flag"},
}
PROFILER_CONFIG = {
    "activities",
    "prof_dir",
    "analyse",
    "record_shapes",
    "profile_memory",
    "with_stack",
    "with_flops",
    "with_modules",
    "active",
    "warmup",
    "start_step",
    "is_rank",
    "rank_list",
    "experimental_config",
}
"""The keys of ``profiler_config.json``, from the profiler guide."""
SERVICE_CONFIG = {"enable", "prof_dir", "acl_task_time", "acl_prof_task_time_level"}
"""Keys of ``ms_service_profiler_config.json``, from the guide of msServiceProfiler."""
VLLM_CONFIG = {
    "profiler",
    "torch_profiler_dir",
    "torch_profiler_with_stack",
    "torch_profiler_with_memory",
    "ignore_frontend",
    "delay_iterations",
    "max_iterations",
}
"""Fields of ``vllm.config.ProfilerConfig``."""
SHELL = tuple(name for name, tool in tools().items() if tool.language == "sh")


def plan(tool: str, given: RunResult | None = None) -> planning.Plan:
    return planning.plan(tool, OPTIONS, given)


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
    vendor: str = "",
) -> RunResult:
    """A profile with ``size`` bytes per rank and steps of 0.1 s."""
    return RunResult(
        tool=Program(name="npu-advisor", version="0"),
        inputs=[
            Input(
                path=".",
                kind="x",
                vendor=vendor,
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
        ledger=[LedgerStep(rank=rank, step=step, wall_ns=10**8, entries=[]) for rank in ranks for step in range(steps)],
        findings=[],
        rules=list(rules),
        views=[],
        diagnostics=[],
    )


def code(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def python_of(tool: str, text: str) -> str:
    """The Python of a configuration: all of it, or what a shell script writes into a file."""
    return text if tools()[tool].language == "py" else heredoc(text, "PYTHON")


def heredoc(text: str, name: str) -> str:
    (found,) = re.findall(rf"<<'{name}'\n(.*?)\n{name}$", text, re.DOTALL | re.MULTILINE)
    return str(found)


def profiler_config(text: str) -> dict[str, Any]:
    """What `--profiler-config` of vLLM is given."""
    (found,) = re.findall(r"--profiler-config '(.*?)'", text, re.DOTALL)
    loaded: dict[str, Any] = json.loads(found)
    return loaded


def dynamic(text: str) -> dict[str, Any]:
    """The contents of profiler_config.json, which stand in comments."""
    lines = text.splitlines()
    found = [line.removeprefix("#     ") for line in lines[lines.index("#     {") :]]
    loaded: dict[str, Any] = json.loads("\n".join(found))
    return loaded


def calls(tool: str, given: RunResult | None = None) -> dict[str, dict[str, str]]:
    """The calls of torch_npu.profiler in the configuration: name to keyword to source."""
    found = {}
    for node in ast.walk(ast.parse(python_of(tool, render(plan(tool, given), "en")))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            where = ast.unparse(node.func)
            if where.startswith("torch_npu.profiler."):
                found[node.func.attr] = {word.arg or "": ast.unparse(word.value) for word in node.keywords}
    return found


GIVEN = (
    None,
    result(outcome("AB001", "level1")),
    result(outcome("AB001", *IDS), world_size=8),
    result(ranks=(0, 3), kind="decode", profiler={"with_stack": True}),
)
"""Without a report; with few and with all options and ranks; of a decode."""


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("tool", ["torch_npu", "vllm"])
def test_python_compiles(tool: str, lang: str, given: RunResult | None) -> None:
    text = render(plan(tool, given), lang)
    compile(python_of(tool, text), tool, "exec")
    found = calls(tool, given)
    assert found.keys() == CALLS.keys()
    for name, words in found.items():
        assert words.keys() <= CALLS[name], name
    assert {"wait", "active"} <= found["schedule"].keys()  # without a default in torch_npu


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("tool", SHELL)
def test_shell_is_valid(tool: str, lang: str, given: RunResult | None) -> None:
    text = render(plan(tool, given), lang)
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("tool", ["verl", "mindie", "msprof"])
@pytest.mark.parametrize("world", [None, 8])
def test_shell_uses_known_names(tool: str, world: int | None) -> None:
    several = with_roles("rollout", "update_actor", "values", roles=True)
    for given in (result(outcome("AB001", "memory"), world_size=world), several):
        used = set(re.findall(r"^[^-\n{]*?([\w.-]+)=|(--[\w-]+)=", code(render(plan(tool, given), "en")), re.MULTILINE))
        names = {name for pair in used for name in pair if name}
        assert names <= NAMES[tool]
        assert len(names) > 3


@pytest.mark.parametrize("tool", ["torch_npu", "vllm"])
@pytest.mark.parametrize("given", GIVEN)
def test_nothing_is_parsed_while_the_job_runs(tool: str, given: RunResult | None) -> None:
    """Parsing in the process of the job stops it, and with it every rank that waits for it."""
    assert calls(tool, given)["tensorboard_trace_handler"]["analyse_flag"] == "False"
    text = render(plan(tool, given), "en")
    assert "from torch_npu.profiler.profiler import analyse" in text
    assert "20 times" in text
    if tool == "torch_npu":
        assert dynamic(text)["analyse"] is False


def test_verl_parses_nothing_while_the_job_runs() -> None:
    text = render(plan("verl", with_roles("rollout", "update_actor", "ref_log_prob", "values", roles=True)), "en")
    assert "analysis=True" not in text
    assert text.count("analysis=False") == 4
    assert "_ascend_pt' -prune" in text  # roles have directories of their own, and analyse() looks into one


def test_a_running_job_is_recorded_without_a_restart() -> None:
    config = dynamic(render(plan("torch_npu", result(outcome("AB001", "memory"), ranks=(0, 3))), "en"))
    assert config.keys() <= PROFILER_CONFIG
    assert (config["start_step"], config["warmup"], config["active"]) == (-1, 1, 3)
    assert (config["is_rank"], config["rank_list"], config["profile_memory"]) == (True, [0, 3], True)
    assert config["experimental_config"]["profiler_level"] == "Level1"
    everyone = dynamic(render(plan("torch_npu", result(world_size=8)), "zh"))
    assert (everyone["is_rank"], everyone["rank_list"]) == (False, [])


def test_vllm_is_recorded_by_its_own_profiler_first() -> None:
    text = render(plan("vllm"), "en")
    config = profiler_config(text)
    assert config.keys() <= VLLM_CONFIG
    assert (config["delay_iterations"], config["max_iterations"]) == (30, 30)
    assert config["torch_profiler_with_stack"] is False
    assert text.index("/start_profile\n") < text.index("/stop_profile\n") < text.index("npu_worker_window.py")
    assert profiler_config(render(plan("vllm", result(outcome("AB001", "memory"))), "en"))["torch_profiler_with_memory"]


def test_mindie_tells_the_service_from_the_model_alone() -> None:
    text = render(plan("mindie"), "en")
    config = json.loads(heredoc(text, "JSON"))
    assert config.keys() <= SERVICE_CONFIG
    assert (config["enable"], config["acl_task_time"]) == (0, 1)
    assert text.index("SERVICE_PROF_CONFIG_PATH=") < text.index("ATB_PROFILING_ENABLE=1\nexport")
    assert '"enable": 0/"enable": 1' in text and '"enable": 0,' in heredoc(text, "JSON")
    assert "WITH_STACK_ENABLE" not in text  # in no source of MindIE


def test_memory_of_msprof_is_that_of_the_graph_engine() -> None:
    text = render(plan("msprof", result(outcome("AB001", "memory"))), "en")
    assert "--task-memory=on" in code(text)
    assert "sys-hardware-mem" not in text
    assert "graph engine (GE) only" in " ".join(text.replace("#", "").split())


def test_msprof_records_seconds() -> None:
    chosen = plan("msprof", result(size=3_000_000))  # steps of 0.1 s
    assert (chosen.seconds.duration, chosen.steps) == (10, 100)
    assert chosen.estimate is not None and chosen.estimate.seconds == pytest.approx(10)
    assert "--delay=60 --duration=10" in render(chosen, "en")
    assert plan("msprof").steps == 1


@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_is_set_as_its_comment_says(tool: str) -> None:
    """What the comments call a setting is in the code, wherever its value is not an ellipsis."""
    given = result(outcome("AB001", *IDS), world_size=None)
    chosen = plan(tool, given)
    text = code(render(chosen, "en"))
    for choice in chosen.choices:
        setting = choice.option.settings[tool].replace("=...", "=")
        for word in re.findall(r"[\w.-]+", re.sub(r"\b[AB]: ", "", setting)):
            assert word in text, f"{choice.id}: {setting}"


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_comments_fit_the_terminal(tool: str, lang: str) -> None:
    """In columns: a Chinese character takes two. Only what cannot be broken is longer."""
    for line in render(plan(tool, result(outcome("AB001", *IDS))), lang).splitlines():
        if line.startswith("# ") and "python3 -c" not in line:
            assert sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) <= 114, line
            assert not re.match(r"#\s+[，。；：、）]", line)


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


def test_what_the_configuration_needs_is_not_called_a_mistake() -> None:
    given = result(profiler={"with_stack": True, "record_shapes": True}, vendor="gpu")
    assert plan("torch", given).stretched == ("with_stack",)
    assert plan("torch_npu", given).stretched == ("with_stack", "record_shapes")


def test_a_gpu_is_recorded_by_the_profiler_of_pytorch() -> None:
    """By default with the profiler of the recorded devices, and by no other."""
    tools = {vendor: planning.default_tool(OPTIONS.values(), result(vendor=vendor)) for vendor in ("gpu", "ascend", "")}
    assert tools == {"gpu": "torch", "ascend": "torch_npu", "": "torch_npu"}
    assert planning.records("torch", OPTIONS.values()) == planning.records("vllm_gpu", OPTIONS.values()) == {"gpu"}
    for lang in ("en", "zh"):
        text = render(plan("torch", result(outcome("AB001", *IDS), vendor="gpu")), lang)
        assert not re.search(r"\bnpu|torch_npu|ascend|\bcann\b|昇腾", text, re.IGNORECASE)
        assert "record_shapes=True" in code(text) and "profile_memory=True" in code(text)


def test_a_recording_of_mindspore_is_taken_again_by_its_profiler() -> None:
    given = result(outcome("AB001", "memory"))
    given = given.model_copy(
        update={"inputs": [source.model_copy(update={"framework": "mindspore"}) for source in given.inputs]}
    )
    assert planning.default_tool(OPTIONS.values(), given) == "mindspore"
    text = render(plan("mindspore", given), "en")
    assert "profile_memory=True" in text and "analyse_flag=False" in text
    ast.parse(text)


def test_a_service_of_vllm_on_gpus_records_a_window_of_its_load() -> None:
    config = profiler_config(render(plan("vllm_gpu", result(outcome("AB001", "memory"), vendor="gpu")), "en"))
    assert config["torch_profiler_with_memory"] and config["torch_profiler_record_shapes"]
    assert (config["torch_profiler_with_stack"], config["delay_iterations"], config["max_iterations"]) == (
        False,
        30,
        30,
    )


def test_a_profiler_of_other_devices_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(result(vendor="gpu").model_dump_json())
    refused, printed = (
        CliRunner().invoke(cli, ["collect", str(file), *arguments]) for arguments in (("--for", "msprof"), ())
    )
    assert refused.exit_code == 2 and "msprof does not record the devices of this result (gpu)" in refused.stderr
    assert printed.exit_code == 0 and "torch.profiler.profile(" in printed.stdout


def test_options_that_code_names_exist() -> None:
    named = set()
    for path in (*ROOT.glob("advisors/**/*.py"), *ROOT.glob("advisor_core/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Missing", "Unavailable"}:
                named |= {option for given in node.args[2:] for option in _texts(given)}
    assert {"gc", "level1"} <= named <= IDS


def _texts(node: ast.expr) -> set[str]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}


def test_options_of_loaders_exist() -> None:
    from advisor_core.loaders import export
    from advisor_core.loaders.ascend_pytorch import files as ascend_files
    from advisor_core.loaders.ascend_pytorch.db import loader as ascend_db

    named = {option for options in export._OPTIONS.values() for option in options}
    assert named <= IDS
    asked = {table.collect for table in ascend_db.TABLES} | {file.collect for file in ascend_files.DELIVERABLES}
    assert asked <= export._OPTIONS.keys()


@pytest.fixture(scope="module")
def level0(result_of: ResultOf, shared_sample: Callable[..., Path]) -> RunResult:
    return result_of(shared_sample(level="level0"))


def test_rules_that_level0_leaves_open_are_answered_by_the_configuration(
    result_of: ResultOf, level0: RunResult, advisor_sample: Path
) -> None:
    """What the plan promises holds: taken with its options, none of these rules lacks them."""
    promised = {rule for c in plan("torch_npu", level0).choices if c.id in ("level1", "pipes") for rule in c.rules}
    assert {"PB001", "HD005", "SA001"} <= promised
    again = {o.rule: o for o in result_of(advisor_sample).rules}
    assert [rule for rule in sorted(promised) if {"level1", "pipes"} & set(again[rule].options)] == []


def test_command(level0: RunResult, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(level0.model_dump_json(), encoding="utf-8")

    def collect(*arguments: object) -> Result:
        return CliRunner().invoke(cli, ["collect", *map(str, arguments)])

    done = collect(file, "--lang", "zh")
    assert done.exit_code == 0, done.stderr
    ast.parse(done.stdout)
    assert "规则" in done.stdout
    broken = tmp_path / "broken.json"
    broken.write_text("{}", encoding="utf-8")
    assert collect(broken).exit_code == 3
    assert collect("--for", "nothing").exit_code == 2


def test_command_knows_every_tool() -> None:
    from advisor_core.cli.collect import collect

    (option,) = (o for o in collect.params if o.name == "tool")
    assert tuple(option.type.choices) == TOOLS  # type: ignore[attr-defined]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["html", "md"])
def test_report_leads_to_the_command(lang: str, name: str) -> None:
    renderer = installed_host().renderers[name]
    command = "advisor collect report.json"
    assert command in renderer.render(result(outcome("AB001", "gc")), lang)
    assert command not in renderer.render(result(outcome("AB001", state="pass")), lang)


def test_a_rule_that_lacks_a_wanted_fact_asks_for_it() -> None:
    """The advisor ran without the fact that it wanted; that a value is not known is due to that."""
    collect = Text(en="profile with it", zh="打开采集")
    there, gone = Key[int]("there", ""), Key[int]("gone", "")
    given = Answers()
    given.put(there, 1)
    given.put(gone, Missing(Text(en="gone", zh="没有"), collect, ("gc",)))
    store = FactStore({}, given)
    asking = Advisor("a.b", "", Scope.RANK, (), (there, gone), (), (), (), lambda facts, params: None)  # type: ignore
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


def with_roles(*kinds: str, roles: bool) -> RunResult:
    found = result()
    phases = [
        PhaseTime(rank=0, step=1, phase=kind, kind=kind, wall_ns=1, spans=1, entries={"idle/unknown": 1})
        for kind in kinds
    ]
    profile = found.profile.model_copy(update={"roles": dict.fromkeys(kinds, "training") if roles else {}})
    return found.model_copy(update={"phases": phases, "profile": profile})


def test_verl_records_the_roles_whose_phases_were_there() -> None:
    seen = render(plan("verl", with_roles("rollout", "update_actor", roles=True)), "en")
    assert enabled(seen) == {"actor": True, "rollout": True, "ref": False}
    assert "npu.discrete=True" in seen
    seen = render(plan("verl", with_roles("ref_log_prob", "rollout", "log_prob", roles=False)), "en")
    assert enabled(seen) == {"actor": True, "rollout": True, "ref": True}
    assert seen.count("npu.discrete=False") == 2  # as it was: in one profile
    assert "rollout.profiler.tool_config.npu.discrete=True" in seen  # the engine records in no other way
    assert enabled(render(plan("verl"), "en")) == {"actor": True, "rollout": False, "ref": True}
    assert enabled(render(plan("verl", result(kind="decode")), "en")) == {
        "actor": False,
        "rollout": True,
        "ref": False,
    }


def test_every_role_of_verl_is_told_what_to_record() -> None:
    """Only the rollout follows the actor; of the others the defaults are level 0 and no device."""
    seen = render(plan("verl", with_roles("rollout", "update_actor", "ref_log_prob", "values", roles=True)), "en")
    for key in ROLES.values():
        assert f"{key}.profiler.tool_config.npu.level=level1" in seen
        assert f"{key}.profiler.tool_config.npu.contents=\"['npu','cpu']\"" in seen
    assert "critic." not in code(render(plan("verl"), "en"))


def test_verl_records_a_window_of_a_rollout() -> None:
    seen = render(plan("verl", with_roles("rollout", roles=True)), "en")
    window = "actor_rollout_ref.rollout.profiler.tool_config.npu.profile_token"
    assert f"{window}_start=30 " in seen and f"{window}_end=60 " in seen
    assert "leave them out" in " ".join(seen.replace("#", "").split())  # verl that does not know them does not start
    left_out = " ".join(render(plan("verl"), "en").replace("#", "").split())
    assert "profile_token_start=30 and profile_token_end=60" in left_out


def test_a_rule_that_several_roles_lack_is_told_once() -> None:
    found = result(outcome("AB001", "host"), outcome("AB001", "host"), outcome("CD001"), outcome("CD001"))
    chosen = plan("verl", found)
    assert [choice.rules for choice in chosen.choices if choice.id == "host"] == [("AB001",)]
    assert [rule for rule, _ in chosen.open] == ["CD001"]


def test_missing_ranks_that_only_groups_tell_are_asked_for() -> None:
    text = Text(en="x", zh="x")
    missing = Finding(
        rule="AB001",
        name="x",
        fingerprint="AB001",
        title=text,
        why=text,
        verify=text,
        severity="low",
        confidence="high",
        rank=None,
        ranks=[0],
        step=None,
        subject={},
        impact=Impact(ns_per_step=0, gross_ns_per_step=0, share_of_step=0, basis="exact"),
        observation={"profiled": 1, "expected": 4, "missing": 3},
        units={},
        condition="missing > 0",
        evidence=[Evidence.model_validate({"kind": "metric", "title": text, "rank": None})],
        advice=[Advice(kind="collect", text=text)],
    )
    given = result(world_size=None).model_copy(update={"findings": [missing]})
    asked = plan("torch", given)
    assert asked.has("all_ranks") and "PROFILED_RANKS = None\n" in render(asked, "en")
    assert asked.estimate is not None and asked.estimate.ranks == 4
    assert plan("torch", result(world_size=None)).ranks == (0,)
