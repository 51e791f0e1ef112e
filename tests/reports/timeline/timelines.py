"""Results with a timeline: the lanes are made of what their reports point out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from advisor_core.result.run import LedgerStep, RunResult
from advisor_core.result.timeline import Arrow, RankTimeline, Timeline, Track, Window

FILES = {"html": "report.html", "timeline": "timeline.html"}


def track(kind: str, spans: Sequence[tuple[int, int, str]], stream: int | None = None) -> Track:
    """A lane of spans: start, length and name."""
    names = list(dict.fromkeys(name for *_, name in spans))
    rows = sorted({(start, ns, names.index(name)) for start, ns, name in spans})
    talks = [number for number, name in enumerate(names) if name.startswith("hcom")]
    return Track.model_validate({"kind": kind, "names": names, "spans": rows, "stream": stream, "talks": talks})


def with_timeline(result: RunResult, files: dict[str, str] | None = None) -> RunResult:
    """The result with its steps, the largest stretches of its ledgers, and the kernels that its evidence lists."""
    windows = defaultdict(list)
    for step in result.profile.steps:
        if step.start_ns is not None and step.end_ns is not None:
            window = Window(step=step.step, start_ns=step.start_ns, end_ns=step.end_ns)
            windows[step.role, step.rank].append(window)
    ranks = [
        RankTimeline(
            role=role,
            rank=rank,
            steps=own,
            recorded_steps=len(own) + 1,
            tracks=[
                track("ledger", _booked([s for s in result.ledger if (s.role, s.rank) == (role, rank)])),
                track("stream", _listed(result, role, rank), 2),
            ],
        )
        for (role, rank), own in windows.items()
    ]
    return result.model_copy(
        update={"timeline": Timeline(ranks=ranks, recorded_ranks=len(ranks) + 3, files=files or {})}
    )


def _booked(steps: Sequence[LedgerStep]) -> list[tuple[int, int, str]]:
    spans: list[tuple[int, int, str]] = []
    for step in steps:
        for entry in step.entries:
            times = [(piece.get("start_ns"), piece.get("ns")) for piece in entry.pieces]
            spans += [(a, b, entry.path) for a, b in times if isinstance(a, int) and isinstance(b, int)]
    kept: list[tuple[int, int, str]] = []
    for span in sorted(spans):  # a ledger has no two entries at one moment
        if not kept or span[0] >= kept[-1][0] + kept[-1][1]:
            kept.append(span)
    return kept


def _listed(result: RunResult, role: str | None, rank: int) -> list[tuple[int, int, str]]:
    return [
        (row["start_ns"], row["duration_ns"], str(row.get("name", "?")))
        for finding in result.findings
        if finding.role == role
        for evidence in finding.evidence
        if evidence.kind == "rows" and evidence.rank == rank
        for row in evidence.rows
        if isinstance(row.get("start_ns"), int) and isinstance(row.get("duration_ns"), int)
    ]  # type: ignore[misc]


def of_two(*, ahead_ns: int = 0) -> Timeline:
    """Rank 1 comes 30 ns late to a collective of 50 ns; its clock is ``ahead_ns``."""
    first = RankTimeline(
        rank=0,
        steps=[Window(step=7, start_ns=1000, end_ns=1100)],
        recorded_steps=1,
        tracks=[
            track("ledger", [(1000, 50, "compute/matmul"), (1050, 30, "communication/wait/rank 1"),
                             (1080, 20, "communication/transmit")]),
            track("stream", [(1000, 50, "MatMul")], 2),
            track("stream", [(1050, 50, "hcom_allReduce")], -1),
        ],
    )  # fmt: skip
    a = ahead_ns
    second = RankTimeline(
        rank=1,
        ahead_ns=a,
        steps=[Window(step=7, start_ns=1000 + a, end_ns=1100 + a)],
        recorded_steps=1,
        tracks=[
            track("ledger", [(1000 + a, 80, "compute/matmul"), (1080 + a, 20, "communication/transmit")]),
            track("stream", [(1000 + a, 80, "MatMul")], 2),
            track("stream", [(1080 + a, 20, "hcom_allReduce")], -1),
        ],
    )
    arrow = Arrow(last_rank=1, stream=-1, start_ns=1080 + a, rank=0, end_ns=1080, ns=30)
    return Timeline(ranks=[first, second], recorded_ranks=2, arrows=[arrow], waits=1)
