"""Rule sets, one folder each; a file per advisor module, mirroring ``advisors/``."""

from __future__ import annotations

from pathlib import Path

from advisor_core.hookspecs import hookimpl
from advisor_core.registry import Registry, Ruleset


@hookimpl
def advisor_register_rulesets(registry: Registry[Ruleset]) -> None:
    registry.add(Ruleset("ascend", Path(__file__).parent / "ascend"))
