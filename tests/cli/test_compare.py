"""``advisor compare`` from outside: a simulated job with and without two of its causes, and what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

from advisor_core.cli.console import EXIT_INPUT
from advisor_core.cli.main import cli
from advisor_core.compare.names import short_names
from advisor_core.contracts.profile import InputError
from advisor_core.run import pipeline
from advisor_core.run.deep_ranks import DeepRanks
from advisor_core.run.request import Request
from advisor_core.sample import job_from, write_sample
from reports.sections.plan import TRUSTED_ERROR

JOB = """
name: pair
like: healthy-compact
training: {steps: 5, model: {layers: 2}}
layout: {ranks: 2}
causes:
  - unfused-swiglu
  - slow-data-loader: {loading_ns: 30000000}
"""


def advisor(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``before`` and ``after``: profiles; ``before.json`` and ``after.json``: their results."""
    folder = tmp_path_factory.mktemp("pair")
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    job = job_from(folder / "job.yaml")
    write_sample(folder / "before", scenario=job)
    write_sample(folder / "after", scenario=job, without=("unfused-swiglu", "slow-data-loader"))
    for name in ("before", "after"):
        found = advisor("run", folder / name, "-o", folder / f"report-{name}", "--format", "json", "-q")
        assert found.exit_code == 0, found.output
        (folder / f"report-{name}" / "report.json").rename(folder / f"{name}.json")
    return folder


def compared(folder: Path, *names: str) -> dict[str, Any]:
    found = advisor("compare", *(folder / name for name in names), "-o", "-", "--format", "json")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert isinstance(told, dict)
    return told


def test_each_profile_is_read_as_deep_as_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[DeepRanks] = []

    def analysed(request: Request, **others: object) -> None:
        asked.append(request.deep)
        raise InputError("read")

    monkeypatch.setattr(pipeline, "analysed", analysed)
    assert advisor("compare", tmp_path, tmp_path, "--no-config", "--deep", "0,4-5").exit_code == EXIT_INPUT
    (tmp_path / "advisor.toml").write_text('deep = "all"')
    assert advisor("compare", tmp_path, tmp_path, "--config", tmp_path / "advisor.toml").exit_code == EXIT_INPUT
    assert asked == [DeepRanks(ranks=(0, 4, 5)), DeepRanks(everything=True)]


def test_a_baseline_tells_what_it_holds_as_its_report_does(folder: Path) -> None:
    file = folder / "kept.yaml"
    assert advisor("baseline", "write", folder / "before.json", file).exit_code == 0
    told, whole = compared(folder, "kept.yaml", "after.json"), compared(folder, "before.json", "after.json")
    (one,), (other,) = told["comparisons"], whole["comparisons"]
    intervals = [comparison["verdict"].pop("interval") for comparison in (one, other)]
    assert intervals[0] == pytest.approx(intervals[1], abs=1e-6)  # the steps are kept in whole ns
    for part in ("verdict", "ledger", "rest_ns"):
        assert one[part] == other[part], part
    assert [cause["path"] for cause in one["causes"]] == [cause["path"] for cause in other["causes"]]

    def states(comparison: dict[str, Any]) -> list[tuple[Any, ...]]:
        return [(f["state"], f["rule"], f["after"], f["before_ns"], f["title"]) for f in comparison["findings"]]

    assert states(one) == states(other)
    assert {"gone"} <= {f["state"] for f in one["findings"]}
    assert [obstacle["about"] for obstacle in one["obstacles"]] == ["baseline"]
    assert one["withheld"] == ["operators", "communication", "memory", "promises"]
    for part in ("operators", "collectives", "memory", "ranks", "steps", "phases", "settings"):
        assert not one[part] and one["promises"] is None
    first, second = told["runs"][0], whole["runs"][0]
    assert {**first, "name": ""} == {**second, "name": ""}
    found = advisor("compare", file, folder / "after.json", "-o", "-", "--format", "md", "--lang", "zh")
    assert found.exit_code == 0 and "基线只含" in found.stdout


