"""``--redact``: who ran a job and where is in nothing that a report writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor_core.result.redact import RedactError, redact
from advisor_core.result.run import Diagnostic, RunResult
from advisor_core.text.base import Text
from tests.robustness.command import OUTPUT, advise, contents

SECRETS = ("alice.w", "alice\\_w", "gpubox", "10.20.30.40")
REPORTS = ("report.html", "report.md", "report.json")


@pytest.fixture
def private(job: Path) -> Path:
    """The job as ``alice.w`` ran it on the host ``gpubox-7``: in call stacks, names of files, and a broken file."""
    for directory in sorted(job.iterdir()):
        for name in ("operator_details.csv", "trace_view.json"):
            path = directory / OUTPUT / name
            text = path.read_text(encoding="utf-8").replace("train.py(", "/home/alice.w/proj/train.py(")
            path.write_text(text, encoding="utf-8")
        metadata = directory / "profiler_metadata.json"
        recorded = json.loads(metadata.read_text(encoding="utf-8")) if metadata.exists() else {}
        recorded["ENV_VARIABLES"] = {"HCCL_ALGO": "/data/alice.w/ring from 10.20.30.40"}
        metadata.write_text(json.dumps(recorded), encoding="utf-8")
        (directory / OUTPUT / "communication_matrix.json").write_text("{")
        directory.rename(job / re.sub(r"^[^_]+_", "gpubox-7.lab.example_", directory.name))
    return job


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.search)])
def test_no_name_in_any_output(private: Path, tmp_path: Path, lang: str) -> None:
    before = contents(private)
    plain = advise("run", private, "--lang", lang, "--jobs", 1, folder=tmp_path / "plain")
    clean = advise("run", private, "--lang", lang, "--jobs", 1, "--redact", folder=tmp_path / "clean")
    assert plain.code == clean.code == 0 and contents(private) == before
    told = "".join(plain.text(name) for name in REPORTS) + plain.err
    assert [secret for secret in SECRETS if secret in told] == [s for s in SECRETS if s != "alice\\_w"], (
        "the reports hold what is to be left out"
    )
    for text in (*(clean.text(name) for name in REPORTS), clean.err, clean.out.replace(str(tmp_path), "")):
        assert not re.search(r"alice|gpubox|lab\.example|10\.20\.30\.40|/home/", text)
    json_text = clean.text("report.json")
    assert "~/proj/train.py(" in json_text and "x.x.x.x" in json_text and "host1_" in json_text
    ours, theirs = clean.result, plain.result
    assert ours.ledger != theirs.ledger  # it names files
    assert [[(e.path, e.ns) for e in step.entries] for step in ours.ledger] == [
        [(e.path, e.ns) for e in step.entries] for step in theirs.ledger
    ]
    assert [finding.fingerprint for finding in ours.findings] == [finding.fingerprint for finding in theirs.findings]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, short_job: Path) -> RunResult:
    done = advise("run", short_job, "--jobs", 1, "--format", "json", folder=tmp_path_factory.mktemp("report"))
    return done.result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/alice/x.py(3): f", "~/x.py(3): f"),
        ("/home/alice", "~"),
        ('File "/mnt/nfs/home/bob-2/x.py", line 3', 'File "~/x.py", line 3'),
        ("/Users/carol/x.py; /home/alice/y.py", "~/x.py; ~/y.py"),
        ("C:\\Users\\Dave Miller\\x.py(3)", "~\\x.py(3)"),
        ("/root/x.py and /rooted/x.py", "~/x.py and /rooted/x.py"),
        ("/home/eve\\_1/x.py and eve\\_1, /data/eve_1/y", "~/x.py and user1, /data/user1/y"),
        ("/home/data/x.py: the data loader of /mnt/data/y", "~/x.py: the data loader of /mnt/user1/y"),
        ("/home/li/x.py linear li", "~/x.py linear user1"),
        ("node-1_77_20250109074803600_ascend_pt/ASCEND_PROFILER_OUTPUT on node-1, not node-12", None),
        ("10.0.0.1%eth0_60000_0_17364105 of 8.3.0.1", "x.x.x.x%eth0_60000_0_17364105 of 8.3.0.1"),
        ("idle/host/python", "idle/host/python"),
        ("/usr/lib/python3/site-packages/torch/nn.py(1)", "/usr/lib/python3/site-packages/torch/nn.py(1)"),
    ],
)
def test_what_is_replaced(result: RunResult, text: str, expected: str | None) -> None:
    host = {source.path.partition("_")[0] for source in result.inputs}
    said = Diagnostic(severity="info", source=text, message=Text(en="", zh=""))
    others = [source.model_copy(update={"path": "p", "files": []}) for source in result.inputs]
    bare = result.model_copy(update={"diagnostics": [said], "inputs": others, "findings": [], "ledger": []})
    if expected is None:
        expected = "host1_77_20250109074803600_ascend_pt/ASCEND_PROFILER_OUTPUT on host1, not node-12"
    assert redact(bare).diagnostics[0].source == expected
    assert host == {"node-1"}


def test_words_of_the_user_are_replaced_everywhere(result: RunResult) -> None:
    text = Text(en="of Falcon\\_7 and myfalcon7b", zh="猎鹰号的 falcon")
    said = Diagnostic(severity="info", source="/data/FALCON-x/\u730e\u9e70\u53f7/y", message=text)
    variables = {"FALCON_HOME": "/opt/falcon", "OTHER": "1"}
    environment = result.environment.model_copy(update={"variables": variables})
    named = result.model_copy(update={"diagnostics": [said], "environment": environment})
    clean = redact(named, ["falcon", "Falcon_7", "猎鹰号"])
    assert clean.environment.variables == {"word1_HOME": "/opt/word1", "OTHER": "1"}
    assert clean.diagnostics[0].source == "/data/word1-x/word3/y"
    assert clean.diagnostics[0].message == Text(en="of word2 and myword17b", zh="word3的 word1")
    assert "falcon" not in clean.model_dump_json().lower()
    assert clean.findings == redact(result).findings


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("ab", "too short"),
        ("猎", "too short"),
        ("estimate", "made of"),
        ("communication", "cannot do without"),
        ("20250109", "no letter"),
        ("hiascend", "references|url"),
    ],
)
def test_words_that_a_report_cannot_do_without_are_refused(result: RunResult, word: str, said: str) -> None:
    with pytest.raises(RedactError, match=said):
        redact(result, [word])


def test_what_holds_no_name_stays_as_it_is(result: RunResult) -> None:
    """Numbers, links, rules, units: only texts are looked at, and the same result gives the same bytes."""
    again = redact(result)
    assert redact(again) == again == redact(result)
    assert [(r.rule, r.state, r.condition, r.params) for r in again.rules] == [
        (r.rule, r.state, r.condition, r.params) for r in result.rules
    ]
    # The title of DQ016 names files, whose folders are redacted.
    assert [(f.title, f.impact, f.observation) for f in again.findings if f.rule != "DQ016"] == [
        (f.title, f.impact, f.observation) for f in result.findings if f.rule != "DQ016"
    ]
