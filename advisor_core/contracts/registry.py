"""Typed registries that plugins add to: what does not fit, or has a name that is taken, is an error that names both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeGuard, TypeVar

from advisor_core.contracts.owner import Owner

if TYPE_CHECKING:
    from advisor_core.result.comparison import ComparisonResult
    from advisor_core.result.run import RunResult


class Renderer(Protocol):
    """Writes one format of a report: a pure function of the result.

    A renderer may also have ``summary(result, lang, written) -> str``: the lines that a run prints when it is done.
    The first renderer that has it is asked. With ``on_request = True`` a format is written only where ``--format``
    names it; with ``timeline = True`` the result that it is given has a timeline, where there is one; with
    ``slices = True`` parts of the recording around the problems are written beside it. One that also writes comparisons
    of runs has ``render_comparison(result, lang) -> str``, and may have
    ``comparison_summary(result, lang, written) -> str``; see `writes_comparisons`.
    """

    @property
    def name(self) -> str: ...

    @property
    def filename(self) -> str: ...

    def render(self, result: RunResult, lang: str) -> str: ...


class ComparisonRenderer(Renderer, Protocol):
    """A renderer that also writes comparisons of runs, into a file of the same ending."""

    def render_comparison(self, result: ComparisonResult, lang: str) -> str: ...


def writes_comparisons(renderer: Renderer) -> TypeGuard[ComparisonRenderer]:
    """Whether a renderer also writes comparisons."""
    return callable(getattr(renderer, "render_comparison", None))


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class DuplicateError(Exception):
    """Two plugins registered the same name."""


class Registry(Mapping[str, T], Generic[T]):
    """Names to things, each with the plugin that owns it. ``problem_of``: what is wrong with a thing that a plugin
    adds, '' for nothing; see `of_type` and `with_methods`."""

    def __init__(self, kind: str, problem_of: Callable[[object], str] = lambda thing: "") -> None:
        self._kind = kind
        self._problem_of = problem_of
        self._things: dict[str, T] = {}
        self._owners: dict[str, Owner] = {}
        self._later: list[tuple[Owner, Callable[[], object]]] = []
        self.plugin = Owner("", "")
        """The plugin whose hook is being called; set by the host."""

    def later(self, register: Callable[[], object]) -> None:
        """Have a plugin register when the first thing is asked for, or another plugin adds one: what it registers may
        take long to be imported, and many commands do without. What ``register`` raises is raised then."""
        self._later.append((self.plugin, register))

    def _fill(self) -> None:
        waiting, self._later, plugin = self._later, [], self.plugin
        for self.plugin, register in waiting:
            register()
        self.plugin = plugin

    def add(self, *things: T) -> None:
        """Register. Raises `DuplicateError` for a name that is taken, and `TypeError` for what is no such thing."""
        self._fill()
        for thing in things:
            if problem := self._problem_of(thing):
                raise TypeError(f"{problem} is given where a {self._kind} should be")
            owner = self._owners.get(thing.name)
            if owner is not None:
                raise DuplicateError(f"{self._kind} {thing.name!r} of {self.plugin} is already registered by {owner}")
            self._things[thing.name] = thing
            self._owners[thing.name] = self.plugin

    def forget(self, owner: Owner) -> None:
        """Take back what a plugin registered."""
        self._later = [(plugin, register) for plugin, register in self._later if plugin != owner]
        for name in [name for name, known in self._owners.items() if known == owner]:
            del self._things[name], self._owners[name]

    def owner(self, name: str) -> Owner:
        if self._later:
            self._fill()
        return self._owners[name]

    def third_parties_first(self) -> list[T]:
        """All things, those of third parties before those of ours, else in order of registration."""
        self._fill()
        names = sorted(self._things, key=lambda name: self._owners[name].builtin)
        return [self._things[name] for name in names]

    def __getitem__(self, name: str) -> T:
        if self._later:
            self._fill()
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        if self._later:
            self._fill()
        return iter(self._things)

    def __len__(self) -> int:
        if self._later:
            self._fill()
        return len(self._things)


def of_type(kind: Callable[[], type]) -> Callable[[object], str]:
    """For registries of one class, which is imported when the first thing is added: importing it may be costly."""

    def problem_of(thing: object) -> str:
        return "" if isinstance(thing, kind()) else _described(thing)

    return problem_of


def with_methods(*methods: str, texts: tuple[str, ...] = ("name",)) -> Callable[[object], str]:
    """For registries of things that have these methods and these attributes, which are texts."""

    def problem_of(thing: object) -> str:
        if isinstance(thing, type):
            return f"the class {thing.__name__}, and not an instance of it,"
        missing = [name for name in methods if not callable(getattr(thing, name, None))]
        missing += [name for name in texts if not isinstance(getattr(thing, name, None), str)]
        return f"{_described(thing)} without {', '.join(missing)}" if missing else ""

    return problem_of


def _described(thing: object) -> str:
    return f"the function {thing.__name__}" if callable(thing) and hasattr(thing, "__name__") else type(thing).__name__


class Ruleset:
    """A folder of rule files that a plugin brings; ``root`` is read when rules are loaded. ``names``: a folder of the
    registry of names that its texts use. ``vendors``: whose profiles its rules are for, by the names of vocabularies;
    nothing: those of any vendor."""

    def __init__(self, name: str, root: Path, names: Path | None = None, vendors: Sequence[str] = ()) -> None:
        if isinstance(vendors, str):
            raise TypeError(f"vendors of rule set {name!r} is a text; give a tuple of names")
        self.name = name
        self.root = root
        self.names = names
        self.vendors = tuple(vendors)
