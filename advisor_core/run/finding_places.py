"""The parts of a recording where the time of a finding lies: from its kernels, or from the ledger it claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.contracts.advisor import Interval, Reference, Rows
from advisor_core.contracts.cure import Cure
from advisor_core.contracts.facts import Facts
from advisor_core.contracts.ledger_paths import LedgerPath
from advisor_core.contracts.missing import Unanswered
from advisor_core.contracts.tables import COMMUNICATION_TASKS, DEVICE_TASKS, KERNELS, Table
from advisor_core.facts.device.work import work
from advisor_core.facts.intervals import NOTHING, Layer
from advisor_core.facts.replay.changes import Merging, Shortening
from advisor_core.facts.replay.overlapping import Overlapping
from advisor_core.facts.steps.parts import part_ledger, parts
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.places import Place
from advisor_core.run.fact_source import FactSource
from advisor_core.text.base import Scalar
from advisor_core.vocabulary.parts import TOLD, place_name

Ints = npt.NDArray[np.int64]

OF_DEVICE = (KERNELS.name, DEVICE_TASKS.name, COMMUNICATION_TASKS.name)
"""Tables on the clock of the device, which the parts are told on."""


@dataclass(frozen=True)
class PartTimes:
    """The stretches of a recording with the number of their kind, by ``kinds`` (part, phase and what it stands for);
    ``ledger``: the fact ``part_ledger``, ``None`` where it is not known; ``device``: the fact ``work``."""

    stretches: Layer
    kinds: Sequence[tuple[str, str, str]]
    ledger: pd.DataFrame | None
    device: pd.DataFrame

    def places(
        self, references: Sequence[Reference], tables: Mapping[str, Table], paths: Sequence[str], cure: Cure | None
    ) -> tuple[Place, ...]:
        """The places of the time that a finding with these references claims, the largest first: of the tasks that
        the cure changes, else of its kernels. Time in which the device idles is looked up in the ledger, as evidence
        shows the longest stretches only."""
        took = next((took for took in self._by_trust(references, tables, paths, cure) if took.any()), None)
        if took is None:
            return ()
        shares = took / took.sum()
        order = [kind for kind in np.argsort(-shares, kind="stable").tolist() if shares[kind] >= TOLD]
        return tuple(
            Place(part, phase, role, float(shares[kind])) for kind in order for part, phase, role in [self.kinds[kind]]
        )

    def place(self, name: str) -> tuple[Place, ...]:
        """The place with this `place_name`, which has all of the time of a finding about it; nothing for another."""
        found = [kind for kind in self.kinds if place_name(kind[0], kind[1]) == name]
        return tuple(Place(part, phase, role, 1.0) for part, phase, role in found[:1])

    def _by_trust(
        self, references: Sequence[Reference], tables: Mapping[str, Table], paths: Sequence[str], cure: Cure | None
    ) -> Iterator[Ints]:
        """The time by kind, from one source after the other; each is looked up when those before it tell nothing."""
        yield self._of_tasks(cure)
        if any(LedgerPath(path).trunk == "idle" for path in paths):
            yield self._of_ledger(paths)
            yield self._of_kernels(references, tables)
        else:
            yield self._of_kernels(references, tables)
            yield self._of_ledger(paths)
        yield self._of_intervals(references)

    def _summed(self, kinds: Ints, lengths: Ints) -> Ints:
        known = kinds != NOTHING
        return np.bincount(kinds[known], weights=lengths[known], minlength=len(self.kinds)).astype(np.int64)

    def _of_tasks(self, cure: Cure | None) -> Ints:
        if not isinstance(cure, Shortening | Merging | Overlapping):
            return np.zeros(len(self.kinds), dtype=np.int64)
        tasks = self.device.iloc[np.unique(cure.tasks)]
        starts = tasks["start_ns"].to_numpy()
        return self._summed(self.stretches.at(starts), tasks["end_ns"].to_numpy() - starts)

    def _of_kernels(self, references: Sequence[Reference], tables: Mapping[str, Table]) -> Ints:
        took = np.zeros(len(self.kinds), dtype=np.int64)
        for reference in references:
            if isinstance(reference, Rows) and reference.table.name in OF_DEVICE:
                frame, rows = tables[reference.table.name].frame, np.unique(reference.rows)
                starts, lengths = (frame[name].to_numpy()[rows] for name in ("start_ns", "duration_ns"))
                took += self._summed(self.stretches.at(starts), lengths)
        return took

    def _of_intervals(self, references: Sequence[Reference]) -> Ints:
        took = np.zeros(len(self.kinds), dtype=np.int64)
        for reference in references:
            if isinstance(reference, Interval):
                inside = self.stretches.clip(reference.start_ns, reference.end_ns)
                took += self._summed(inside.ids, inside.ends - inside.starts)
        return took

    def _of_ledger(self, paths: Sequence[str]) -> Ints:
        if self.ledger is None or not paths:
            return np.zeros(len(self.kinds), dtype=np.int64)
        codes, names = pd.factorize(self.ledger["path"])
        claimed = np.array([any(LedgerPath(path).covers(name) for path in paths) for name in names.tolist()])[codes]
        number = {(part, phase): place for place, (part, phase, _) in enumerate(self.kinds)}
        booked = self.ledger[claimed]
        keys = zip(booked["part"].tolist(), booked["phase"].tolist(), strict=True)  # a few leaves per step and part
        kinds = np.array([number.get(key, NOTHING) for key in keys], dtype=np.int64)
        return self._summed(kinds, booked["ns"].to_numpy())


def part_times(source: FactSource) -> PartTimes | None:
    """``None`` for a recording of one part, or where no parts are known."""
    try:
        facts = source.view((parts, work), (part_ledger,))
    except Unanswered:
        return None
    assert isinstance(facts, Facts), "the parts are of a rank"
    told = facts[parts]
    kinds, numbers = _kinds(told)
    lengths = (told["end_ns"] - told["start_ns"]).to_numpy()
    shares = np.bincount(numbers, weights=lengths, minlength=len(kinds)) / max(int(lengths.sum()), 1)
    if (shares >= TOLD).sum() < 2:
        return None
    stretches = Layer(told["start_ns"].to_numpy(), told["end_ns"].to_numpy(), numbers)
    return PartTimes(stretches, kinds, facts.get(part_ledger), facts[work])


def _kinds(told: pd.DataFrame) -> tuple[list[tuple[str, str, str]], Ints]:
    keys = list(zip(*(told[name].astype(str).tolist() for name in ("part", "phase", "kind")), strict=True))
    kinds = list(dict.fromkeys(keys))
    return kinds, np.array([kinds.index(key) for key in keys], dtype=np.int64)


def claimed_paths(compiled: CompiledRule, observation: Mapping[str, Scalar]) -> tuple[str, ...]:
    """The ledger paths of a finding; ``{{ column }}`` in a path is the value of a text column."""
    paths = []
    for path in compiled.rule.claims:
        for name, value in observation.items():
            path = path.replace("{{ " + name + " }}", str(value))
        paths.append(path)
    return tuple(paths)
