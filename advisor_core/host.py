"""The plugin host: finds plugins by entry point, loads each on its own, and keeps what they register.

A plugin that cannot be imported, that implements a hook of another name, or that raises while it registers is
reported by name and version; the others go on. ``ADVISOR_PLUGINS=a,b`` loads only the named ones (to find out
which plugin is to blame), and an empty value loads none.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pluggy

from advisor_core import hookspecs
from advisor_core.advisor import Advisor
from advisor_core.facts.spec import Fact
from advisor_core.loaders.profile import Loader
from advisor_core.registry import DuplicateError, Registry, Renderer, Ruleset

ONLY = "ADVISOR_PLUGINS"
OWN = "npu-advisor"
"""The distribution whose plugins are our own."""


@dataclass(frozen=True)
class PluginStatus:
    """One plugin: ``problem`` is ``None`` if it loaded, else what went wrong."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    problem: str | None = None


@dataclass
class Host:
    """All that the loaded plugins registered."""

    loaders: Registry[Loader] = field(default_factory=lambda: Registry("loader"))
    facts: Registry[Fact] = field(default_factory=lambda: Registry("fact"))
    advisors: Registry[Advisor] = field(default_factory=lambda: Registry("advisor"))
    rulesets: Registry[Ruleset] = field(default_factory=lambda: Registry("rule set"))
    renderers: Registry[Renderer] = field(default_factory=lambda: Registry("renderer"))
    plugins: list[PluginStatus] = field(default_factory=list)

    def registries(self) -> dict[str, Registry[Any]]:
        """Hook name to the registry it fills."""
        return {
            "advisor_register_loaders": self.loaders,
            "advisor_register_facts": self.facts,
            "advisor_register_advisors": self.advisors,
            "advisor_register_rulesets": self.rulesets,
            "advisor_register_renderers": self.renderers,
        }


def load_host(extra: Iterable[tuple[str, object]] = ()) -> Host:
    """Load every plugin. ``extra``: (name, module) pairs to load besides the installed ones (tests)."""
    host = Host()
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    only = os.environ.get(ONLY)
    wanted = None if only is None else {name.strip() for name in only.split(",") if name.strip()}
    points = sorted(importlib.metadata.entry_points(group=hookspecs.GROUP), key=_own_first)
    for point in points:
        if wanted is not None and point.name not in wanted:
            continue
        distribution = point.dist.name if point.dist else "?"
        version = point.dist.version if point.dist else "?"
        try:
            module = point.load()
        except Exception as error:
            problem = f"cannot be imported: {type(error).__name__}: {error}"
            host.plugins.append(PluginStatus(point.name, distribution, version, problem=problem))
            continue
        host.plugins.append(_register(host, manager, point.name, distribution, version, module))
    for name, module in extra:
        host.plugins.append(_register(host, manager, name, "(given)", "", module))
    return host


def _own_first(point: importlib.metadata.EntryPoint) -> tuple[bool, str, str]:
    """What npu-advisor brings is registered before third parties, so that theirs is the duplicate that fails."""
    distribution = point.dist.name if point.dist else "?"
    return distribution != OWN, distribution, point.name


def _register(
    host: Host, manager: pluggy.PluginManager, name: str, distribution: str, version: str, module: object
) -> PluginStatus:
    hooks: tuple[str, ...] = ()
    try:
        manager.register(module, name=name)
        manager.check_pending()
        hooks = tuple(sorted(caller.name for caller in manager.get_hookcallers(module) or ()))
        others = [plugin for plugin in manager.get_plugins() if plugin is not module]
        for hook, registry in host.registries().items():
            if hook in hooks:
                registry.plugin = f"{name} ({distribution} {version})".replace(" )", ")")
                manager.subset_hook_caller(hook, remove_plugins=others)(registry=registry)
    except (pluggy.PluginValidationError, DuplicateError) as error:
        _forget(manager, module)
        return PluginStatus(name, distribution, version, hooks, str(error))
    except Exception as error:
        _forget(manager, module)
        return PluginStatus(name, distribution, version, hooks, f"raised {type(error).__name__}: {error}")
    return PluginStatus(name, distribution, version, hooks)


def _forget(manager: pluggy.PluginManager, module: object) -> None:
    if manager.is_registered(module):
        manager.unregister(module)
