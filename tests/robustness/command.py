"""The whole command in this process, small profiles to give it, and what must hold of every run."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

from advisor_core.cli import main as cli
from advisor_core.result.run import RunResult

OUTPUT = "ASCEND_PROFILER_OUTPUT"
KERNELS = f"{OUTPUT}/kernel_details.csv"
TRACE = f"{OUTPUT}/trace_view.json"
FEW = ("--select", "HD,CO001,DQ")
"""Rules enough to see that the others are judged; which they are changes nothing about what is read."""
SHORT_ROWS = 120
"""Rows of each table that a shortened profile keeps."""
BEFORE_US = 2_000
"""So long before its first kernel its trace begins: the host is ahead."""


@dataclass(frozen=True)
class Done:
    """What a command left: exit code, both streams, and the report where one was written."""

    code: int
    out: str
    err: str
    folder: Path

    @cached_property
    def result(self) -> RunResult:
        """The result. The model is as strict here as its schema, and twenty times as fast as a check of that."""
        text = self.text("report.json")
        json.loads(text, parse_constant=lambda name: _refuse(name))
        return RunResult.model_validate_json(text, strict=True)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def _refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


def advise(*arguments: object, folder: Path | None = None) -> Done:
    """``advisor ARGUMENTS``, through the entry point. ``folder``: where the report goes (adds ``-o``)."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    words = [*map(str, arguments), *(["-o", str(folder)] if folder else [])]
    with mock.patch.object(sys, "argv", ["advisor", *words]), redirect_stdout(out), redirect_stderr(err):
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    said, complained = (stream.buffer.getvalue().decode("utf-8") for stream in (out, err))
    return Done(code, said, complained, folder or Path("advisor-report"))


def run(profile: Path, folder: Path, *options: object) -> Done:
    """``advisor run PROFILE`` in this process, held to what is true of every run: no traceback, one of the promised
    exit codes, the input as it was, a result that fits its schema, a ledger that adds up, no rule that broke."""
    before = contents(profile)
    done = advise("run", profile, "--jobs", 1, *options, folder=folder)
    assert "Traceback" not in done.err, done.err
    assert done.code in (0, 1, 2, 3), done.err
    assert contents(profile) == before
    # A mistake in a rule file of the user's is exit code 2 after the report of all other rules.
    if done.code in (0, 1) or (done.code == 2 and (folder / "report.json").exists()):
        result = done.result
        for step in result.ledger:
            assert sum(entry.ns for entry in step.entries) == step.wall_ns
            assert all(entry.ns > 0 for entry in step.entries)
        assert {rule.rule for rule in result.rules if rule.state == "error"} == set(), told(result)
    else:
        assert not folder.exists() or not any(folder.iterdir())
        assert done.err.strip()
    return done


def told(result: RunResult) -> str:
    """All diagnostics, one a line."""
    said = [f"{d.severity}: {d.source}: {d.message.en}" for d in result.diagnostics]
    said += [f"{rule.rule}: {rule.reason.en}" for rule in result.rules if rule.state == "error" and rule.reason]
    return "\n".join(said)


def contents(path: Path) -> dict[str, tuple[str, int]]:
    """Hash and time of change of every file at or below ``path``; links, pipes and devices by kind only."""
    found = {}
    for entry in [path, *_walk(path)]:
        status = os.lstat(entry)
        whole = entry.is_file() and not entry.is_symlink()
        digest = hashlib.sha256(entry.read_bytes()).hexdigest() if whole else oct(status.st_mode)
        found[os.fsdecode(entry)] = (digest, status.st_mtime_ns)
    return found


def _walk(path: Path) -> Iterator[Path]:
    if path.is_dir() and not path.is_symlink():
        for entry in sorted(path.iterdir()):
            yield entry
            yield from _walk(entry)


