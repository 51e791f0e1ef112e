"""Ranks of which only the sums of a cluster analysis are there: the parts of their steps, and nothing inside them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from advisor_core.contracts.missing import Missing, Unavailable
from advisor_core.contracts.profile import InputError, Profile, RankInput
from advisor_core.contracts.tables import SCHEMAS, STEP_TRACE, Table
from advisor_core.loaders.ascend_words import VENDOR
from advisor_core.loaders.cluster_analysis.step_trace import NAME, ClusterSteps, read_cluster_steps, recorded_ranks
from advisor_core.loaders.discover import directories
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import Problems
from advisor_core.loaders.readers.slices import LineSource
from advisor_core.result.run import Diagnostic, InputFile
from advisor_core.text.messages import message

KIND: Final = "cluster_analysis"


class ClusterAnalysisLoader:
    """Load ``cluster_step_trace_time.csv``, which has the parts of the steps of every rank of a job."""

    name = "cluster_analysis"

    def discover(self, root: Path) -> Sequence[RankInput]:
        if not root.is_dir():
            found = [root] if root.name == NAME and root.is_file() else []
        else:
            found = [directory / NAME for directory in directories(root) if (directory / NAME).is_file()]
        return [
            RankInput(
                root=root,
                directory=path.parent,
                kind=KIND,
                rank=rank,
                loader=self.name,
                bytes=0,
                vendor=VENDOR,
                coarse=True,
            )
            for path in found
            for rank in recorded_ranks(path)
        ]

    def load(self, source: RankInput) -> Profile:
        path = source.directory / NAME
        root = source.root if source.root.is_dir() else source.root.parent
        name = path.relative_to(root).as_posix()
        try:
            status = path.stat()
            steps, read, diagnostics = _read(path, name, status.st_mtime_ns, status.st_size)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
        except Unavailable as failure:
            raise InputError(f"{path}: {failure.reason.en}") from None
        if source.rank not in steps.ranks:
            raise InputError(f"{path}: nothing of rank {source.rank} can be used")
        absent = Missing(
            message("loader.cluster.sums"), message("loader.cluster.collect"), ("device", "host", "level1")
        )
        source_of = LineSource(name, read.sha256)
        return Profile(
            rank=source.rank,
            kind=KIND,
            path=name,
            vendor=VENDOR,
            level=None,
            framework=None,
            versions={},
            profiler={},
            variables={},
            tables={STEP_TRACE.name: Table(STEP_TRACE, steps.ranks[source.rank], source_of)},
            missing={name: absent for name in SCHEMAS if name != STEP_TRACE.name},
            files=[read],
            diagnostics=diagnostics,
            world_size=max(steps.ranks) + 1,
            parallel={"pp": len(steps.stages)} if steps.stages else {},
            coarse=True,
        )


@lru_cache(maxsize=1)
def _read(path: Path, name: str, modified_ns: int, size: int) -> tuple[ClusterSteps, InputFile, Sequence[Diagnostic]]:
    """The file, once for all of its ranks that a process loads, as long as it does not change."""
    problems = Problems(name)
    with HashedFile(path) as file:
        steps = read_cluster_steps(file, problems)
        return steps, file.finish(name), problems.diagnostics()
