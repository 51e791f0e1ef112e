"""Results that the renderers are tried on: what the tool said of simulated jobs, kept as compressed report.json.

`make report-fixtures` writes them anew; each test of a renderer gets the same result as long as nobody does. They are
whole, since a renderer shows all of a result, and compressed, since they would be 3 MB otherwise.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

from advisor_core.result.finding import Finding
from advisor_core.result.run import Environment, Profile, RuleOutcome, RunResult, Tool
from advisor_core.run.compose import compose
from tests.report_fixtures.hostile import HOSTILE, MARKUP, SCRIPT, with_hostile_names

__all__ = [
    "HOSTILE",
    "MARKUP",
    "SCRIPT",
    "empty",
    "every_state",
    "hostile",
    "hostile_roles",
    "keep",
    "launch_blocking",
    "many_findings",
    "many_ranks",
    "marked",
    "nothing_found",
    "of_roles",
    "recomposed",
    "stored",
    "training",
    "two_of_four",
]

_FOLDER = Path(__file__).parent


def stored(name: str) -> bytes:
    """The report.json of a job, as kept."""
    return gzip.decompress((_FOLDER / f"{name}.json.gz").read_bytes())


def keep(name: str, result: RunResult) -> Path:
    """Keep the result as that of the job; the same result gives the same bytes."""
    path = _FOLDER / f"{name}.json.gz"
    path.write_bytes(gzip.compress(result.model_dump_json().encode(), 9, mtime=0))
    return path


@cache
def _loaded(name: str) -> RunResult:
    return RunResult.model_validate_json(stored(name))


def training() -> RunResult:
    """Two ranks of a training that nobody has tuned: 24 findings, causes below causes, evidence of every kind."""
    return _loaded("training")


def two_of_four() -> RunResult:
    """Two of four ranks, which wait for one that was not recorded."""
    return _loaded("two_of_four")


def launch_blocking() -> RunResult:
    """One rank that waits for every launch: the first finding says which setting to change."""
    return _loaded("launch_blocking")


def nothing_found() -> RunResult:
    """A tuned job, in which no rule found a problem, and some could not answer."""
    return _loaded("nothing_found")


def many_ranks() -> RunResult:
    """64 ranks, which wait for one of them."""
    return _loaded("many_ranks")


def of_roles() -> RunResult:
    """Reinforcement learning whose roles were profiled one by one."""
    return _loaded("of_roles")


def marked() -> RunResult:
    """Reinforcement learning in one recording, whose marks divide the steps."""
    return _loaded("marked")


@cache
def hostile() -> RunResult:
    """Two of four ranks, whose kernels, files, groups and settings carry names that try to do harm."""
    return with_hostile_names(two_of_four())


@cache
def hostile_roles() -> RunResult:
    """Roles and phases that carry them."""
    return with_hostile_names(marked())


@cache
def every_state() -> RunResult:
    """`training` and one rule that raised an error, which no simulated job makes one do."""
    result = training()
    rules = list(result.rules)
    at = next(number for number, rule in enumerate(rules) if rule.state == "pass")
    reason = {
        "en": "plugin `acme-shapes` 0.3.1 raised KeyError: 'm'",
        "zh": "插件 `acme-shapes` 0.3.1 抛出 KeyError: 'm'",
    }
    failed = {**rules[at].model_dump(), "state": "error", "ranks": {}, "reason": reason}
    rules[at] = RuleOutcome.model_validate(failed)
    return result.model_copy(update={"rules": rules})


@cache
def many_findings() -> RunResult:
    """`many_ranks` with three findings of `two_of_four` once for each rank: findings of ranks that lose alike are one
    in all simulated jobs, and a page has to hold those that are not."""
    result = many_ranks()
    each = [_of_rank(finding, rank) for rank in result.profile.ranks for finding in two_of_four().findings[2:5]]
    return recomposed(result.model_copy(update={"findings": each}))


def _of_rank(finding: Finding, rank: int) -> Finding:
    changes = {"rank": rank, "ranks": [rank], "fingerprint": f"{finding.fingerprint}-{rank}"}
    impact = finding.impact.model_copy(update={"claims": []})
    return finding.model_copy(update={**changes, "impact": impact, "explains": [], "explained_by": []})


def empty() -> RunResult:
    """As little as a result can hold."""
    return RunResult(
        tool=Tool(name="npu-advisor", version="0.1.0"),
        inputs=[],
        environment=Environment(),
        profile=Profile(kind="unknown", ranks=[], steps=[]),
        ledger=[],
        findings=[],
        rules=[],
        views=[],
        diagnostics=[],
    )


def recomposed(result: RunResult) -> RunResult:
    """The result with what follows from its ledger and its findings; claims of entries that it does not have go, and a
    plan that names findings that it does not have."""
    booked = {(step.role, step.rank, entry.path) for step in result.ledger for entry in step.entries}

    def possible(finding: Finding) -> Finding:
        claims = [claim for claim in finding.impact.claims if (finding.role, claim.rank, claim.path) in booked]
        return finding.model_copy(update={"impact": finding.impact.model_copy(update={"claims": claims})})

    there = {finding.fingerprint for finding in result.findings}
    plan = result.plan if result.plan and {action.finding for action in result.plan.actions} <= there else None
    findings = [possible(finding) for finding in result.findings]
    return compose(result.model_copy(update={"findings": findings, "plan": plan}))
