"""The rules of this checkout for tests, and one of them judged over a scene."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from advisor_core.plugins.host import Host, load_host
from advisor_core.rules.book import RuleBook
from advisor_core.rules.files.ruleset import load_rules

ROOT = Path(__file__).parent.parent.parent
ACL_THREAD = 200
FILES = {"HD": "host_dispatch", "CO": "communication", "DQ": "capture", "NS": "network_structure"}
FILES |= {"PB": "pipeline_bound", "SA": "shape_affinity", "ME": "memory", "RL": "rl"}


@cache
def host() -> Host:
    return load_host()


@cache
def _rules_for(vendor: str) -> RuleBook:
    """All rules of our rule set for a vendor."""
    return load_rules([ROOT / "rulesets" / vendor], host().advisors, names=host().name_book())


@cache
def book(file: str) -> RuleBook:
    """The rules of one file; those of the other files are loaded with them, as rules may name rules of other files."""
    prefix = next(prefix for prefix, name in FILES.items() if name == file)
    return _rules_for("ascend").select([prefix])


@cache
def judged_for_gpus() -> frozenset[str]:
    """The advisors that rules for GPUs judge."""
    return frozenset(rule.rule.advisor for rule in _rules_for("gpu"))
