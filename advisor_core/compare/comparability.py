"""Obstacles to a comparison: settings and work that two runs do not share, and the conclusions that this spoils."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import get_args

from advisor_core.compare.amounts import same_work
from advisor_core.compare.match import Match
from advisor_core.compare.same_work import other_count, other_shapes
from advisor_core.compare.work import paired_work
from advisor_core.contracts.profile import HOST_SLOWING_OPTIONS
from advisor_core.result.comparison import Conclusion, Obstacle
from advisor_core.result.run import Input, RunResult
from advisor_core.text.base import Scalar, Text
from advisor_core.text.messages import message
from advisor_core.text.units import format_quantity, format_raw

EVERYTHING: tuple[Conclusion, ...] = get_args(Conclusion)
_NO_KIND = "unknown"

_CLOCK = "mhz"
_SAME_CLOCK = 0.01
"""Clocks within this share are one clock: one that is read from cycle counters differs in the last digits."""

NAMED = 8
"""Ranks that a text names."""

_OTHER_CAUSES: Mapping[str, tuple[str, ...]] = {
    "level": ("compute", "communication", "idle"),
    "slowing_options": ("idle",),
    "vendor": ("compute", "communication"),
    "vendor_idle": ("idle",),
}

_ABOUT_THE_RECORDING = ("basis", _CLOCK)
_WITHOUT_COST = ("export_type", "schedule.", "start_step", "prof_ts")
"""Profiler settings that say which steps are recorded and where the files go."""


def obstacles(match: Match) -> list[Obstacle]:
    """The obstacles, those that spoil most first."""
    checks = _ACROSS_VENDORS if match.across_vendors and not match.of_baseline else _CHECKS
    found = [obstacle for check in checks for obstacle in check(match)]
    return sorted(found, key=lambda obstacle: -len(obstacle.spoils))


def is_whole(obstacle: Obstacle) -> bool:
    """Whether nothing at all can be concluded because of it."""
    return len(obstacle.spoils) == len(EVERYTHING)


def spoilt(found: Sequence[Obstacle]) -> list[Conclusion]:
    """The conclusions that any of the obstacles spoils, in their order."""
    return [conclusion for conclusion in EVERYTHING if any(conclusion in one.spoils for one in found)]


def trunks_as_a_whole(found: Sequence[Obstacle]) -> set[str]:
    """The trunks of the ledger whose causes the two sides know differently, so that only the sums mean the same."""
    return {trunk for one in found for trunk in _OTHER_CAUSES.get(one.about, ())}


def _obstacle(about: str, spoils: Sequence[Conclusion], **fields: object) -> Obstacle:
    return Obstacle(about=about, text=message(f"compare.{about}", **fields), spoils=list(spoils))


def _results(match: Match) -> tuple[RunResult, RunResult]:
    return match.before.result, match.after.result


def _recording(match: Match) -> Iterator[Obstacle]:
    if match.of_baseline:
        return
    before, after = (sorted(source.sha256 for source in result.inputs) for result in _results(match))
    if before == after:
        yield _obstacle("same_recording", ())


def _vendor(match: Match) -> Iterator[Obstacle]:
    yield from _differing("vendor", EVERYTHING, match, lambda source: source.vendor)


def _two_devices(match: Match) -> Iterator[Obstacle]:
    """Two vendors: what each side has of its own says nothing of the other. The classes of kernels, and what is known
    of a collective while it runs, are of one vendor each; the causes of idle time have one meaning on both, where both
    were recorded with their hosts."""
    before, after = match.vendors
    yield _obstacle("vendor", _OF_ONE_VENDOR, before=before, after=after)
    for side, other in ((match.before, before), (match.after, after)):
        entries = side.mean.entries
        idle = sum(ns for path, ns in entries.items() if path.partition("/")[0] == "idle")
        if idle and entries.get("idle/unknown", 0) > _MOSTLY * idle:
            yield _obstacle("vendor_idle", (), vendor=other)
            return


def _window(match: Match) -> Iterator[Obstacle]:
    """A step on one side, and a recording without marks on the other."""
    before, after = (result.profile.window for result in _results(match))
    if before != after:
        windows = (message(f"compare.window.{window}") for window in (before, after))
        yield _obstacle("window", _OF_STEPS, **dict(zip(("before", "after"), windows, strict=True)))


def _amounts(match: Match) -> Iterator[Obstacle]:
    """Whether both devices do the same work, by shapes. It spoils nothing: what each does stands beside its time."""
    for role, before, after in paired_work(match):
        told = same_work(before, after)
        name = {"role": "" if role is None else f"{role}: "}
        if unknown := [
            vendor for vendor, work in zip(match.vendors, (before, after), strict=True) if not work.computed
        ]:
            yield _obstacle("not_computed", ("memory",), vendor=", ".join(unknown), **name)
            continue
        if told.trains_before != told.trains_after:
            side = message("compare.before" if told.trains_before else "compare.after")
            yield _obstacle("passes", ("memory",), side=side, **name)
        elif told.shared is None:
            yield _obstacle("unknown_amounts", ("memory",), **name)
        elif not told.same:
            shared = Text(**{lang: format_quantity(told.shared, "ratio", lang) for lang in ("en", "zh")})
            yield _obstacle(
                "amounts", ("memory",), shared=shared, before=_flop(told.before), after=_flop(told.after), **name
            )


def _flop(amount: float) -> str:
    """``12.3 TFLOP``, the same in both languages.

    >>> _flop(25.28e12), _flop(4.2e9)
    ('25.3 TFLOP', '4.2 GFLOP')
    """
    factor, unit = (1e12, "TFLOP") if amount >= 1e12 else (1e9, "GFLOP")
    return f"{amount / factor:.3g} {unit}"


def _unknown_peaks(match: Match) -> Iterator[Obstacle]:
    """A chip whose peaks are not known: no part of a difference can be its."""
    for side, vendor in zip(_results(match), match.vendors, strict=True):
        if any(work.computed and work.peaks is None for work in side.work):
            yield _obstacle("peaks", (), vendor=vendor)


def _kinds(match: Match) -> Iterator[Obstacle]:
    """Training and inference, prefill and decode, as each profile tells: the amounts of work say what it makes of
    it."""
    for obstacle in _kind(match):
        yield obstacle.model_copy(update={"spoils": []})


def _devices(match: Match) -> Iterator[Obstacle]:
    """Numbers of ranks and layouts, which are told: each side is the mean of its own ranks."""
    for obstacle in _layout(match):
        yield obstacle.model_copy(update={"spoils": []})


def _kind(match: Match) -> Iterator[Obstacle]:
    before, after = (result.profile.kind for result in _results(match))
    if before != after and _NO_KIND not in (before, after):
        yield _obstacle("kind", EVERYTHING, before=before, after=after)


def _roles(match: Match) -> Iterator[Obstacle]:
    before, after = (", ".join(sorted(result.profile.roles)) for result in _results(match))
    if before != after:
        spoils: tuple[Conclusion, ...] = ("verdict", "causes", "host", "promises")
        yield _obstacle("roles", spoils, before=_told(before), after=_told(after))


def _ranks(match: Match) -> Iterator[Obstacle]:
    if match.of_baseline:
        return
    if not match.pairs:
        yield _obstacle("no_ranks", EVERYTHING)
        return
    if any(own[1] != other[1] for own, other in match.pairs):
        pairs = [f"{own[1]} - {other[1]}" for own, other in match.pairs]
        yield _obstacle("other_ranks", (), pairs=_few(pairs))
    left = match.unmatched
    if any(left):
        before, after = (_few([str(rank) for _, rank in lanes]) for lanes in left)
        spoils: tuple[Conclusion, ...] = ("operators", "communication")
        yield _obstacle("unmatched_ranks", spoils, before=_told(before), after=_told(after))


def _baseline(match: Match) -> Iterator[Obstacle]:
    """What a baseline does not hold, and whether it is of the same ranks."""
    if not match.of_baseline:
        return
    yield _obstacle("baseline", ("operators", "communication", "memory", "promises"))
    before, after = (sorted(set(result.profile.ranks)) for result in _results(match))
    if not before:  # a file of an earlier version
        yield _obstacle("baseline_unknown", ("verdict", "promises"))
    elif before != after:
        told = {"before": _few([str(rank) for rank in before]), "after": _few([str(rank) for rank in after])}
        yield _obstacle("baseline_ranks", ("verdict", "promises"), **told)


def _layout(match: Match) -> Iterator[Obstacle]:
    spoils: tuple[Conclusion, ...] = ("verdict", "operators", "communication", "memory", "promises")
    before, after = (result.profile for result in _results(match))
    if before.world_size and after.world_size and before.world_size != after.world_size:
        yield _obstacle("world_size", spoils, before=before.world_size, after=after.world_size)
    if before.parallel and after.parallel and before.parallel != after.parallel:
        sizes = (", ".join(f"{name} {size}" for name, size in one.parallel.items()) for one in (before, after))
        yield _obstacle("parallel", spoils, **dict(zip(("before", "after"), sizes, strict=True)))


def _chip(match: Match) -> Iterator[Obstacle]:
    before, after = (result.environment.chip for result in _results(match))
    if differing := _changed(before, after, lambda name: name not in _ABOUT_THE_RECORDING):
        yield _obstacle("chip", ("verdict", "promises"), differing=_listed(differing))
    old, new = before.get(_CLOCK), after.get(_CLOCK)
    if isinstance(old, int | float) and isinstance(new, int | float) and abs(new - old) > _SAME_CLOCK * old:
        yield _obstacle("clock", (), before=f"{old:.0f}", after=f"{new:.0f}")


def _level(match: Match) -> Iterator[Obstacle]:
    spoils: tuple[Conclusion, ...] = ("verdict", "operators", "communication", "host", "promises")
    yield from _differing("level", spoils, match, lambda source: source.level)


def _options(match: Match) -> Iterator[Obstacle]:
    before, after = (result.environment.profiler for result in _results(match))
    slowing = _changed(before, after, lambda name: name in HOST_SLOWING_OPTIONS)
    if slowing:
        yield _obstacle("slowing_options", ("verdict", "host", "promises"), differing=_listed(slowing))
    others = _changed(
        before, after, lambda name: name not in HOST_SLOWING_OPTIONS and not name.startswith(_WITHOUT_COST)
    )
    if others and _levels(match, 0) == _levels(match, 1):
        yield _obstacle("options", (), differing=_listed(others))


def _levels(match: Match, side: int) -> set[str | None]:
    return {source.level for source in _results(match)[side].inputs}


def _work(match: Match) -> Iterator[Obstacle]:
    spoils: tuple[Conclusion, ...] = ("verdict", "operators", "memory", "promises")
    after = {work.role: work for work in match.after.result.work}
    pairs = [(work, after[work.role]) for work in match.before.result.work if work.role in after]
    if any(other_shapes(old, new) for old, new in pairs):
        yield _obstacle("shapes", spoils)
    factors = [factor for old, new in pairs if (factor := other_count(old, new)) is not None]
    if factors:
        yield _obstacle("counts", spoils, factor=f"{factors[0]:.2f}")


def _unknown_work(match: Match) -> Iterator[Obstacle]:
    if not match.of_baseline and not all(result.work for result in _results(match)):
        yield _obstacle("no_work", ("operators",))


def _versions(match: Match) -> Iterator[Obstacle]:
    before, after = (_merged(result.inputs) for result in _results(match))
    if differing := _changed(before, after, lambda name: True):
        yield _obstacle("versions", ("promises",), differing=_listed(differing))


def _format(match: Match) -> Iterator[Obstacle]:
    yield from _differing("format", (), match, lambda source: source.kind)


def _tool(match: Match) -> Iterator[Obstacle]:
    before, after = (result.tool for result in _results(match))
    versions = [f"{tool.name} {tool.version}" for tool in (before, after)]
    if versions[0] != versions[1]:
        yield _obstacle("tool", (), before=versions[0], after=versions[1])


def _damage(match: Match) -> Iterator[Obstacle]:
    before, after = (
        sum(one.severity == "error" and one.about == "input" for one in result.diagnostics)
        for result in _results(match)
    )
    if before or after:
        yield _obstacle("damage", (), before=before, after=after)


_CHECKS: tuple[Callable[[Match], Iterator[Obstacle]], ...] = (
    _recording, _vendor, _kind, _roles, _ranks, _baseline, _layout, _chip, _level, _options, _work, _unknown_work,
    _versions, _format, _tool, _damage,
)  # fmt: skip

_OF_ONE_VENDOR: tuple[Conclusion, ...] = ("verdict", "operators", "findings", "promises")
_OF_STEPS: tuple[Conclusion, ...] = ("verdict", "causes", "communication", "memory", "promises")
_MOSTLY = 0.5
"""Of the idle time: without causes for most of it they cannot be compared. Our choice."""

_ACROSS_VENDORS: tuple[Callable[[Match], Iterator[Obstacle]], ...] = (
    _two_devices, _kinds, _window, _amounts, _unknown_peaks, _devices, _unknown_work, _tool, _damage,
)  # fmt: skip


def _differing(
    about: str, spoils: Sequence[Conclusion], match: Match, value: Callable[[Input], str | None]
) -> Iterator[Obstacle]:
    """An obstacle where what all inputs of the sides record differs; what one side does not record is no difference."""
    before, after = ({found for source in result.inputs if (found := value(source))} for result in _results(match))
    if before and after and before != after:
        yield _obstacle(about, spoils, before=", ".join(sorted(before)), after=", ".join(sorted(after)))


_Change = tuple[str, Scalar, Scalar]


def _changed(before: Mapping[str, Scalar], after: Mapping[str, Scalar], chosen: Callable[[str], bool]) -> list[_Change]:
    """The chosen settings that both sides record, with different values."""
    return [
        (name, before[name], after[name])
        for name in before
        if name in after and chosen(name) and before[name] != after[name]
    ]


def _listed(changes: Sequence[_Change]) -> Text:
    """``with_stack: yes -> no; ...``"""
    texts = {
        lang: "; ".join(f"{name}: {format_raw(old, lang)} -> {format_raw(new, lang)}" for name, old, new in changes)
        for lang in ("en", "zh")
    }
    return Text(**texts)


def _few(names: Sequence[str]) -> str:
    """The first of many names, and how many there are."""
    return ", ".join(names) if len(names) <= NAMED else f"{', '.join(names[:NAMED])}, … ({len(names)})"


def _told(text: str) -> Text:
    """A text, or that there is none."""
    none = message("compare.none")
    return Text(en=text or none.en, zh=text or none.zh)


def _merged(inputs: Sequence[Input]) -> dict[str, Scalar]:
    """The recorded versions of the software of a side, by name."""
    values: dict[str, set[str]] = {}
    for source in inputs:
        for name, value in ({"framework": source.framework or ""} | source.versions).items():
            if value:
                values.setdefault(name, set()).add(value)
    return {name: ", ".join(sorted(found)) for name, found in values.items()}
