"""Bad input through the whole command: a clear message, the right exit code, the rest of the profile still judged."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from advisor_core.api import Registry, Ruleset, Text, hookimpl
from advisor_core.api.advisors import Column, Observations, advisor
from advisor_core.api.facts import Facts, NotApplicable, Unavailable, fact, steps, work
from advisor_core.contracts.profile import RankInput
from advisor_core.plugins.host import load_host
from advisor_core.result.run import RunResult
from advisor_core.run import prepared as preparing
from tests.robustness.command import (
    FEW,
    KERNELS,
    OUTPUT,
    TRACE,
    advise,
    change,
    contents,
    read_rows,
    run,
    told,
    write_rows,
)

as_root = hasattr(os, "geteuid") and os.geteuid() == 0
pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")


# --- nothing that can be used: exit code 3, and the path in the message


def _text_file(folder: Path) -> Path:
    path = folder / "notes.txt"
    path.write_text("nothing of interest")
    return path


def _in_a_folder(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder

    return make


def _alone(name: str, content: bytes) -> Callable[[Path], Path]:
    return lambda folder: _in_a_folder(name, content)(folder) / name


def _made(make: Callable[[Path], object]) -> Callable[[Path], Path]:
    def path(folder: Path) -> Path:
        make(folder / "it")
        return folder / "it"

    return path


UNUSABLE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "absent": (lambda folder: folder / "nowhere", "no such file"),
    "empty directory": (lambda folder: folder, "is empty"),
    "name too long": (lambda folder: folder / ("x" * 5_000), "cannot be read"),
    "no profile": (_in_a_folder("notes.txt", b"hello"), "no profile"),
    "not a profile file": (_text_file, "not a file of a known kind"),
    "empty file": (_alone("kernel_details.csv", b""), "kernel_details.csv is empty"),
    "blank file": (_alone("kernel_details.csv", b"\n\n  \n"), "kernel_details.csv is empty"),
    "header only": (_alone("kernel_details.csv", b"Name,Start Time(us),Duration(us)\n"), "kernel_details.csv"),
    "missing column": (_alone("kernel_details.csv", b"Name,Start Time(us)\na,1\n"), "Duration(us)"),
    "binary": (_alone("kernel_details.csv", bytes(range(256)) * 9), "kernel_details.csv"),
    "cut trace": (_alone("trace_view.json", b'[{"ph": "X", "na'), "trace_view.json"),
    "other json": (_alone("trace_view.json", b'{"a": 1}'), "trace_view.json"),
    "nested json": (_alone("trace_view.json", b"[" * 100_000), "trace_view.json"),
    "utf-16": (_alone("kernel_details.csv", "Name,Start Time(us),Duration(us)\na,1,2\n".encode("utf-16")), "kernel"),
    "broken link": (_made(lambda path: path.symlink_to("nowhere")), "no such file"),
    "link to itself": (_made(lambda path: path.symlink_to(path)), "cannot be read"),
    "device": (lambda folder: Path(os.devnull), "not a file of a known kind"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_what_cannot_be_used(tmp_path: Path, kind: str) -> None:
    make, words = UNUSABLE[kind]
    (tmp_path / "given").mkdir()
    path = make(tmp_path / "given")
    before = contents(tmp_path / "given")
    done = advise("run", path, folder=tmp_path / "report")
    assert done.code == 3, done.err
    assert words in done.err and path.name[:40] in done.err and "Traceback" not in done.err
    assert done.out == "" and not (tmp_path / "report").exists()
    assert contents(tmp_path / "given") == before


def test_a_real_database_of_sums_alone(profiles: Path, tmp_path: Path) -> None:
    """Of this recording nothing is left but analysis.db: there is no verdict, and no report that looks like one."""
    folder = profiles / "ascend" / "analysis-db-only_ascend_pt"
    done = advise("run", folder, folder=tmp_path / "report")
    assert done.code == 3 and not (tmp_path / "report").exists()
    assert "nothing can be judged" in done.err and "ASCEND_PROFILER_OUTPUT/analysis.db" in done.err
    assert "ascend_pytorch_profiler_*.db" in done.err and "Traceback" not in done.err


@pipes
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trace_view.json")
    done = advise("run", tmp_path / "trace_view.json", folder=tmp_path / "report")
    assert done.code == 3 and "trace_view.json" in done.err and "not a regular file" in done.err


def test_a_directory_with_the_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "trace_view.json").mkdir()
    done = advise("run", tmp_path, folder=tmp_path.parent / "report")
    assert done.code == 3 and str(tmp_path) in done.err and "Traceback" not in done.err


def test_every_file_is_empty(rank: Path, tmp_path: Path) -> None:
    for path in (rank / OUTPUT).iterdir():
        path.write_bytes(b"")
    done = run(rank, tmp_path / "report")
    assert done.code == 3 and "kernel_details.csv is empty" in done.err and "trace_view.json is empty" in done.err


def test_two_directories_of_one_rank(job: Path, tmp_path: Path) -> None:
    first = sorted(job.iterdir())[0]
    shutil.copytree(first, job / f"copy_{first.name}")
    done = run(job, tmp_path / "report")
    assert done.code == 3
    assert "rank 0 is claimed by two profiles" in done.err and f"copy_{first.name}" in done.err


def test_a_file_that_may_not_be_read(rank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is played where the tests run as root."""
    locked = rank / KERNELS
    if as_root:
        real_open = os.open

        def refuse(path: Any, *rest: Any, **more: Any) -> int:
            if str(path).endswith("kernel_details.csv"):
                raise PermissionError(13, "Permission denied")
            return real_open(path, *rest, **more)

        monkeypatch.setattr(os, "open", refuse)
        done = advise("run", rank, "--jobs", 1, *FEW, "--format", "json", folder=tmp_path / "report")
    else:
        locked.chmod(0)
        done = advise("run", rank, "--jobs", 1, *FEW, "--format", "json", folder=tmp_path / "report")
        locked.chmod(0o600)
    assert done.code == 0, done.err
    assert "kernel_details.csv cannot be read" in done.err and "Permission denied" in told(done.result)
    assert done.result.ledger, "the lanes of the trace tell what the kernel table would have"


