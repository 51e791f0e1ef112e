"""DQ012: the size of the profile."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Interval, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    PROFILE,
    Facts,
    steps,
)
from advisors.columns import FILE, PROFILED_STEPS
from advisors.measuring import DEVICE_LANE, row
from advisors.messages import message

_LISTED = 10


@advisor(
    "capture.size",
    needs=(PROFILE, steps),
    columns=(
        Column("bytes", "int", "B", "the files that were read", zh="字节数"),
        Column("recorded_ns", "int", "ns", "from the first to the last task of the profiled steps", zh="记录值"),
        PROFILED_STEPS,
    ),
    evidence=(FILE,),
)
def size(facts: Facts, params: Params) -> Observations:
    """The size of the recording."""
    profile, windows = facts[PROFILE], facts[steps]
    recorded = int(windows["end_ns"].max() - windows["start_ns"].min())
    total = sum(file.bytes for file in profile.files)
    frame = row(bytes=total, recorded_ns=recorded, steps=len(windows))

    def evidence(number: int) -> Sequence[Reference]:
        largest = sorted(profile.files, key=lambda file: (-file.bytes, file.name))[:_LISTED]
        files: list[dict[str, Scalar]] = [{"file": file.name, "bytes": file.bytes} for file in largest]
        start, end = int(windows["start_ns"].min()), int(windows["end_ns"].max())
        return [
            Interval(message("capture.span"), start, end, DEVICE_LANE),
            *([Metric(message("capture.files"), files)] if files else []),
        ]

    return Observations(frame, evidence)
