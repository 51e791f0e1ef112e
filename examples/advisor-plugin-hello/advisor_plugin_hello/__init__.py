"""An example plugin: how much of the computing is spent in very short kernels."""

from __future__ import annotations

from pathlib import Path

from advisor_core.contracts.registry import Registry, Ruleset
from advisor_core.plugins.hookspecs import hookimpl


@hookimpl
def advisor_register_facts(registry: Registry) -> None:
    from advisor_plugin_hello.short_kernels import kernel_lengths

    registry.add(kernel_lengths)


@hookimpl
def advisor_register_advisors(registry: Registry) -> None:
    from advisor_plugin_hello.short_kernels import short_kernels

    registry.add(short_kernels)


@hookimpl
def advisor_register_rulesets(registry: Registry) -> None:
    registry.add(Ruleset("hello", Path(__file__).parent / "rules"))