# --- one thing is wrong, the rest is judged: exit code 0, and a diagnostic that names file and line


def _empty(rank: Path) -> None:
    (rank / KERNELS).write_bytes(b"")


def _cut(rank: Path) -> None:
    whole = (rank / TRACE).read_bytes()
    (rank / TRACE).write_bytes(whole[: len(whole) // 2])


def _without(column: str) -> Callable[[Path], None]:
    def drop(rank: Path) -> None:
        rows = read_rows(rank / KERNELS)
        place = rows[0].index(column)
        write_rows(rank / KERNELS, [row[:place] + row[place + 1 :] for row in rows])

    return drop


def _cell(column: str, value: str) -> Callable[[Path], None]:
    return lambda rank: change(rank / KERNELS, column, 7, value)


def _settings(rank: Path) -> None:
    (rank / "profiler_info_0.json").write_text('{"config": ')


def _folder(rank: Path) -> None:
    (rank / OUTPUT / "op_statistic.csv").unlink()
    (rank / OUTPUT / "op_statistic.csv").mkdir()


def _dangling(rank: Path) -> None:
    (rank / OUTPUT / "op_statistic.csv").unlink()
    (rank / OUTPUT / "op_statistic.csv").symlink_to("nowhere")


def _circle(rank: Path) -> None:
    (rank / "again").symlink_to(rank, target_is_directory=True)
    (rank / KERNELS).write_bytes(b"")


def _nested(rank: Path) -> None:
    (rank / OUTPUT / "communication.json").write_text('{"step10": ' * 50_000)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty file": (_empty, "kernel_details.csv is empty"),
    "cut file": (_cut, "trace_view.json"),
    "missing column": (_without("Duration(us)"), "kernel_details.csv has no column Duration(us)"),
    "text for a number": (_cell("Duration(us)", "soon"), "kernel_details.csv:9 'soon'"),
    "negative duration": (_cell("Duration(us)", "-5"), "kernel_details.csv:9 '-5"),
    "absurd duration": (_cell("Duration(us)", "9e15"), "kernel_details.csv:9 '9"),
    "NaN": (_cell("Duration(us)", "NaN"), "kernel_details.csv:9"),
    "infinity": (_cell("Duration(us)", "inf"), "kernel_details.csv:9 'inf'"),
    "start at zero": (_cell("Start Time(us)", "0"), "kernel_details.csv:9 '0 ns'"),
    "start beyond int64": (_cell("Start Time(us)", "9223372036854775808"), "kernel_details.csv:9"),
    "start in 2262": (_cell("Start Time(us)", "9223372036854775.000"), "kernel_details.csv:9"),
    "negative start": (_cell("Start Time(us)", "-1736408883688177.930"), "kernel_details.csv:9"),
    "not a count": (_cell("Block Dim", "1e99"), "kernel_details.csv:9 '1e99'"),
    "settings": (_settings, "profiler_info_0.json"),
    "a directory": (_folder, "op_statistic.csv cannot be read"),
    "a link to nothing": (_dangling, "op_statistic.csv cannot be read"),
    "a circle of links": (_circle, "kernel_details.csv is empty"),
    "deep nesting": (_nested, "communication.json"),
}


ALIKE = (
    "negative duration",
    "NaN",
    "infinity",
    "start at zero",
    "start in 2262",
    "negative start",
    "not a count",
    "a directory",
)
"""Met as others of these are; what the tables read of each such cell is what tests/loaders look at."""
KINDS = [pytest.param(kind, marks=pytest.mark.search if kind in ALIKE else ()) for kind in DAMAGE]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_costs_what_it_spoils_and_is_said(rank: Path, clean: RunResult, tmp_path: Path, kind: str) -> None:
    damage, words = DAMAGE[kind]
    damage(rank)
    done = run(rank, tmp_path / "report", *FEW)
    assert done.code == 0, done.err
    result = done.result
    new = [d for d in result.diagnostics if d.severity != "info" and d not in clean.diagnostics]
    assert any(words in d.message.en and words.split()[0].split(":")[0] in d.message.zh for d in new), told(result)
    assert words in done.err and words.split(":")[0].split()[0] in done.text("report.html")
    judged = {rule.rule for rule in result.rules if rule.state in ("fail", "pass")}
    assert judged and {rule.rule for rule in result.rules} == {rule.rule for rule in clean.rules}
    walls = [step.wall_ns for step in result.ledger]
    assert walls and max(walls) <= 1.2 * max(step.wall_ns for step in clean.ledger), "an absurd row stretched a step"


def test_a_rank_that_is_beyond_use_does_not_stop_the_others(job: Path, tmp_path: Path) -> None:
    second = sorted(job.iterdir())[1]
    for path in (second / OUTPUT).iterdir():
        path.write_bytes(b"")
    done = run(job, tmp_path / "report", *FEW, "--format", "json")
    assert done.code == 0, done.err
    assert done.result.profile.ranks == [0]
    (said,) = [d for d in done.result.diagnostics if "rank 1 could not be read" in d.message.en]
    assert said.severity == "error" and said.source == second.name and "kernel_details.csv is empty" in said.message.en


def test_what_one_rank_lacks_crosses_processes(job: Path, tmp_path: Path) -> None:
    """A rank without a trace gives reasons in place of facts; they reach the job unharmed whatever --jobs is."""
    (sorted(job.iterdir())[1] / TRACE).unlink()
    written = []
    for jobs in (1, 2):
        done = advise("run", job, *FEW, "--format", "json", "--jobs", jobs, folder=tmp_path / str(jobs))
        assert done.code == 0, done.err
        result = json.loads(done.text("report.json"))
        del result["timings"]
        written.append(json.dumps(result))
    assert written[0] == written[1]


def test_reasons_can_be_sent_between_processes() -> None:
    text = Text(en="no", zh="无")
    sent = pickle.loads(pickle.dumps(Unavailable(text, collect=text)))
    assert (sent.reason, sent.collect, str(sent)) == (text, text, "no")
    assert pickle.loads(pickle.dumps(NotApplicable(text))).reason == text


# --- where the report may not go, and options that do not fit: exit code 2


@pytest.mark.parametrize("place", [".", "report", "ASCEND_PROFILER_OUTPUT", "../x/../{name}/y", "a/../../{name}"])
def test_the_report_never_goes_into_the_input(rank: Path, place: str) -> None:
    before = contents(rank)
    done = advise("run", rank, folder=rank / place.format(name=rank.name))
    assert done.code == 2 and "written into the input" in done.err and "-o" in done.err
    assert contents(rank) == before


def test_the_report_never_goes_into_the_input_through_a_link(rank: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(rank, target_is_directory=True)
    for given, place in ((rank, tmp_path / "link" / "report"), (tmp_path / "link", rank / "report")):
        done = advise("run", given, folder=place)
        assert done.code == 2 and "written into the input" in done.err
    assert not (rank / "report").exists()


def test_not_even_from_inside_of_it(rank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(rank)
    done = advise("run", ".")
    assert done.code == 2 and "-o" in done.err and not (rank / "advisor-report").exists()


def test_a_report_does_not_write_through_a_link(rank: Path, tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.json").symlink_to(rank / KERNELS)
    assert run(rank, tmp_path / "report", *FEW).code == 0
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == ["report.html", "report.json", "report.md"]


@pytest.mark.parametrize("place", ["taken", "taken/below", "/proc/nowhere"])
def test_a_place_that_cannot_be_written(rank: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "taken").write_text("a file")
    before = contents(rank)
    done = advise("run", rank, "--jobs", 1, "--select", "HD001", folder=tmp_path / place)
    assert done.code == 2 and "cannot write the report to" in done.err and "Traceback" not in done.err
    assert (tmp_path / "taken").read_text() == "a file" and contents(rank) == before


TEMPLATE = """
id: {id}
name: {name}
advisor: {advisor}
params:
  least: {{value: 0, unit: "", why: "everything counts in this test"}}
when: {column} > params.least
severity: {{high: true}}
impact: {{value: 0, basis: estimate}}
advice:
  - kind: investigate
    text: {{en: "Look at it.", zh: "看一看。"}}
text:
  title: {{en: "Something is wrong here", zh: "这里有问题"}}
  good: {{en: "Nothing is wrong here", zh: "这里没有问题"}}
  why: {{en: "It was made so.", zh: "本来如此。"}}
  verify: {{en: "Measure again.", zh: "重新测量。"}}
references:
  - {{title: "a test of robustness"}}
"""
RULE = TEMPLATE.format(id="ZZ901", name="robust-rule", advisor="host_dispatch.idle", column="idle_share")


def _bomb() -> str:
    return 'a: &a ["x", "x"]\n' + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi"))  # noqa: B905


RULE_FILES: dict[str, tuple[str, str]] = {
    "unknown name": (RULE.replace("idle_share", "idel_share"), "idel_share"),
    "unknown advisor": (RULE.replace("host_dispatch.idle", "host_dispatch.idel"), "host_dispatch.idel"),
    "unknown key": (RULE + "wehn: 1\n", "wehn"),
    "not yaml": ("id: [1, 2\nname: }", "rules.yaml:"),
    "given twice": (RULE + "---" + RULE, "ZZ901"),
    "key twice": (RULE + "id: ZZ902\n", "given twice"),
    "bomb": (_bomb(), "aliases"),
    "nested": ("a: " + "[" * 5_000, "nested deeper"),
    "too large": ("# " + "x" * 300_000, "larger than"),
    "empty": ("", "no rule in it"),
    "a call": (RULE.replace("idle_share > params.least", "__import__('os').system('id') == 0"), "rules.yaml:"),
    "a tag": ("!!python/object/apply:os.system ['id']\n", "tags"),
}


@pytest.mark.parametrize("kind", RULE_FILES)
def test_a_rule_file_that_is_wrong(tmp_path: Path, kind: str) -> None:
    text, words = RULE_FILES[kind]
    (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
    checked = advise("rules", "check", tmp_path / "rules.yaml")
    assert checked.code == 1 and words in checked.err and "Traceback" not in checked.err


@pytest.mark.parametrize("kind", ["unknown name", "not yaml", "given twice"])
def test_a_run_with_a_rule_file_that_is_wrong(rank: Path, tmp_path: Path, kind: str) -> None:
    """That cannot be compiled, cannot be read, and of which a part can be used."""
    text, words = RULE_FILES[kind]
    (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
    for done in (
        run(rank, tmp_path / "report", "--ruleset", tmp_path / "rules.yaml", *FEW, "--format", "json"),
        advise("rules", "list", "--ruleset", tmp_path / "rules.yaml"),
    ):
        assert done.code == 2 and words in done.err and "rules.yaml" in done.err and "Traceback" not in done.err
    # The other rules have run, and the report says which one is missing.
    result = RunResult.model_validate_json((tmp_path / "report" / "report.json").read_bytes())
    assert {"HD001", "CO001"} <= {outcome.rule for outcome in result.rules if outcome.state != "error"}
    (said, *_) = [diagnostic for diagnostic in result.diagnostics if diagnostic.source == "rules.yaml"]
    assert said.severity == "error" and str(tmp_path) not in said.message.en


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rank", "77"], "rank 77 is not in the profile; it has 0"),
        (["--rank", "x"], "not a valid integer"),
        (["--step", "77"], "recorded: 10"),
        (["--step", "-1"], "step -1 is not in the profile"),
        (["--jobs", "0"], "--jobs"),
        (["--format", "pdf"], "html, md, json"),
        (["--lang", "fr"], "--lang"),
        (["--fail-on", "urgent"], "--fail-on"),
        (["--select", "QQ999"], "QQ999"),
        (["--ignore", "QQ999"], "QQ999"),
        (["--set", "HD001"], "ID.param=VALUE"),
        (["--set", "QQ999.x=1"], "QQ999"),
        (["--set", "HD001.nonsense=1"], "nonsense"),
        (["--set", "HD001.idle_share=much"], "much"),
        (["--set", "HD001.idle_share=10 ms"], "the parameter is in ratio"),
        (["--set", "HD001.idle_share=nan"], "idle_share"),
        (["--set", "HD001.idle_share=1e999"], "idle_share"),
        (["--ruleset", "nowhere.yaml"], "nowhere.yaml"),
        (["--ruleset", os.devnull], "no rule in it"),
    ],
)
def test_an_option_that_does_not_fit(rank: Path, tmp_path: Path, options: list[str], words: str) -> None:
    done = run(rank, tmp_path / "report", *options)
    assert done.code == 2 and words in done.err


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema_version": "1"}', "[" * 100_000, "\0"])
def test_explaining_what_is_no_report(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    done = advise("explain", tmp_path / "report.json", "HD001")
    assert done.code == 3 and "report.json" in done.err and "Traceback" not in done.err


# --- plugins that break: the rest runs


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """``plugged(advisor_register_facts=...)``: one more plugin, called ``broken``."""

    def plug(**hooks: Callable[..., None]) -> None:
        module = ModuleType("broken")
        for name, hook in hooks.items():
            setattr(module, name, hookimpl(hook))
        monkeypatch.setattr(preparing, "load_host", lambda: load_host([("broken", module)]))
        preparing.installed_host.cache_clear()
        preparing.forget_rules()

    yield plug
    preparing.installed_host.cache_clear()
    preparing.forget_rules()


_AMOUNT = [Column("amount", "float", "ns", "an amount")]


@fact("broken_fact", needs=(work,))
def _broken_fact(facts: Facts) -> int:
    """A fact that is wrong."""
    raise ZeroDivisionError("in a fact")


@advisor("broken.raises", needs=(steps,), columns=_AMOUNT)
def _raises(facts: Facts, params: Any) -> Observations:
    """Divides by nothing."""
    raise ZeroDivisionError("in a measurement")


@advisor("broken.needs", needs=(_broken_fact,), columns=_AMOUNT)
def _needs(facts: Facts, params: Any) -> Observations:
    """Needs what is broken."""
    return Observations(pd.DataFrame({"amount": [1.0]}), lambda row: [])


@advisor("broken.wants", needs=(steps,), wants=(_broken_fact,), columns=_AMOUNT)
def _wants(facts: Facts, params: Any) -> Observations:
    """Could use what is broken."""
    assert _broken_fact not in facts
    return Observations(pd.DataFrame({"amount": [0.0]}), lambda row: [])


@advisor("broken.evidence", needs=(steps,), columns=_AMOUNT)
def _evidence(facts: Facts, params: Any) -> Observations:
    """Has evidence that is not there."""

    def evidence(row: int) -> list[Any]:
        raise ZeroDivisionError("in evidence")

    return Observations(pd.DataFrame({"amount": [1.0]}), evidence)


@advisor("broken.columns", needs=(steps,), columns=_AMOUNT)
def _columns(facts: Facts, params: Any) -> Observations:
    """Gives other columns than it says."""
    return Observations(pd.DataFrame({"other": [1.0]}), lambda row: [])


def test_advisors_and_facts_that_raise(plugged: Any, rank: Path, clean: RunResult, tmp_path: Path) -> None:
    names = {"raises": "ZZ901", "needs": "ZZ902", "wants": "ZZ903", "evidence": "ZZ904", "columns": "ZZ905"}
    (tmp_path / "set").mkdir()
    texts = [
        TEMPLATE.format(id=id_, name=f"broken-{name}", advisor=f"broken.{name}", column="amount")
        for name, id_ in names.items()
    ]
    (tmp_path / "set" / "broken.yaml").write_text("---".join(texts), encoding="utf-8")
    plugged(
        advisor_register_facts=lambda registry: registry.add(_broken_fact),
        advisor_register_advisors=lambda registry: registry.add(_raises, _needs, _wants, _evidence, _columns),
        advisor_register_rulesets=lambda registry: registry.add(Ruleset("broken", tmp_path / "set")),
    )
    done = advise("run", rank, "--jobs", 1, "--format", "json", folder=tmp_path / "report")
    assert done.code == 0 and "Traceback" not in done.err, done.err
    result = done.result
    states = {rule.rule: rule for rule in result.rules}
    assert {name: states[id_].state for name, id_ in names.items()} == dict.fromkeys(names, "error") | {"wants": "pass"}
    for name, words in (
        ("raises", "broken.raises of plugin broken ((given)) raised ZeroDivisionError: in a measurement"),
        ("needs", "broken_fact of plugin broken ((given)) raised ZeroDivisionError: in a fact"),
        ("evidence", "of plugin broken ((given)) raised ZeroDivisionError: in evidence"),
        ("columns", "does not give its declared columns amount"),
    ):
        reason = states[names[name]].reason
        assert reason is not None and words in reason.en
    assert sum("broken_fact" in d.message.en for d in result.diagnostics) == 1, "a fact is computed at most once"
    others = {rule.rule: rule.state for rule in clean.rules}
    assert {id_: rule.state for id_, rule in states.items() if id_ not in names.values()} == others
    assert result.findings == clean.findings and result.ledger == clean.ledger


def test_a_gate_has_no_verdict_where_a_rule_crashed(
    plugged: Any, rank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_DEBUG", "")  # which --debug sets
    (tmp_path / "set").mkdir()
    text = TEMPLATE.format(id="ZZ901", name="broken-raises", advisor="broken.raises", column="amount")
    (tmp_path / "set" / "broken.yaml").write_text(text, encoding="utf-8")
    plugged(
        advisor_register_advisors=lambda registry: registry.add(_raises),
        advisor_register_rulesets=lambda registry: registry.add(Ruleset("broken", tmp_path / "set")),
    )
    few = ("--jobs", 1, "--select", "HD001,ZZ901", "--format", "json")
    done = advise("run", rank, *few, "--fail-on", "high", folder=tmp_path / "report")
    assert done.code == 4 and "there is no verdict" in done.err
    assert re.search(r"ZZ901: .* raised ZeroDivisionError: in a measurement \(test_bad_input.py:\d+\)", done.err)
    assert "Traceback" not in done.err
    assert advise("--debug", "run", rank, *few, folder=tmp_path / "again").err.count("Traceback") == 1


def test_a_gate_has_no_verdict_where_a_plugin_was_not_loaded(plugged: Any, rank: Path, tmp_path: Path) -> None:
    plugged(advisor_register_fatcs=lambda registry: None)
    few = ("--jobs", 1, "--select", "HD001", "--format", "json")
    done = advise("run", rank, *few, "--fail-on", "high", folder=tmp_path / "report")
    assert done.code == 4 and "advisor_register_fatcs" in done.err


@advisor("broken.twins", needs=(steps,), columns=_AMOUNT)
def _twins(facts: Facts, params: Any) -> Observations:
    """Measures two things and does not say what tells them apart."""
    return Observations(pd.DataFrame({"amount": [1.0, 2.0]}), lambda row: [])


def test_rows_with_one_subject_are_an_error_that_names_about(plugged: Any, rank: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    text = TEMPLATE.format(id="ZZ901", name="broken-twins", advisor="broken.twins", column="amount")
    (tmp_path / "set" / "broken.yaml").write_text(text, encoding="utf-8")
    plugged(
        advisor_register_advisors=lambda registry: registry.add(_twins),
        advisor_register_rulesets=lambda registry: registry.add(Ruleset("broken", tmp_path / "set")),
    )
    few = ("--jobs", 1, "--select", "HD001,ZZ901", "--format", "json")
    result = advise("run", rank, *few, folder=tmp_path / "report").result
    (state,) = [rule for rule in result.rules if rule.rule == "ZZ901"]
    assert state.state == "error" and state.reason is not None and "`about`" in state.reason.en
    assert not [finding for finding in result.findings if finding.rule == "ZZ901"]


def test_a_rule_of_a_plugin_cannot_take_the_place_of_ours(plugged: Any, rank: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    text = TEMPLATE.format(id="HD001", name="mine", advisor="host_dispatch.idle", column="idle_ns")
    (tmp_path / "set" / "mine.yaml").write_text(text, encoding="utf-8")
    plugged(advisor_register_rulesets=lambda registry: registry.add(Ruleset("mine", tmp_path / "set")))
    few = ("--select", "HD001", "--format", "json")
    result = run(rank, tmp_path / "report", *few).result
    assert "rule HD001 is taken" in told(result)
    assert {rule.rule: rule.name for rule in result.rules}["HD001"] == "device-idle"
    asked_for = advise("run", rank, "--ruleset", tmp_path / "set", *few, folder=tmp_path / "again").result
    assert {rule.rule: rule.name for rule in asked_for.rules}["HD001"] == "mine"
    assert "mine.yaml takes the place of the rule of HD001.yaml" in told(asked_for)


def test_rules_that_are_left_out_are_in_the_report(rank: Path, tmp_path: Path) -> None:
    done = advise("run", rank, "--ignore", "HD001,NS,PB,SA,CO,ME", folder=tmp_path / "report")
    (state,) = [rule for rule in done.result.rules if rule.rule == "HD001"]
    assert state.state == "left_out" and state.reason is not None and state.reason.en == "left out by --ignore"
    assert "Left out" in done.text("report.md") and "Left out" in done.text("report.html")


def test_reports_of_an_earlier_run_are_named(rank: Path, tmp_path: Path) -> None:
    run(rank, tmp_path / "report", "--select", "HD001")
    done = advise("run", rank, "--select", "HD001", "--format", "json", folder=tmp_path / "report")
    assert done.err.count("is of an earlier run") == 2 and "report.html" in done.err and "report.md" in done.err


def test_another_package_in_the_way_is_an_error_that_names_it(rank: Path, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "__init__.py").touch()
    command = [sys.executable, "-m", "advisor_core", "run", str(rank), "-o", str(tmp_path / "out")]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and str(tmp_path / "reports") in done.stderr and "'reports'" in done.stderr


def test_a_plugin_that_ends_the_process_is_named(tmp_path: Path) -> None:
    (tmp_path / "quits.py").write_text("raise SystemExit(7)", encoding="utf-8")
    metadata = tmp_path / "quits-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: quits\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[npu_advisor.v1]\nquits = quits\n", encoding="utf-8")
    command = [sys.executable, "-m", "advisor_core"]
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    listed = subprocess.run([*command, "plugins"], env=env, capture_output=True, text=True, check=False)
    assert listed.returncode == 0 and "SystemExit: 7" in listed.stdout
    without = subprocess.run(
        [*command, "--no-plugins", "plugins"], env=env, capture_output=True, text=True, check=False
    )
    assert without.returncode == 0 and "quits" not in without.stdout and "rulesets" in without.stdout


def test_nothing_of_a_broken_registration_is_needed(plugged: Any, rank: Path, tmp_path: Path) -> None:
    def register(registry: Registry[Any]) -> None:
        raise ZeroDivisionError("on purpose")

    plugged(advisor_register_facts=register)
    done = run(rank, tmp_path / "report", *FEW, "--format", "json")
    assert done.code == 0 and "broken" in done.err and "ZeroDivisionError: on purpose" in told(done.result)


def test_a_misspelt_hook_is_said(plugged: Any, rank: Path, tmp_path: Path) -> None:
    plugged(advisor_register_fatcs=lambda registry: None)
    done = run(rank, tmp_path / "report", "--select", "HD001", "--format", "json")
    assert done.code == 0 and "advisor_register_fatcs" in told(done.result)


def test_a_rule_set_of_a_plugin_with_a_mistake(plugged: Any, rank: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ruleset"
    folder.mkdir()
    (folder / "wrong.yaml").write_text(RULE.replace("idle_share", "idel_share"), encoding="utf-8")
    plugged(advisor_register_rulesets=lambda registry: registry.add(Ruleset("wrong", folder)))
    done = run(rank, tmp_path / "report", *FEW, "--format", "json")
    assert done.code == 0, done.err
    said = [d for d in done.result.diagnostics if d.source == "wrong.yaml"]
    assert said and any("idel_share" in d.message.en for d in said) and str(tmp_path) not in told(done.result)
    assert len(done.result.rules) > 40


class _Broken:
    name, filename = "broken", "report.broken"

    def render(self, result: object, lang: str) -> str:
        raise ZeroDivisionError("on purpose")


def test_a_format_that_breaks_leaves_the_others(plugged: Any, rank: Path, tmp_path: Path) -> None:
    plugged(advisor_register_renderers=lambda registry: registry.add(_Broken()))
    done = advise("run", rank, "--jobs", 1, "--select", "HD", folder=tmp_path / "report")
    assert done.code == 4 and "the format broken could not be written: ZeroDivisionError" in done.err
    assert "Traceback" not in done.err and done.result.rules
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"report.html", "report.md", "report.json"}


class _Loader:
    """Finds, in place of the others, whatever is below ``<path>/mine``; breaks where it is told to."""

    name = "broken_loader"

    def __init__(self, breaks: str) -> None:
        self.breaks = breaks

    def discover(self, root: Path) -> list[Any]:
        if self.breaks == "discover":
            raise ZeroDivisionError("while looking")
        if self.breaks == "kind":
            return ["a profile"]
        found = root / "mine" if root.is_dir() else root
        return [RankInput(root, found, "mine", 7, self.name, 1)] if found.exists() else []

    def load(self, source: RankInput) -> Any:
        if self.breaks == "load":
            raise ZeroDivisionError("while reading")
        return "no profile"


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        ("discover", "raised ZeroDivisionError: while looking"),
        ("kind", "raised TypeError: discover gives a str"),
        ("load", "raised ZeroDivisionError: while reading"),
        ("result", "raised TypeError: load gives a str"),
    ],
)
def test_a_loader_that_raises(
    plugged: Any, rank: Path, clean: RunResult, tmp_path: Path, breaks: str, words: str
) -> None:
    words = f"loader broken_loader of plugin broken ((given)) {words}"
    plugged(advisor_register_loaders=lambda registry: registry.add(_Loader(breaks)))
    job = tmp_path / "job"
    shutil.copytree(rank, job / rank.name)
    (job / "mine").mkdir()
    done = advise("run", job, "--jobs", 1, *FEW, "--format", "json", folder=tmp_path / "report")
    assert done.code == 0 and "Traceback" not in done.err, done.err
    assert [d.severity for d in done.result.diagnostics if words in d.message.en] == ["error"] and words in done.err
    selected = [rule.rule for rule in done.result.rules if rule.state != "left_out"]
    kept = [finding.fingerprint for finding in clean.findings if finding.rule in selected]
    assert kept and [finding.fingerprint for finding in done.result.findings] == kept
    assert [step.wall_ns for step in done.result.ledger] == [step.wall_ns for step in clean.ledger]
    # nothing else to read: the input cannot be used, and why is said
    shutil.rmtree(job / rank.name)
    alone = advise("run", job, folder=tmp_path / "alone")
    assert alone.code == 3 and words in alone.err and "Traceback" not in alone.err
