"""Perfetto's own trace processor opens what is written for it: nothing is lost, no arrow leads nowhere."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from advisor_core.cli.main import cli
from advisor_core.sample import job_from, write_sample
from reports.timeline.trace import TraceRenderer
from tests import report_fixtures
from tests.perfetto.processor import Processor
from tests.reports.timeline.timelines import of_two, with_timeline
from tests.slicing import JOB

SLICES = "select s.ts, s.dur, s.name from slice s"


def written_ns(event: dict[str, Any]) -> tuple[int, int, str]:
    return int(Decimal(event["ts"]) * 1000), round(event.get("dur", 0) * 1000), event["name"]


@pytest.mark.parametrize(("name", "lang"), [("training", "en"), ("of_roles", "zh"), ("hostile", "zh")])
def test_the_combined_trace(name: str, lang: str) -> None:
    text = TraceRenderer().render(with_timeline(getattr(report_fixtures, name)()), lang)
    events = json.loads(text)["traceEvents"]
    with Processor(text.encode()) as trace:
        assert trace.problems() == {}
        spans = sorted(written_ns(event) for event in events if event["ph"] == "X")
        assert sorted(trace.query(SLICES)) == spans and spans
        lanes = [(event["tid"], event["args"]["name"]) for event in events if event["name"] == "thread_name"]
        assert set(trace.query("select tid, name from thread where name is not null")) >= set(lanes)


def test_an_arrow_leads_from_the_last_rank_to_the_wait() -> None:
    """At times of today, which a double does not hold to the nanosecond."""
    late = 1_736_408_883_694_756_090
    timeline = of_two()
    for rank in timeline.ranks:
        rank.steps[:] = [
            s.model_copy(update={"start_ns": s.start_ns + late, "end_ns": s.end_ns + late}) for s in rank.steps
        ]
        for track in rank.tracks:
            track.spans[:] = [(start + late, ns, name) for start, ns, name in track.spans]
    timeline.arrows[:] = [
        arrow.model_copy(update={"start_ns": arrow.start_ns + late, "end_ns": arrow.end_ns + late})
        for arrow in timeline.arrows
    ]
    text = TraceRenderer().render(report_fixtures.empty().model_copy(update={"timeline": timeline}), "en")
    origin = json.loads(text)["otherData"]["origin_ns"]
    with Processor(text.encode()) as trace:
        assert trace.problems() == {}
        found = trace.query(
            "select o.ts as came, o.name as call, i.ts as released from flow f "
            "join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id"
        )
    (arrow,) = timeline.arrows
    (last,) = (rank for rank in timeline.ranks if rank.rank == arrow.last_rank)
    came = arrow.start_ns - last.ahead_ns - origin
    assert found == [(came, "hcom_allReduce", came)]


@pytest.fixture(scope="module", params=["text", "db"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a simulated job, with slices."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    write_sample(folder / "profile", scenario=job_from(folder / "job.yaml"), format=request.param)
    arguments = ["run", str(folder / "profile"), "-o", str(folder / "report"), "--format", "trace", "-q", "--no-config"]
    found = CliRunner().invoke(cli, arguments)
    assert found.exit_code == 0, found.output
    return folder / "report"


def test_slices(report: Path) -> None:
    files = sorted((report / "slices").iterdir())
    assert len(files) > 3
    arrows = 0
    for file in files[:2]:
        text = file.read_bytes()
        read = json.loads(text)
        events = read if isinstance(read, list) else read["traceEvents"]
        with Processor(text) as trace:
            assert trace.problems() == {}, file.name
            spans = [written_ns(event) for event in events if event["ph"] == "X"]
            assert sorted(trace.query(SLICES)) == sorted(spans), file.name
            ((count,),) = trace.query("select count(*) as n from flow")
            assert count == sum(event["ph"] == "f" for event in events)
            arrows += count
    assert arrows


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ascend/alexnet-ddp-text-level1", marks=pytest.mark.search),
        "kineto/bert-small-h100.json.gz",
    ],
)
def test_real_recordings(profiles: Path, tmp_path: Path, name: str) -> None:
    """All that is written is shown. Of arrows only those of the recording that end after they begin, and once."""
    arguments = ["run", str(profiles / name), "-o", str(tmp_path), "--format", "trace", "-q", "--no-config"]
    arguments += ["--select", "HD,GHD"]  # rules of both vendors with a place in the trace
    found = CliRunner().invoke(cli, arguments)
    assert found.exit_code == 0, found.output
    for file in (tmp_path / "report.trace.json", tmp_path / "slices" / "F1.json"):
        text = file.read_bytes()
        read = json.loads(text)
        events = read if isinstance(read, list) else read["traceEvents"]
        with Processor(text) as trace:
            assert trace.problems() == {}, file.name
            shown = sorted((ts, name) for ts, _, name in trace.query(SLICES))
            assert shown == sorted(written_ns(event)[::2] for event in events if event["ph"] in "Xi")
