"""Traces of the PyTorch profiler (Kineto) of CUDA and ROCm devices: a file for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.profile import InputError, Profile, RankInput
from advisor_core.contracts.tables import SCHEMAS, Int64Array, PositionKind, Table
from advisor_core.loaders.kineto.head import open_trace
from advisor_core.loaders.kineto.layout import find_traces, ranks
from advisor_core.loaders.kineto.words import VENDOR
from advisor_core.loaders.readers.files import regular_size
from advisor_core.loaders.readers.gzip_file import GzipFile
from advisor_core.loaders.readers.json_events import ChunkIndex, ReadAt, read_plain
from advisor_core.loaders.readers.problems import Problems
from advisor_core.result.run import InputFile
from advisor_core.text.messages import message

if TYPE_CHECKING:
    from advisor_core.loaders.kineto.tables import Trace

KIND: Final = "pytorch_kineto"


@dataclass(frozen=True)
class TraceSource:
    """The trace: source rows are ordinals of events, positions byte offsets of their ``{``, in a compressed file those
    of its content."""

    file: str
    path: Path
    sha256: str | None
    index: ChunkIndex
    read_at: ReadAt
    position: PositionKind = "offset"

    def positions(self, source_rows: Int64Array) -> Int64Array:
        return self.index.positions(self.path, source_rows, self.read_at)

    def tables(self, source_rows: Int64Array) -> Sequence[str]:
        return ()


class KinetoLoader:
    """``*.pt.trace.json``, ``*.pt.trace.json.gz`` and other JSON files that hold a trace of Kineto."""

    name = "kineto"

    def discover(self, root: Path) -> Sequence[RankInput]:
        traces = find_traces(root)
        numbers = ranks(traces)
        return [
            RankInput(
                root=root,
                directory=trace.path,
                kind=KIND,
                rank=numbers[trace.path][0],
                loader=self.name,
                bytes=regular_size(trace.path) or 0,
                problem=trace.problem,
                recorded_at=trace.recorded_at,
                vendor=VENDOR,
            )
            for trace in traces
        ]

    def traces(self, source: RankInput) -> Sequence[Path]:
        return [source.directory]

    def load(self, source: RankInput) -> Profile:
        from advisor_core.loaders.kineto.tables import read_trace  # a run of another vendor reads none

        if source.problem:
            raise InputError(source.problem)
        path = source.directory
        problems = Problems(_shown(source))
        try:
            with open_trace(path) as file:
                trace = read_trace(file, problems)
                read_at = file.points.read_at if isinstance(file, GzipFile) else read_plain
                read = file.finish(path.name)
        except Unavailable as reason:
            raise InputError(f"{path}: {reason.reason.en}") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
        if not trace.frames:
            reasons = "; ".join(sorted({missing.reason.en for missing in trace.missing.values()}))
            raise InputError(f"{path}: nothing in this trace can be used: {reasons}")
        return _profile(
            source, trace, TraceSource(problems.file, path, read.sha256, trace.index, read_at), read, problems
        )


def _profile(source: RankInput, trace: Trace, rows: TraceSource, read: InputFile, problems: Problems) -> Profile:
    from advisor_core.loaders.kineto.maker import maker

    around = trace.recorded
    if around.rank is None and around.world_size is None and "collectives" in trace.frames:
        problems.say("info", message("kineto.rank_unknown", file=problems.file, rank=source.rank))
    if around.rank not in (None, source.rank):
        warning = message("kineto.other_rank", file=problems.file, recorded=around.rank, rank=source.rank)
        problems.say("warning", warning)
    chip = around.chip(trace.device)
    return Profile(
        rank=source.rank,
        kind=KIND,
        path=problems.file,
        level=None,
        vendor=VENDOR,
        framework="pytorch",
        versions=around.versions,
        profiler=around.profiler,
        variables={},
        tables={name: Table(SCHEMAS[name], trace.frames[name], rows) for name in SCHEMAS if name in trace.frames},
        missing=trace.missing,
        files=[read],
        diagnostics=problems.diagnostics(),
        chip=chip,
        maker=maker(chip, around.versions, trace.frames.get("host_events")),
        world_size=around.world_size,
        groups=around.groups,
        group_names=around.group_names,
        setting_files={"profiler": problems.file} if around.profiler else {},
    )


def _shown(source: RankInput) -> str:
    """The name of the trace in a report: relative to what the user named."""
    if source.directory != source.root and source.directory.is_relative_to(source.root):
        return source.directory.relative_to(source.root).as_posix()
    return source.directory.name