def test_a_baseline_of_an_earlier_version_says_what_it_lacks(folder: Path) -> None:
    written = yaml.safe_load((folder / "kept.yaml").read_text(encoding="utf-8"))
    for name in ("steps_ns", "recorded", "judged"):
        del written[name]
    for finding in written["findings"]:
        del finding["ns"], finding["title_zh"]
    (folder / "old.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    (one,) = compared(folder, "old.yaml", "after.json")["comparisons"]
    assert one["verdict"]["outcome"] == "not_comparable" and one["verdict"]["interval"] is None
    assert {obstacle["about"] for obstacle in one["obstacles"]} == {"baseline", "baseline_unknown"}
    assert sum(row["difference_ns"] for row in one["ledger"]) == one["verdict"]["difference_ns"]
    assert "new" not in {finding["state"] for finding in one["findings"]}


def test_before_and_after(folder: Path, tmp_path: Path) -> None:
    found = advisor("compare", folder / "before.json", folder / "after.json", "-o", tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("Faster: ") and "gone: The device waits for the data loader" in found.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"compare.html", "compare.md", "compare.json"}
    told = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    jsonschema.validate(told, json.loads(advisor("result-schema", "--comparison").stdout))
    (one,) = told["comparisons"]
    results = [json.loads((folder / name).read_text(encoding="utf-8")) for name in ("before.json", "after.json")]
    walls = [result["mean_steps"][0]["wall_ns"] for result in results]
    assert [one["verdict"]["before_ns"], one["verdict"]["after_ns"]] == walls
    assert sum(row["difference_ns"] for row in one["ledger"]) == walls[1] - walls[0]
    gone = {row["rule"] for row in one["findings"] if row["state"] == "gone"}
    assert {"HD007", "NS011"} <= gone
    operators = {row["type"]: row["change"] for row in one["operators"]}
    assert operators["SwiGlu"] == "new" and operators["Swish"] == "gone"
    loader = next(cause for cause in one["causes"] if cause["path"] == "idle/host/dataloader")
    assert [one["findings"][place]["rule"] for place in loader["findings"]] == ["HD007"]


def test_the_promise_of_the_plan_comes_true(folder: Path) -> None:
    """Both causes are gone from the simulated job: the step of a long run is as short as the replay had said, within
    the error from which it is doubted."""
    (one,) = compared(folder, "before.json", "after.json")["comparisons"]
    promises = one["promises"]
    assert {one["findings"][item["finding"]]["rule"] for item in promises["items"]} == {"HD007", "NS011"}
    assert abs(promises["together_ns"] - promises["came_in_plan_ns"]) <= TRUSTED_ERROR * one["verdict"]["before_ns"]
    low, high = promises["came_range_ns"]
    assert low <= promises["came_ns"] == -one["verdict"]["difference_ns"] <= high


def test_a_profile_is_as_its_report(folder: Path) -> None:
    told, from_profiles = compared(folder, "before.json", "after.json"), compared(folder, "before", "after")
    assert from_profiles["comparisons"] == told["comparisons"]
    assert [run["name"] for run in from_profiles["runs"]] == ["before", "after"]


def test_nothing_changed(folder: Path) -> None:
    (one,) = compared(folder, "before.json", "before.json")["comparisons"]
    assert one["verdict"]["difference_ns"] == 0 and one["causes"] == [] and one["operators"] == []
    assert {row["state"] for row in one["findings"]} == {"same"} and one["promises"] is None


def test_the_other_way_round(folder: Path) -> None:
    there, back = (compared(folder, *names)["comparisons"][0] for names in _BOTH)
    assert back["verdict"]["outcome"] == "slower"
    assert back["verdict"]["difference_ns"] == -there["verdict"]["difference_ns"]
    assert {row["path"]: -row["difference_ns"] for row in back["ledger"]} == {
        row["path"]: row["difference_ns"] for row in there["ledger"]
    }
    assert {row["rule"] for row in back["findings"] if row["state"] == "new"} == {
        row["rule"] for row in there["findings"] if row["state"] == "gone"
    }


_BOTH = (("before.json", "after.json"), ("after.json", "before.json"))


def test_several(folder: Path) -> None:
    found = advisor(
        "compare", folder / "before.json", folder / "after.json", folder / "before.json", "-o", "-", "--format", "md"
    )
    assert found.exit_code == 0, found.output
    assert "3 runs, compared with before.json: 1 faster, 1 within the noise" in found.stdout


def test_in_chinese(folder: Path) -> None:
    found = advisor(
        "compare", folder / "before.json", folder / "after.json", "-o", "-", "--format", "md", "--lang", "zh"
    )
    assert found.exit_code == 0, found.output
    assert "变快" in found.stdout and "承诺与结果" in found.stdout


def test_bad_input(folder: Path, tmp_path: Path) -> None:
    good = folder / "before.json"
    (tmp_path / "old.json").write_text('{"schema_version": "1"}', encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "accepted.yaml").write_text("tool: npu-advisor", encoding="utf-8")
    refused = {
        "old.json": "old.json is not a report.json",
        "empty": "empty",
        "none": "none",
        "accepted.yaml": "baseline stands first",
    }
    for bad, said in refused.items():
        found = advisor("compare", good, tmp_path / bad, "-o", tmp_path / "out")
        assert found.exit_code == 3 and said in found.stderr, found.output
    assert not (tmp_path / "out").exists()
    assert advisor("compare", good).exit_code == 2
    assert advisor("compare", good, good, "-o", "-").exit_code == 2
    inside = advisor("compare", folder / "before", good, "-o", folder / "before" / "out")
    assert inside.exit_code == 2 and "inside" in inside.stderr


def test_names_are_as_short_as_they_can_be_told_apart() -> None:
    names = short_names([Path("/x/a/report.json"), Path("/x/b/report.json"), Path("/x/a/report.json")])
    assert names == ["a/report.json", "b/report.json", "a/report.json"]
