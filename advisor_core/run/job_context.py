"""Properties of a job that decide which advice holds for it."""

from __future__ import annotations

from collections.abc import Mapping

from advisor_core.rules.applicability import Job, Possible
from advisor_core.text.base import Scalar

GRAPH_CAPTURE = "graph-capture"
"""The feature of the registry whose use a profile shows by itself: kernels that are replayed as graphs."""


def job_of(
    context: Mapping[str, Scalar], versions: Mapping[str, str], variables: Mapping[str, str], role: str = ""
) -> Job:
    """From the fact ``context``, recorded versions and variables, and the known role that was profiled by itself (''
    for none)."""
    graphs = context.get("graph_mode")
    return Job(
        phases=_phases(str(context.get("kind") or ""), str(context.get("phase") or "")),
        roles=frozenset({role}) if role else None,
        frameworks=_one(context.get("framework")),
        chips=frozenset(str(context["chip"]).split()) if context.get("chip") else None,
        versions=versions,
        variables=variables,
        features={GRAPH_CAPTURE: bool(graphs)} if graphs is not None else {},
    )


def _phases(kind: str, phase: str) -> Possible:
    if kind == "training":
        return frozenset({"training"})
    if kind != "inference":
        return None
    return frozenset({phase} if phase in ("prefill", "decode") else {"prefill", "decode"})


def _one(value: Scalar) -> Possible:
    return frozenset({str(value)}) if value else None
