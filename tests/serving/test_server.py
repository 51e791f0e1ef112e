"""A client of the official SDK talks to ``advisor mcp`` over stdio, and gets what the commands write."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from advisor_core.cli.main import cli
from advisor_core.result.result_file import read_result
from advisor_core.sample import job_from, write_sample
from advisor_core.serving.answers import OVERVIEW

mcp = pytest.importorskip("mcp", reason="the package mcp is not installed: pip install 'npu-advisor[mcp]'")
anyio = pytest.importorskip("anyio")

JOB = """
name: small
like: healthy-compact
training: {steps: 2, micro_batches: 2, model: {layers: 2}}
layout: {ranks: 2}
causes: [unfused-swiglu]
"""
SETTINGS = 'select = ["CO001", "CO006", "DQ002", "HD001", "NS011"]\n'
"""Rules that find something in it, and one that does not; what is served of their results is the same for all."""
T = TypeVar("T")
TOOLS = {"run", "findings", "explain", "what_if", "compare", "collect"}


def advisor(*arguments: str | Path) -> str:
    found = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def settings(root: Path) -> tuple[str | Path, ...]:
    return ("--config", root / "advisor.toml")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``profile``, the ``report.json`` of it, ``later.json``, the same again, ``kept.yaml``, a baseline, and
    ``advisor.toml``, the settings of all."""
    root = tmp_path_factory.mktemp("root")
    (root / "advisor.toml").write_text(SETTINGS, encoding="utf-8")
    (root / "job.yaml").write_text(JOB, encoding="utf-8")
    write_sample(root / "profile", scenario=job_from(root / "job.yaml"))
    advisor("run", root / "profile", "-o", root, "--format", "json", "-q", *settings(root))
    shutil.copy(root / "report.json", root / "later.json")
    advisor("baseline", "write", root / "report.json", root / "kept.yaml")
    return root


def talk(root: Path, talked: Callable[[Any], Awaitable[T]], *options: str) -> T:
    """What ``talked`` gives with a client of a server of its own."""
    command = ["-m", "advisor_core", "mcp", "--root", str(root), *map(str, settings(root)), *options]
    server = mcp.StdioServerParameters(command=sys.executable, args=command, cwd=str(root))

    async def connected() -> T:
        async with mcp.Client(mcp.stdio_client(server)) as client:
            return await talked(client)

    found: T = anyio.run(connected)
    return found


def test_the_tools_give_what_the_commands_write(root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}

    async def talked(client: Any) -> dict[str, Any]:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        assert all(tool.annotations.read_only_hint and tool.description for tool in tools)

        async def call(name: str, **arguments: Any) -> Any:
            answer = await client.call_tool(name, arguments)
            assert not answer.is_error, answer.content
            (said,) = answer.content
            told = answer.structured_content
            if set(told) == {"result"}:  # a text
                assert said.text == told["result"]
                return said.text
            assert json.loads(said.text) == told
            return told

        lines = []

        async def progress(count: float, total: float | None, message: str | None) -> None:
            lines.append(message)

        overview = await client.call_tool("run", {"path": "profile"}, progress_callback=progress)
        assert lines and "rank 0" in lines[0]
        return {
            "overview": overview.structured_content,
            "rules": await call("run", path="report.json", parts=["rules", "ledger"]),
            "findings": await call("findings", path="profile", first=2),
            "one": await call("findings", path="report.json", what="f1"),
            "explain": await call("explain", path="profile", what="F1", lang="zh"),
            "what_if": await call("what_if", path="profile", scale={"matmul": 0.5}, without=["F1"]),
            "compare": await call("compare", before="report.json", after=["later.json"]),
            "against": await call("compare", before="kept.yaml", after=["report.json"]),
            "collect": await call("collect", path="profile", tool="verl"),
            "default": await call("collect"),
        }

    told = talk(root, talked, "--jobs", "2")  # a further process has the same stdin and stdout
    report = json.loads((root / "report.json").read_text(encoding="utf-8"))
    assert told["overview"]["report"] == {part: report[part] for part in OVERVIEW}
    assert sorted([*told["overview"]["report"], *told["overview"]["other_parts"]]) == sorted(report)
    assert told["rules"]["report"] == {"rules": report["rules"], "ledger": report["ledger"]}
    own = {finding["fingerprint"]: finding for finding in report["findings"]}
    assert told["findings"]["total"] == len(report["problems"]) and len(told["findings"]["problems"]) == 2
    assert told["findings"]["problems"] == report["problems"][:2]
    for answer in (told["findings"], told["one"]):
        shown = [name for problem in answer["problems"] for name in problem["findings"]]
        assert answer["findings"] == [own[name] for name in shown]
    assert [problem["number"] for problem in told["one"]["problems"]] == ["F1"]
    same = settings(root)
    quiet = (*same, "-q")
    assert told["explain"] + "\n" == advisor("explain", root / "report.json", "F1", "--lang", "zh", *same)
    asked = ("--scale", "matmul=0.5", "--without", "F1", "--format", "json", *quiet)
    assert told["what_if"] == json.loads(advisor("what-if", root / "profile", *asked))
    pair = (root / "report.json", root / "later.json")
    assert told["compare"] == json.loads(advisor("compare", *pair, "-o", "-", "--format", "json", *quiet))
    (against,) = told["against"]["comparisons"]
    assert against["obstacles"][0]["about"] == "baseline" and against["verdict"]["difference_ns"] == 0
    collected = advisor("collect", root / "report.json", "--for", "verl", *same)
    assert told["collect"].rstrip() == collected.rstrip()
    assert told["default"].rstrip() == advisor("collect", *same).rstrip()
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before, "nothing is written"


