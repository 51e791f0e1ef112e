"""The work of the kernels of two devices side by side, and their difference divided: the chip, the work, and the time
above what the chip allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from advisor_core.compare.match import Match
from advisor_core.compare.work import paired_work
from advisor_core.result.comparison import ComputedDifference, Division, Origin
from advisor_core.result.work import ChipPeaks, ComputedTime, Work

KNOWN = 0.9
"""Of the time on a side, how much needs to have a bound for the difference to be divided. Our choice: what has none
stays whole."""

SAME_FLOPS = 0.001
"""Operations that come from the same shapes differ by rounding only."""

_BY_NAME = ("computation", "operation")
_NAN = float("nan")


@dataclass(frozen=True)
class Side:
    """The work of one side for one thing, per step of a rank; times in ns. ``least``: the bounds on its own chip,
    ``elsewhere``: on the other chip, NaN unknown."""

    calls: float = 0.0
    kernels: float = 0.0
    ns: float = 0.0
    bounded: float = 0.0
    least: float = 0.0
    elsewhere: float = 0.0
    flops: float = 0.0

    def __add__(self, other: Side) -> Side:
        return Side(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Side)))

    @property
    def known(self) -> bool:
        """Whether bounds are known for nearly all of the time."""
        return self.bounded >= KNOWN * self.ns


NOTHING = Side()
Key = tuple[str | None, str, str | None]
"""Role, kind, and what is computed."""


@dataclass
class Both:
    """One thing on both sides. ``dtypes``: of its operands."""

    before: Side = NOTHING
    after: Side = NOTHING
    dtypes: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())


def side_by_side(match: Match) -> dict[Key, Both]:
    """The computations of both sides, by role, kind and what is computed."""
    rows: dict[Key, Both] = {}
    for role, *works in paired_work(match):
        before, after = works
        if not before.computed or not after.computed:
            continue
        whole = {row.kind for work in works for row in work.computed if row.what is None}
        for number, (work, other) in enumerate(((before, after), (after, before))):
            for row in work.computed:
                key = (role, row.kind, row.what)
                if row.kind in whole and not _listed(other, row):
                    key = (role, row.kind, None)  # it may be part of what the other side does not list
                both = rows.setdefault(key, Both())
                side = _side(row, work, other)
                dtypes = [*both.dtypes]
                dtypes[number] |= {row.dtype} - {""}
                both.dtypes = dtypes[0], dtypes[1]
                if number == 0:
                    both.before += side
                else:
                    both.after += side
    return rows


def _listed(work: Work, row: ComputedTime) -> bool:
    return any(one.kind == row.kind and one.what == row.what for one in work.computed)


def _side(row: ComputedTime, work: Work, other: Work) -> Side:
    count = work.rank_steps
    least = row.least_ns / count
    return Side(
        calls=row.calls / count,
        kernels=row.kernels / count,
        ns=row.ns / count,
        bounded=row.bounded_ns / count,
        least=least,
        elsewhere=least * _slower(row, work.peaks, other.peaks) if least else 0.0,
        flops=row.flops / count,
    )


def _slower(row: ComputedTime, own: ChipPeaks | None, other: ChipPeaks | None) -> float:
    """The bound on the other chip over that on the own one: by its operations or its bytes, whichever bounds it
    here; NaN unknown."""
    if own is None or other is None:
        return _NAN
    if row.computing_ns >= row.memory_ns:
        rates = own.flops.get(row.dtype), other.flops.get(row.dtype)
    else:
        rates = own.bytes_per_second, other.bytes_per_second
    return rates[0] / rates[1] if rates[0] and rates[1] else _NAN


def divide(before: Side, after: Side, same_dtype: bool = False) -> Division:
    """The difference of two sides, as `Division` says. ``same_dtype``: with the same operations this is then the same
    work, whichever of operations and bytes bounds it on either chip."""
    difference = round(after.ns) - round(before.ns)
    untold, chip, work, above = difference, 0, 0, 0
    if before.known and after.known:
        same = same_dtype and before.flops > 0 and abs(after.flops - before.flops) <= SAME_FLOPS * before.flops
        elsewhere = (after.least, before.least) if same else (before.elsewhere, after.elsewhere)
        moved = (elsewhere[0] - before.least + after.least - elsewhere[1]) / 2
        if moved == moved:
            chip = round(moved)
            above = round((after.bounded - after.least) - (before.bounded - before.least))
            untold = round((after.ns - after.bounded) - (before.ns - before.bounded))
            work = difference - chip - above - untold
    return Division(
        calls_before=round(before.calls, 3),
        calls_after=round(after.calls, 3),
        kernels_before=round(before.kernels, 3),
        kernels_after=round(after.kernels, 3),
        least_before_ns=round(before.least) if before.known and before.ns else None,
        least_after_ns=round(after.least) if after.known and after.ns else None,
        chip_ns=chip,
        work_ns=work,
        above_ns=above,
        untold_ns=untold,
    )


def joined(parts: Iterable[Division]) -> Division:
    """The sum of divisions; bounds where each has one that has time at all."""
    listed = list(parts)
    sums = {
        name: sum(getattr(one, name) for one in listed)
        for name in Division.model_fields
        if not name.startswith("least")
    }
    least = {}
    for side in ("before", "after"):
        known = [getattr(one, f"least_{side}_ns") for one in listed if getattr(one, f"kernels_{side}")]
        least[f"least_{side}_ns"] = None if None in known or not known else sum(known)
    return Division.model_validate(sums | least)


def _in_one(both: Both) -> bool:
    return both.dtypes[0] == both.dtypes[1] and len(both.dtypes[0]) == 1


def computed_differences(rows: Mapping[Key, Both]) -> list[ComputedDifference]:
    """The computations of both sides, the largest difference first."""
    told = [
        ComputedDifference(
            role=role,
            kind=kind,
            what=what,
            dtypes=(", ".join(sorted(both.dtypes[0])), ", ".join(sorted(both.dtypes[1]))),
            before_ns=round(both.before.ns),
            after_ns=round(both.after.ns),
            difference_ns=round(both.after.ns) - round(both.before.ns),
            division=divide(both.before, both.after, _in_one(both)),
        )
        for (role, kind, what), both in rows.items()
    ]
    return sorted(told, key=lambda row: (-abs(row.difference_ns), row.kind, row.what or "", row.role or ""))


def kernel_origins(rows: Mapping[Key, Both]) -> list[Origin]:
    """The differences of kernel times by family: products, convolutions, attentions, each formula, each operation that
    is part of none."""
    families: dict[str, list[Both]] = {}
    for key, both in rows.items():
        families.setdefault(_family(key), []).append(both)
    return [_origin(path, members) for path, members in families.items()]


def _family(key: Key) -> str:
    """Products of all sizes are one family, and so on; a formula or an operation is one each, by its name."""
    _, kind, what = key
    if kind in _BY_NAME:
        return f"compute/{kind}/{what}" if what else f"compute/{kind}"
    return "compute/product" if kind == "grouped" else f"compute/{kind}"


def _origin(path: str, members: Sequence[Both]) -> Origin:
    """One family. What only one side has, in other shapes or under other names, is divided together."""
    divided = [divide(both.before, both.after, _in_one(both)) for both in members if both.before.ns and both.after.ns]
    left = [both for both in members if not (both.before.ns and both.after.ns)]
    if left:
        only_before = sum((both.before for both in left), NOTHING)
        divided.append(divide(only_before, sum((both.after for both in left), NOTHING)))
    before, after = (sum(round(getattr(one, side).ns) for one in members) for side in ("before", "after"))
    division = joined(divided)
    # Sums of what only one side has are rounded once: what rounding leaves is of no part.
    parts = division.chip_ns + division.work_ns + division.above_ns + division.untold_ns
    division = division.model_copy(update={"untold_ns": division.untold_ns + (after - before) - parts})
    return Origin(path=path, before_ns=before, after_ns=after, difference_ns=after - before, division=division)
