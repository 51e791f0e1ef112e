"""One result of several roles that were profiled by themselves: what belongs to a role carries its name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from advisor_core.result.finding import Finding
from advisor_core.result.links import Link, LinkCell, LinkMatrix
from advisor_core.result.run import Diagnostic, Environment, RunResult
from advisor_core.result.timeline import Timeline
from advisor_core.run.claims import rank_findings
from advisor_core.text.base import Scalar, Text
from advisor_core.text.listed import listed
from advisor_core.text.messages import message

_SEVERITIES = ("error", "warning", "info")


def of_role(result: RunResult, role: str) -> RunResult:
    """The result of one role, with its name on all that it holds. Fingerprints of findings become those of the role:
    the same problem in two roles is two findings. The replay is of one job, not of roles that take turns: it has no
    model and no plan."""
    profile = result.profile.model_copy(
        update={"steps": _named(result.profile.steps, role), "roles": {role: result.profile.kind}}
    )
    views = [view.model_copy(update={"id": f"{role}-{view.id}"}) for view in result.views]
    return result.model_copy(
        update={
            "profile": profile,
            "inputs": _named(result.inputs, role),
            "ledger": _named(result.ledger, role),
            "findings": [_finding(finding, role) for finding in result.findings],
            "rules": _named(result.rules, role),
            "views": _named(views, role),
            "diagnostics": _named(result.diagnostics, role),
            "side_by_side": _named(result.side_by_side, role),
            "pipelines": _named(result.pipelines, role),
            "spread": _named(result.spread, role),
            "links": _links(result.links, role),
            "work": _named(result.work, role),
            "memory": _named(result.memory, role),
            "timeline": _timeline(result.timeline, role),
            "role_environments": {role: result.environment},
            "model": None,
            "plan": None,
            "critical_path": [],
            "slack": [],
            "balance": None,
        }
    )


def guessed_roles(roles: Sequence[str]) -> Diagnostic:
    """Said of directories that are taken for roles because a rank has a profile in each of them, not by their names:
    they may as well hold different jobs."""
    text = message("roles.guessed", directories=listed([Text(en=role, zh=role) for role in roles]))
    return Diagnostic(severity="warning", source="job", message=text)


def joined(
    parts: Sequence[tuple[str, RunResult]], said: Sequence[Diagnostic] = (), reinforcement: bool = True
) -> RunResult:
    """One result from those of the roles, which are put in order of time; ``said``: what is said of all roles, or of
    some of which nothing could be read; ``reinforcement``: whether they are known to be roles of reinforcement
    learning. The findings of all roles are ranked together."""
    ordered = sorted(parts, key=lambda part: (min(_starts(part[1]), default=0), part[0]))
    results = [result for _, result in ordered]
    first = results[0]
    profiles = [result.profile for result in results]
    environments = {role: result.environment for role, result in ordered}
    kinds = {found.kind for found in profiles}
    profile = first.profile.model_copy(
        update={
            "kind": "rl" if reinforcement else kinds.pop() if len(kinds) == 1 else "unknown",
            "ranks": sorted({rank for found in profiles for rank in found.ranks}),
            "world_size": max((found.world_size for found in profiles if found.world_size), default=None),
            "steps": [step for found in profiles for step in found.steps],
            "parallel": dict(first.profile.parallel)
            if all(p.parallel == first.profile.parallel for p in profiles)
            else {},
            "roles": {role: found.kind for (role, _), found in zip(ordered, profiles, strict=True)},
        }
    )
    diagnostics = [*said, *(diagnostic for result in results for diagnostic in result.diagnostics)]
    return first.model_copy(
        update={
            "profile": profile,
            "environment": Environment(
                chip=dict(first.environment.chip),
                variables={k: str(v) for k, v in _beside({n: e.variables for n, e in environments.items()}).items()},
                profiler=_beside({name: found.profiler for name, found in environments.items()}),
            ),
            "inputs": [source for result in results for source in result.inputs],
            "ledger": [step for result in results for step in result.ledger],
            "findings": rank_findings([finding for result in results for finding in result.findings]),
            "rules": sorted((rule for result in results for rule in result.rules), key=lambda rule: rule.rule),
            "views": [view for result in results for view in result.views],
            "diagnostics": sorted(diagnostics, key=lambda diagnostic: _SEVERITIES.index(diagnostic.severity)),
            "timings": summed([result.timings for result in results]),
            "phases": [time for result in results for time in result.phases],
            "side_by_side": [one for result in results for one in result.side_by_side],
            "pipelines": [one for result in results for one in result.pipelines],
            "spread": [spread for result in results for spread in result.spread],
            "links": [matrix for result in results for matrix in result.links],
            "work": [work for result in results for work in result.work],
            "memory": [peak for result in results for peak in result.memory],
            "timeline": _joined_timeline([result.timeline for result in results if result.timeline is not None]),
            "role_environments": environments,
        }
    )


def _timeline(found: Timeline | None, role: str) -> Timeline | None:
    if found is None:
        return None
    return found.model_copy(update={"ranks": _named(found.ranks, role), "arrows": _named(found.arrows, role)})


def _joined_timeline(found: Sequence[Timeline]) -> Timeline | None:
    """Those of the roles one below the other, each by the clock of its own first rank."""
    if not found:
        return None
    return Timeline(
        ranks=[rank for one in found for rank in one.ranks],
        recorded_ranks=sum(one.recorded_ranks for one in found),
        arrows=[arrow for one in found for arrow in one.arrows],
        waits=sum(one.waits for one in found),
    )


def _starts(result: RunResult) -> list[int]:
    return [step.start_ns for step in result.profile.steps if step.start_ns is not None]


def _named(things: Sequence[Any], role: str) -> list[Any]:
    return [thing.model_copy(update={"role": role}) for thing in things]


def _own(fingerprint: str, role: str) -> str:
    """The fingerprint of the finding as one of the role."""
    return hashlib.sha256(f"{role}\0{fingerprint}".encode()).hexdigest()[:12]


def _links(found: Sequence[LinkMatrix], role: str) -> list[LinkMatrix]:
    def own(one: Link | LinkCell) -> Any:
        return one.model_copy(update={"findings": [_own(fingerprint, role) for fingerprint in one.findings]})

    return [
        matrix.model_copy(
            update={"role": role, "cells": list(map(own, matrix.cells)), "links": list(map(own, matrix.links))}
        )
        for matrix in found
    ]


def _finding(finding: Finding, role: str) -> Finding:
    return finding.model_copy(
        update={
            "role": role,
            "fingerprint": _own(finding.fingerprint, role),
            "explains": [_own(other, role) for other in finding.explains],
            "explained_by": [_own(other, role) for other in finding.explained_by],
            "first_pass": None if finding.first_pass is None else _own(finding.first_pass, role),
        }
    )


def _beside(settings: Mapping[str, Mapping[str, Scalar]]) -> dict[str, Scalar]:
    """Settings by name; where the roles that record one differ, what each has."""
    names = dict.fromkeys(name for found in settings.values() for name in found)
    told: dict[str, Scalar] = {}
    for name in names:
        values = {role: found[name] for role, found in settings.items() if name in found}
        same = len(set(map(repr, values.values()))) == 1
        told[name] = (
            next(iter(values.values())) if same else "; ".join(f"{role}: {value}" for role, value in values.items())
        )
    return told


def summed(timings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Seconds by name, of all that have it."""
    names = sorted({name for found in timings for name in found})
    return {name: sum(found.get(name, 0.0) for found in timings) for name in names}