def test_what_cannot_be_answered_is_told(root: Path) -> None:
    asked: list[tuple[str, dict[str, Any], str]] = [
        ("run", {"path": "../elsewhere"}, "outside of"),
        ("run", {"path": str(root.parent)}, "outside of"),
        ("run", {"path": "missing"}, "no such file"),
        ("run", {"path": "profile", "rank": 77}, "rank 77 is not in the profile"),
        ("run", {"path": "profile", "step": 77}, "77"),
        ("run", {"path": "profile", "roles": ["actor"]}, "there is no role 'actor'"),
        ("run", {"path": "report.json", "parts": ["all"]}, "no part 'all'"),
        ("findings", {"path": "report.json", "what": "F99"}, "'F99' is no problem"),
        ("explain", {"path": "report.json", "what": "nothing"}, "'nothing' is not"),
        ("what_if", {"path": "report.json"}, "give the profile"),
        ("what_if", {"path": "profile", "scale": {"matmul": -1}}, "0 or more"),
        ("what_if", {"path": "profile", "without": ["F99"]}, "F99"),
        ("compare", {"before": "report.json", "after": []}, "at least one"),
        ("compare", {"before": "report.json", "after": ["../x"]}, "outside of"),
        ("collect", {"tool": "nothing"}, "no tool"),
        ("collect", {"path": "report.json", "tool": "torch"}, "does not record"),
    ]

    async def talked(client: Any) -> list[Any]:
        return [await client.call_tool(name, arguments) for name, arguments, _ in asked]

    for (name, arguments, message), answer in zip(asked, talk(root, talked), strict=True):
        assert answer.is_error and message in answer.content[0].text, (name, arguments, answer.content)


def test_a_result_is_kept_until_a_file_changes(root: Path, tmp_path: Path) -> None:
    from advisor_core.run.prepared import RunOptions
    from advisor_core.serving import answers
    from advisor_core.serving.root import Root

    runs = []

    def counted(*arguments: Any, **options: Any) -> Any:
        runs.append(arguments)
        return read_result(root / "report.json")

    write_sample(tmp_path / "profile", scenario=job_from(root / "job.yaml"))
    served = answers.Answers(Root(tmp_path), RunOptions())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "run", counted)
        for _ in range(3):
            served.findings("profile", str)
        assert len(runs) == 1
        next(tmp_path.rglob("kernel_details.csv")).touch()
        served.findings("profile", str)
        served.run("profile", str, step=1)
        assert len(runs) == 3


def test_without_the_package_the_command_says_what_to_install(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "advisor_core.serving.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    found = CliRunner().invoke(cli, ["mcp", "--root", str(root), "--no-config"])
    assert found.exit_code == 2
    assert 'pip install "npu-advisor[mcp]"' in found.stderr
