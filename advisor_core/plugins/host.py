"""The plugin host: finds plugins by entry point, loads each on its own, and keeps what they register.

A plugin that cannot be imported, that ends the process, that implements a hook of another name, or that raises while
it registers is reported by name and version; the others go on. ``ADVISOR_PLUGINS=a,b`` loads only the named ones (to
find out which plugin is to blame), and an empty value loads none; ``advisor --no-plugins`` loads only our own.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pluggy

from advisor_core.contracts.capturing import CaptureOption
from advisor_core.contracts.isolation import isolated
from advisor_core.contracts.labels import Label
from advisor_core.contracts.ledger_paths import LedgerPaths
from advisor_core.contracts.owner import Owner
from advisor_core.contracts.problems import nearest
from advisor_core.contracts.registry import DuplicateError, Registry, Renderer, Ruleset, of_type, with_methods
from advisor_core.names.book import NameBook, load_names
from advisor_core.plugins import hookspecs
from advisor_core.text.base import Text
from advisor_core.vocabulary.chips import ChipModel
from advisor_core.vocabulary.host_labels import LedgerLeaf
from advisor_core.vocabulary.operator_class import OperatorWords
from advisor_core.vocabulary.phases import PhaseMark
from advisor_core.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from advisor_core.contracts.advisor import Advisor
    from advisor_core.contracts.drawing import Drawing
    from advisor_core.contracts.facts import Fact
    from advisor_core.contracts.profile import Loader

ONLY = "ADVISOR_PLUGINS"
OWN = "npu-advisor"
"""The distribution whose plugins are our own."""
_PREFIX = "advisor_register_"

_LATER: Final = (
    *("advisor_register_loaders", "advisor_register_capture_options"),
    *("advisor_register_facts", "advisor_register_advisors", "advisor_register_drawings"),
)
"""Hooks of our own plugins that are called when what they register is asked for: it imports all that reads and
measures."""


class ShadowedError(Exception):
    """Another package has the name of one of ours and is found before it."""

    def __init__(self, name: str, file: str) -> None:
        super().__init__(
            f"{file} is imported as {name!r} in place of the package of npu-advisor: start the command elsewhere, or "
            "without that directory in PYTHONPATH"
        )


@dataclass(frozen=True)
class PluginStatus:
    """One plugin: ``problem`` is ``None`` if it loaded, else what went wrong. ``lacks``: which of its facts and
    advisors ask for facts that are not there."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    problem: str | None = None
    lacks: tuple[str, ...] = ()


def _fact() -> type:
    from advisor_core.contracts.facts import Fact

    return Fact


def _advisor() -> type:
    from advisor_core.contracts.advisor import Advisor

    return Advisor


def _drawing() -> type:
    from advisor_core.contracts.drawing import Drawing

    return Drawing


