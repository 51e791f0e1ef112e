"""Properties of a job that decide which advice holds for it."""

from __future__ import annotations

from collections.abc import Mapping

from advisor_core.rules.applicability import Job
from advisor_core.rules.places import Possible
from advisor_core.text.base import Scalar
from advisor_core.vocabulary.parts import PHASES

GRAPH_CAPTURE = "graph-capture"
"""The feature of the registry whose use a profile shows by itself: kernels that are replayed as graphs."""


def job_of(
    context: Mapping[str, Scalar], versions: Mapping[str, str], variables: Mapping[str, str], role: str = ""
) -> Job:
    """From the fact ``context``, recorded versions and variables, and the known role that was profiled by itself (''
    for none)."""
    graphs = context.get("graph_mode")
    return Job(
        phases=_phases(context),
        roles=frozenset({role}) if role else None,
        frameworks=_one(context.get("framework")),
        software=frozenset(str(context.get("software") or "").split()),
        chips=frozenset(str(context["chip"]).split()) if context.get("chip") else None,
        versions=versions,
        variables=variables,
        features={GRAPH_CAPTURE: bool(graphs)} if graphs is not None else {},
    )


def _phases(context: Mapping[str, Scalar]) -> Possible:
    """All phases of the recording: of what lies in one of them the place decides."""
    told = [PHASES[part] for part in str(context.get("parts") or "").split()]
    if told and None not in told:
        return frozenset().union(*(phases for phases in told if phases is not None))
    if context.get("kind") == "training":
        return frozenset({"training"})
    if context.get("kind") != "inference":
        return None
    return PHASES.get(str(context.get("phase"))) or frozenset({"prefill", "decode"})


def _one(value: Scalar) -> Possible:
    return frozenset({str(value)}) if value else None