def shorten(profile: Path, target: Path) -> Path:
    """Write ``target``: a rank around its first collectives, where it computes, communicates and waits; kernels and
    trace of that time, the first rows of the other tables, and the exporter's sums over what is left."""
    shutil.copytree(profile, target)
    header, *kernels = read_rows(target / KERNELS)
    core, start = header.index("Accelerator Core"), header.index("Start Time(us)")
    first_call = next(row for row, values in enumerate(kernels) if values[core] in ("HCCL", "COMMUNICATION"))
    kept = kernels[max(0, first_call - SHORT_ROWS // 3) :][:SHORT_ROWS]
    first, last = float(kept[0][start]) - BEFORE_US, float(kept[-1][start])
    for path in (target / OUTPUT).glob("*.csv"):
        write_rows(path, read_rows(path)[: SHORT_ROWS + 1])
    write_rows(target / KERNELS, [header, *kept])
    events = json.loads((target / TRACE).read_text(encoding="utf-8"))
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    begin = {pid: first + BEFORE_US if name in DEVICE else first for pid, name in names.items()}
    lanes = [event for event in events if names.get(event["pid"]) != "Overlap Analysis"]
    shown = [event for event in lanes if event["ph"] == "M" or begin[event["pid"]] <= float(event["ts"]) <= last]
    (target / TRACE).write_text(json.dumps(shown), encoding="utf-8")
    calls = [event for event in shown if names.get(event["pid"]) == "CANN" and event["ph"] == "X"]
    _sum_up(target / OUTPUT, [dict(zip(header, values, strict=True)) for values in kept], calls)
    return target


DEVICE = ("Ascend Hardware", "HCCL", "Communication")


def _sum_up(output: Path, kernels: Sequence[dict[str, str]], calls: Sequence[dict[str, Any]]) -> None:
    """Write the exporter's sums anew: a recording whose files disagree is doubted."""
    talks = [row["Accelerator Core"] in ("HCCL", "COMMUNICATION") for row in kernels]
    spans = [(float(row["Start Time(us)"]), float(row["Duration(us)"])) for row in kernels]
    own = [row for row, talk in zip(kernels, talks, strict=True) if not talk]
    types = sorted({(row["Type"], row["Accelerator Core"]) for row in own})
    rows = []
    for kind, core in types:
        times = [float(row["Duration(us)"]) for row in own if (row["Type"], row["Accelerator Core"]) == (kind, core)]
        total = sum(times)
        rows.append([kind, core, len(times), total, min(times), total / len(times), max(times), 1])
    header = read_rows(output / "op_statistic.csv")[0]
    write_rows(output / "op_statistic.csv", [header, *([str(value) for value in row] for row in rows)])
    computing = _covered([span for span, talk in zip(spans, talks, strict=True) if not talk])
    talking, busy = _covered([span for span, talk in zip(spans, talks, strict=True) if talk]), _covered(spans)
    wall = max(start + length for start, length in spans) - min(start for start, _ in spans)
    sums = {"Step": kernels[0]["Step Id"], "Computing": computing, "Communication(Not Overlapped)": busy - computing}
    sums |= {"Overlapped": computing + talking - busy, "Communication": talking, "Free": wall - busy, "Stage": wall}
    header = read_rows(output / "step_trace_time.csv")[0]
    write_rows(output / "step_trace_time.csv", [header, [str(sums.get(name, 0)) for name in header]])
    called = Counter(str(call["name"]).rpartition("@")[2] for call in calls)
    apis = read_rows(output / "api_statistic.csv")
    name, count = apis[0].index("API Name"), apis[0].index("Count")
    for row in apis[1:]:
        row[count] = str(called[row[name]])
    write_rows(output / "api_statistic.csv", [apis[0], *(row for row in apis[1:] if row[count] != "0")])
    left = {row["Name"] for row in kernels}
    path = output / "communication.json"
    for step in (told := json.loads(path.read_text(encoding="utf-8"))).values():
        for kind, calls in step.items():
            step[kind] = {call: value for call, value in calls.items() if call.partition("@")[0] in left}
    path.write_text(json.dumps(told), encoding="utf-8")


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Microseconds that these (start, length) cover."""
    covered, reach = 0.0, float("-inf")
    for start, length in sorted(spans):
        covered += max(0.0, start + length - max(start, reach))
        reach = max(reach, start + length)
    return covered


def read_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def write_rows(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def change(path: Path, column: str, row: int, value: str) -> None:
    """Put ``value`` into one cell; ``row`` 0 is the first below the header."""
    rows = read_rows(path)
    rows[row + 1][rows[0].index(column)] = value
    write_rows(path, rows)
