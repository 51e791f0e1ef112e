"""The five hooks of entry-point group ``npu_advisor.v1``.

Each receives a registry and adds to it. Registration must be cheap: import heavy modules inside the hook.
"""

from __future__ import annotations

import pluggy

from advisor_core.contracts.advisor import Advisor
from advisor_core.contracts.facts import Fact
from advisor_core.contracts.profile import Loader
from advisor_core.contracts.registry import Registry, Renderer, Ruleset

GROUP = "npu_advisor.v1"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def advisor_register_loaders(registry: Registry[Loader]) -> None:
    """Add formats that can be read."""


@hookspec
def advisor_register_facts(registry: Registry[Fact[object]]) -> None:
    """Add facts that advisors can need."""


@hookspec
def advisor_register_advisors(registry: Registry[Advisor]) -> None:
    """Add measurements that rules can judge."""


@hookspec
def advisor_register_rulesets(registry: Registry[Ruleset]) -> None:
    """Add folders of rule files."""


@hookspec
def advisor_register_renderers(registry: Registry[Renderer]) -> None:
    """Add formats that a report can be written in."""
