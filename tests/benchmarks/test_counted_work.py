"""The fixed cost of a command, by what it does and not by how long it takes: a count is the same on every machine."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import reports.markdown
from advisor_core.loaders.readers import json_events
from advisor_core.plugins.host import Host
from advisor_core.rules import compiled as compiling
from advisor_core.rules.compiled import CompiledRule, Part
from advisor_core.rules.files import ruleset as loading
from advisor_core.rules.files import yaml_file
from advisor_core.rules.files.yaml_file import read_trusted_yaml, read_yaml
from advisor_core.rules.language import template
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, forget_rules, prepared, rule_book
from tests.advisors.build import ROOT, host
from tests.report_fixtures import many_findings

SETS = (ROOT / "rulesets" / "ascend", ROOT / "rulesets" / "gpu")
UNUSED = {"concurrent.futures.process", "multiprocessing", "packaging.requirements"}
"""What a run on one process needs of none of its inputs."""
HEAVY = {"jinja2", "markdown_it", "msgspec", "numpy", "pandas", "pyarrow", "pydantic", "yaml"}
PARTS = {name for name, part in vars(CompiledRule).items() if isinstance(part, Part)}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter[str]:
    """How often rule files are parsed, by one who has not run before, and conditions and texts compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    counts: Counter[str] = Counter()
    places = {
        "strict files": (loading, "read_yaml"),
        "trusted files": (yaml_file, "_trusted"),
        "conditions": (compiling, "parse"),
        "checks of Markdown": (template, "_check_markdown"),
        "texts": (compiling, "parse_template"),
    }
    for what, (module, name) in places.items():
        monkeypatch.setattr(module, name, _counting(getattr(module, name), counts, what))
    return counts


def _counting(function, counts, what):  # type: ignore[no-untyped-def]  # as the function that it stands for
    def call(*args, **kwargs):  # type: ignore[no-untyped-def]
        counts[what] += 1
        return function(*args, **kwargs)

    return call


def rule_files(*, cases: bool) -> list[Path]:
    return [path for root in SETS for path in sorted(root.rglob("*.yaml")) if cases or "cases" not in path.parts]


