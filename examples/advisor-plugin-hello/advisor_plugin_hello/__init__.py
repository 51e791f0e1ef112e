"""An example plugin with one of each kind: fact, advisor, rule, loader, renderer, and words of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor_core.api import Label, OperatorWords, Registry, Renderer, Ruleset, Text, hookimpl

if TYPE_CHECKING:
    from advisor_core.api.advisors import Advisor
    from advisor_core.api.facts import Fact
    from advisor_core.api.loaders import Loader


@hookimpl
def advisor_register_facts(registry: Registry[Fact]) -> None:
    from advisor_plugin_hello.short_kernels import kernel_lengths

    registry.add(kernel_lengths)


@hookimpl
def advisor_register_advisors(registry: Registry[Advisor]) -> None:
    from advisor_plugin_hello.short_kernels import short_kernels

    registry.add(short_kernels)


@hookimpl
def advisor_register_rulesets(registry: Registry[Ruleset]) -> None:
    registry.add(Ruleset("hello", Path(__file__).parent / "rules"))


@hookimpl
def advisor_register_loaders(registry: Registry[Loader]) -> None:
    from advisor_plugin_hello.kernel_list import KernelList

    registry.add(KernelList())


@hookimpl
def advisor_register_renderers(registry: Registry[Renderer]) -> None:
    from advisor_plugin_hello.titles import Titles

    registry.add(Titles())


@hookimpl
def advisor_register_operator_words(registry: Registry[OperatorWords]) -> None:
    registry.add(OperatorWords("hello.kernels", "elementwise", ("hello scale",)))


@hookimpl
def advisor_register_labels(registry: Registry[Label]) -> None:
    registry.add(Label("heading.short_share", Text(en="share of short kernels", zh="短 kernel 占比")))
