"""The lines of ``advisor run --timings``: the time of a run by phase, fact and advisor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

SHOWN_S = 0.001
"""Parts below this are told together: it is what a report writes seconds to."""


def timing_lines(timings: Mapping[str, float], writing: float) -> Iterator[str]:
    """Seconds by phase, then by fact and advisor, the longest first. ``timings``: of the result. ``writing``: of all
    reports."""
    phases = {name.removesuffix("_s"): seconds for name, seconds in timings.items() if name.endswith("_s")}
    total = phases.pop("total")
    yield "seconds by phase; load and analyse are sums over ranks"
    yield from _rows({**phases, "reports": writing})
    yield _row(total + writing, "total")
    parts = {name: seconds for name, seconds in timings.items() if not name.endswith("_s")}
    yield "seconds by fact and advisor, without the facts that they ask for"
    yield from _rows(dict(sorted(parts.items(), key=lambda part: -part[1])))


def _rows(seconds: Mapping[str, float]) -> Iterator[str]:
    shown = {name: spent for name, spent in seconds.items() if spent >= SHOWN_S}
    yield from (_row(spent, name) for name, spent in shown.items())
    if further := len(seconds) - len(shown):
        yield _row(sum(seconds.values()) - sum(shown.values()), f"{further} below {SHOWN_S} each")


def _row(seconds: float, name: str) -> str:
    return f"{seconds:9.3f}  {name}"