def test_help_imports_nothing_that_reads_profiles_or_rules() -> None:
    code = (
        "import sys\nfrom advisor_core.cli.main import cli\ncli(['--help'], standalone_mode=False)\nprint(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in ran.stdout.splitlines()[-1].split()} & HEAVY == set()


def test_a_run_on_one_process_imports_nothing_for_several(shared_sample: Callable[..., Path], tmp_path: Path) -> None:
    profile = shared_sample("healthy-training-single")
    command = f"['run', {str(profile)!r}, '-q', '-o', {str(tmp_path / 'report')!r}]"
    code = (
        f"import sys\nfrom advisor_core.cli.main import cli\ncli({command}, standalone_mode=False)\nprint(*sys.modules)"
    )
    code += "\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.splitlines()[-1].split()) & UNUSED == set()


def test_plugins_and_rules_are_loaded_without_what_writes_reports() -> None:
    """By every command about rules, and by every further process that reads ranks."""
    code = (
        "import sys\n"
        "from advisor_core.run.prepared import RunOptions, prepared\n"
        "prepared(RunOptions())\n"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(ran.stdout.splitlines()[-1].split())
    assert "advisors.host_dispatch.idle" in imported
    assert (
        imported & {"jinja2", "markdown_it", "reports.html", "reports.labels", "reports.charts", "xml.etree"} == set()
    )


def test_rules_are_shown_without_what_reads_profiles_and_files_of_yaml(tmp_path: Path) -> None:
    """Not by the first command, which keeps what the files of YAML say, but from the second on."""
    code = (
        "import sys\n"
        "from advisor_core.cli.main import main\n"
        "sys.argv[1:] = ['rules', 'show', 'HD001']\n"
        "try:\n    main()\nexcept SystemExit:\n    print(*sys.modules)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )
    imported = ran.stdout.splitlines()[-1].split()
    assert "advisor_core.rules.files.ruleset" in imported
    assert [name for name in imported if name.startswith(("yaml.", "advisor_core.loaders.", "pandas.core"))] == []
    assert "advisor_core.result.comparison" not in imported


@pytest.mark.parametrize(
    "scenario", [pytest.param("healthy-training-single", marks=pytest.mark.search), "transformer-training"]
)
def test_a_run_turns_no_text_into_arrow_arrays(
    scenario: str, shared_sample: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of small frames each would, with pandas 3: a quarter of a run."""
    counts: Counter[str] = Counter()
    arrow = pd.arrays.ArrowStringArray
    monkeypatch.setattr(arrow, "__init__", _counting(arrow.__init__, counts, "texts"))
    pd.array(["counted"], dtype="string[pyarrow]")
    assert counts.pop("texts") == 1
    profile = shared_sample(scenario)
    assert run([profile], RunOptions(), jobs=1).rules
    assert counts["texts"] == 0


def test_evidence_of_a_whole_trace_is_found_without_a_search_by_brackets(
    shared_sample: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    monkeypatch.setattr(json_events, "borders", _counting(json_events.borders, counts, "by brackets"))
    monkeypatch.setattr(json_events, "_element_starts", _counting(json_events._element_starts, counts, "chunks"))
    assert run([shared_sample("slow-python")], RunOptions()).findings
    assert counts["chunks"] > 0
    assert counts["by brackets"] == 0


def test_a_report_that_is_too_long_is_not_written_once_for_each_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    monkeypatch.setattr(reports.markdown, "text", _counting(reports.markdown.text, counts, "written"))
    result, renderer = many_findings(), reports.markdown.MarkdownRenderer()
    longer = renderer.render(result, "en")
    limit = len(longer) - 20_000
    monkeypatch.setattr(reports.markdown, "TICKET", dataclasses.replace(reports.markdown.TICKET, characters=limit))
    counts.clear()
    shorter = renderer.render(result, "en")
    assert len(shorter) <= limit
    sections = longer.count("\n## ") - shorter.count("\n## ")
    assert 0 < sections < len(result.problems) / 4
    assert counts["written"] <= 2 + sections, "once for each section that is left out, and not for each problem"


def test_a_second_run_parses_no_yaml_and_compiles_no_template(
    shared_sample: Callable[..., Path], tmp_path: Path
) -> None:
    """Files of rules, names and words, and templates of reports, are read once, not once per run."""
    profile = shared_sample("healthy-training-single")
    command = f"['run', {str(profile)!r}, '-q', '-o', {str(tmp_path / 'report')!r}]"
    code = (
        "import yaml\n"
        "made = []\n"
        "for loader in (yaml.CBaseLoader, yaml.CSafeLoader, yaml.CLoader):\n"
        "    def begin(self, stream, before=loader.__init__):\n"
        "        made.append(stream)\n"
        "        before(self, stream)\n"
        "    loader.__init__ = begin\n"
        "import jinja2\n"
        "compiled = []\n"
        "def compile(self, source, *names, before=jinja2.Environment.compile, **more):\n"
        "    compiled.append(source)\n"
        "    return before(self, source, *names, **more)\n"
        "jinja2.Environment.compile = compile\n"
        "from advisor_core.cli.main import cli\n"
        f"cli({command}, standalone_mode=False)\n"
        "print(len(made), len(compiled))"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    parsed, compiled = [], []
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        files, templates = map(int, ran.stdout.splitlines()[-1].split())
        parsed.append(files)
        compiled.append(templates)
    assert parsed[0] > len(rule_files(cases=False))
    assert parsed[1] == 0
    assert compiled == [2, 0]


def test_a_process_that_ends_searches_for_no_cycles() -> None:
    """What is left of a run is given back as a whole: to search it took half a second."""
    code = (
        "import atexit, gc\n"
        "atexit.register(lambda: print(gc.get_freeze_count()))\n"
        "from advisor_core.contracts.collector import spare_lasting_objects\n"
        "spare_lasting_objects()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) > 1000


def test_loading_our_own_rules_reads_each_file_once_no_case_and_compiles_nothing(counted: Counter[str]) -> None:
    book = rule_book(host(), RunOptions())
    assert book.problems == ()
    assert counted == {"trusted files": len(rule_files(cases=False))}
    assert len(rule_files(cases=False)) < len(rule_files(cases=True))
    assert all(PARTS.isdisjoint(vars(rule)) for rule in book)


def test_a_run_compiles_of_a_rule_what_it_tells(counted: Counter[str], shared_sample: Callable[..., Path]) -> None:
    """The texts and advice of what it found, the name of what is in order, and nothing of rules for other devices. What
    was checked before it was installed is not checked again."""
    profile = shared_sample("healthy-training-single")
    forget_rules()
    options = RunOptions()
    result = run([profile], options)
    found = {finding.rule for finding in result.findings}
    judged = {outcome.rule for outcome in result.rules if outcome.state != "not_applicable"}
    book = prepared(options)[1]
    of_others = [rule for rule in book if rule.vendors == ("gpu",)]
    assert found
    assert of_others
    assert all(PARTS.isdisjoint(vars(rule)) for rule in of_others)
    assert {rule.id for rule in book if "advice" in vars(rule)} == found
    assert {rule.id for rule in book if "title" in vars(rule)} == found
    assert judged <= {rule.id for rule in book if "good" in vars(rule)}
    assert counted["texts"] > 0
    assert counted["checks of Markdown"] == 0


def test_rules_of_a_user_are_read_strictly_and_compiled_and_ours_are_not(counted: Counter[str], tmp_path: Path) -> None:
    """Also what no profile would ever use, so that a mistake anywhere in them is told."""
    text = (SETS[0] / "host_dispatch" / "HD001.yaml").read_text(encoding="utf-8")
    for ours, theirs in (("id: HD001", "id: ZZ001"), ("name: ", "name: our-own-")):
        text = text.replace(ours, theirs, 1)
    (tmp_path / "ours.yaml").write_text(text, encoding="utf-8")
    change = 'override: HD001\nparams:\n  idle_share: {value: 0.2, why: "our jobs idle more"}\n'
    (tmp_path / "change.yaml").write_text(change, encoding="utf-8")
    book = rule_book(host(), RunOptions(rulesets=(tmp_path,)))
    assert book.problems == ()
    assert counted["strict files"] == 2
    assert counted["trusted files"] == len(rule_files(cases=False))
    compiled = {rule.id for rule in (*book.rules, *book.disabled) if not PARTS.isdisjoint(vars(rule))}
    assert compiled == {"ZZ001", "HD001"}
    assert all(set(vars(book[id_])) >= PARTS for id_ in compiled)
    (tmp_path / "ours.yaml").write_text(text.replace("{{ idle_share }}", "{{ nothing }}", 1), encoding="utf-8")
    assert any("nothing" in problem.message for problem in rule_book(host(), RunOptions(rulesets=(tmp_path,))).problems)


def test_rules_of_another_plugin_are_not_trusted(counted: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: Host = host()
    owner = loaded.rulesets.owner("gpu")
    theirs = type(owner)("theirs", "their-package", "1", builtin=False)
    monkeypatch.setitem(loaded.rulesets._owners, "gpu", theirs)
    book = rule_book(loaded, RunOptions())
    of_gpus = loaded.rulesets["gpu"].root
    assert counted["strict files"] == len(list(of_gpus.rglob("*.yaml")))
    assert counted["trusted files"] == len(rule_files(cases=False)) - len(
        [path for path in rule_files(cases=False) if path.is_relative_to(of_gpus)]
    )
    assert all(set(vars(rule)) >= PARTS for rule in book if rule.ruleset == "gpu")


def test_what_is_trusted_reads_as_it_would_strictly() -> None:
    for path in rule_files(cases=True):
        strict, trusted = read_yaml(path, path.name), read_trusted_yaml(path, path.name)
        assert [repr(document.data) for document in trusted] == [repr(document.data) for document in strict], path
        assert [document.line for document in trusted] == [document.line for document in strict]
        assert [dict(document.values) for document in trusted] == [dict(document.values) for document in strict]
        assert [dict(document.keys) for document in trusted] == [dict(document.keys) for document in strict]


def test_cases_are_in_their_folder_and_nothing_else_is() -> None:
    for path in rule_files(cases=True):
        for document in read_yaml(path):
            assert ("cases" in document.data) == ("cases" in path.parts), path


def test_a_trusted_file_that_cannot_be_read_is_told_as_any_other(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text("id: [", encoding="utf-8")
    with pytest.raises(loading.RuleFileError):
        read_trusted_yaml(file, "ours.yaml")
