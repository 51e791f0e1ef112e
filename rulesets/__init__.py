"""Rule sets, one folder each, with a file per advisor module, mirroring ``advisors/``. ``names/`` is the registry of
every API, variable, option, flag and command that their texts name, with a file per software."""

from __future__ import annotations

from pathlib import Path

from advisor_core.api import Registry, Ruleset, hookimpl


@hookimpl
def advisor_register_rulesets(registry: Registry[Ruleset]) -> None:
    here = Path(__file__).parent
    registry.add(
        Ruleset("ascend", here / "ascend", names=here / "names", vendors=("ascend",)),
        Ruleset("gpu", here / "gpu", names=here / "names", vendors=("gpu",)),
    )