@dataclass
class Host:
    """All that the loaded plugins registered."""

    loaders: Registry[Loader] = field(default_factory=lambda: Registry("loader", with_methods("discover", "load")))
    vocabularies: Registry[Vocabulary] = field(
        default_factory=lambda: Registry("vocabulary", of_type(lambda: Vocabulary))
    )
    operator_words: Registry[OperatorWords] = field(
        default_factory=lambda: Registry("entry of operator words", of_type(lambda: OperatorWords))
    )
    ledger_leaves: Registry[LedgerLeaf] = field(
        default_factory=lambda: Registry("ledger leaf", of_type(lambda: LedgerLeaf))
    )
    phase_marks: Registry[PhaseMark] = field(default_factory=lambda: Registry("phase mark", of_type(lambda: PhaseMark)))
    chips: Registry[ChipModel] = field(default_factory=lambda: Registry("chip", of_type(lambda: ChipModel)))
    labels: Registry[Label] = field(default_factory=lambda: Registry("label", of_type(lambda: Label)))
    capture_options: Registry[CaptureOption] = field(
        default_factory=lambda: Registry("capture option", of_type(lambda: CaptureOption))
    )
    facts: Registry[Fact[object]] = field(default_factory=lambda: Registry("fact", of_type(_fact)))
    advisors: Registry[Advisor] = field(default_factory=lambda: Registry("advisor", of_type(_advisor)))
    drawings: Registry[Drawing] = field(default_factory=lambda: Registry("drawing", of_type(_drawing)))
    rulesets: Registry[Ruleset] = field(default_factory=lambda: Registry("rule set", of_type(lambda: Ruleset)))
    renderers: Registry[Renderer] = field(
        default_factory=lambda: Registry("renderer", with_methods("render", texts=("name", "filename")))
    )
    plugins: list[PluginStatus] = field(default_factory=list)

    def is_ours(self) -> bool:
        """True where no plugin but our own takes part, and all of them do: what they are made of is known."""
        return all(plugin.distribution == OWN and plugin.problem is None for plugin in self.plugins)

    @property
    def checked_rulesets(self) -> list[str]:
        """The names of the rule sets of our own plugins, which tests check."""
        return [name for name in self.rulesets if self.rulesets.owner(name).builtin]

    def name_book(self) -> NameBook:
        """The registry of names that the rule sets bring."""
        folders = (ruleset.names for ruleset in self.rulesets.values() if ruleset.names is not None)
        return load_names(tuple(dict.fromkeys(folders)))

    def vocabulary(self, vendor: str) -> Vocabulary:
        """The words of a vendor's exports with those that plugins add; of a vendor that no plugin knows only these."""
        base = self.vocabularies.get(vendor, Vocabulary(vendor))
        marks = self.phase_marks.third_parties_first()
        chips = (chip for chip in self.chips.values() if chip.vendor == vendor)
        return base.adding(self.operator_words.values(), self.ledger_leaves.values(), marks, chips)

    @cached_property
    def ledger_paths(self) -> LedgerPaths:
        """The paths that the ledger can have, whatever the vendor."""
        known = [self.vocabulary(vendor).operator_classes for vendor in (*self.vocabularies, "")]
        return LedgerPaths({name for classes in known for name in classes.names}, tuple(self.ledger_leaves))

    def texts(self) -> dict[str, Text]:
        """The labels of plugins by key: their own, and those of their operator classes and leaves."""
        classes = {
            f"path.compute/{words.operator_class}": words.label for words in self.operator_words.values() if words.label
        }
        leaves = {f"path.{leaf.name}": leaf.label for leaf in self.ledger_leaves.values()}
        return classes | leaves | {label.name: label.text for label in self.labels.values()}

    def registries(self) -> dict[str, Registry[Any]]:
        """Hook name to the registry it fills."""
        return {
            "advisor_register_loaders": self.loaders,
            "advisor_register_vocabularies": self.vocabularies,
            "advisor_register_operator_words": self.operator_words,
            "advisor_register_ledger_leaves": self.ledger_leaves,
            "advisor_register_phase_marks": self.phase_marks,
            "advisor_register_chips": self.chips,
            "advisor_register_labels": self.labels,
            "advisor_register_capture_options": self.capture_options,
            "advisor_register_facts": self.facts,
            "advisor_register_advisors": self.advisors,
            "advisor_register_drawings": self.drawings,
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
        distribution, version = _named(point.dist)
        owner = Owner(point.name, distribution, version, builtin=distribution == OWN)
        try:
            with isolated(owner):
                module = point.load()
        except (Exception, SystemExit) as error:
            problem = f"cannot be imported: {type(error).__name__}: {error}"
            host.plugins.append(PluginStatus(point.name, distribution, version, problem=problem))
            continue
        if owner.builtin and not _is_own(module):
            raise ShadowedError(point.value, getattr(module, "__file__", None) or "?")
        host.plugins.append(_register(host, manager, owner, module))
    for name, module in extra:
        host.plugins.append(_register(host, manager, Owner(name, "(given)"), module))
    if not host.is_ours():
        _check_keys(host)
    return host


def _check_keys(host: Host) -> None:
    """Tell which plugins need or want a fact that is not registered, be it that the one of its name is another. Of ours
    alone tests do that."""
    from advisor_core.contracts.facts import Fact

    for registry in (host.facts, host.advisors, host.drawings):
        for thing in registry.values():
            for key in (*thing.needs, *thing.wants):
                if isinstance(key, Fact) and host.facts.get(key.name) is not key:
                    problem = f"{thing.name} asks for the fact {key.name!r}, which no plugin registered"
                    _blame(host, registry.owner(thing.name), problem)


def _blame(host: Host, owner: Owner, problem: str) -> None:
    for number, plugin in enumerate(host.plugins):
        if (plugin.name, plugin.distribution) == (owner.name, owner.distribution):
            host.plugins[number] = replace(plugin, lacks=(*plugin.lacks, problem))


def own_plugins() -> tuple[str, ...]:
    """The names of the plugins that npu-advisor itself brings."""
    points = importlib.metadata.entry_points(group=hookspecs.GROUP)
    return tuple(point.name for point in points if _named(point.dist)[0] == OWN)


@functools.cache
def _named(distribution: importlib.metadata.Distribution | None) -> tuple[str, str]:
    """Name and version of a distribution, ``?`` where they are not known; its file is read for each of them."""
    return ("?", "?") if distribution is None else (distribution.name, distribution.version)


def _is_own(module: object) -> bool:
    """Whether a module lies beside `advisor_core`, as our own packages do."""
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(Path(__file__).resolve().parents[2])


def _own_first(point: importlib.metadata.EntryPoint) -> tuple[bool, str, str]:
    """Sort key that puts npu-advisor before third parties, so that theirs is the duplicate that fails."""
    distribution, _ = _named(point.dist)
    return distribution != OWN, distribution, point.name


def _register(host: Host, manager: pluggy.PluginManager, owner: Owner, module: object) -> PluginStatus:
    hooks: tuple[str, ...] = ()
    try:
        manager.register(module, name=owner.name)
        manager.check_pending()
        _check_marked(module)
        hooks = tuple(sorted(caller.name for caller in manager.get_hookcallers(module) or ()))
        with isolated(owner):
            for hook, registry in host.registries().items():
                if hook in hooks:
                    registry.plugin = owner
                    call = functools.partial(_call, manager, hook, module, registry)
                    if owner.builtin and hook in _LATER:
                        registry.later(call)
                    else:
                        call()
    except (pluggy.PluginValidationError, DuplicateError) as error:
        problem = str(error)
    except (Exception, SystemExit) as error:
        problem = f"raised {type(error).__name__}: {error}"
    else:
        return PluginStatus(owner.name, owner.distribution, owner.version, hooks)
    if manager.is_registered(module):
        manager.unregister(module)
    for registry in host.registries().values():
        registry.forget(owner)
    return PluginStatus(owner.name, owner.distribution, owner.version, hooks, problem)


def _call(manager: pluggy.PluginManager, hook: str, module: object, registry: Registry[Any]) -> None:
    """Call the hook of one plugin only."""
    others = [plugin for plugin in manager.get_plugins() if plugin is not module]
    manager.subset_hook_caller(hook, remove_plugins=others)(registry=registry)


def _check_marked(module: object) -> None:
    """Raise for functions that are named like hooks and are none: without ``@hookimpl``, or misspelt."""
    known = [name for name in vars(hookspecs) if name.startswith(_PREFIX)]
    for name in vars(module):
        if not name.startswith(_PREFIX) or hasattr(getattr(module, name), f"{hookspecs.GROUP}_impl"):
            continue
        if name not in known:
            hint = nearest(name, known)
            raise pluggy.PluginValidationError(module, f"{name} is not a hook{f' ({hint})' if hint else ''}")
        raise pluggy.PluginValidationError(module, f"{name} is not marked with @hookimpl")
