"""The ledger as a report reads it: mean steps as trees, and the table of them side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from advisor_core.api import Scalar, Text
from advisor_core.api.renderers import MeanStep, RunResult

T = TypeVar("T")

CLASSES = ("compute", "communication", "idle")
"""The trunk of the ledger, in the order in which bars show it."""


@dataclass(frozen=True)
class Node:
    """An entry of the ledger with everything below it; ``share`` is of the step."""

    path: str
    ns: int
    share: float
    children: tuple[Node, ...] = ()

    def leaves(self) -> Iterator[Node]:
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


Lane = tuple[str | None, int]
"""A rank of a role; the role is ``None`` unless roles were profiled one by one."""


@dataclass(frozen=True)
class Ledger:
    """The mean step of a rank, of a role, or of all, with what the steps tell of its entries."""

    mean: MeanStep
    details: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    pieces: Mapping[str, Sequence[Mapping[str, Scalar]]] = field(default_factory=dict)
    reasons: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)
    """Why an entry has no cause, and what would tell it."""

    @property
    def rank(self) -> int | None:
        """``None`` for the mean of several ranks."""
        return self.mean.rank

    @property
    def role(self) -> str | None:
        return self.mean.role

    @property
    def wall_ns(self) -> int:
        return self.mean.wall_ns

    @property
    def entries(self) -> Mapping[str, int]:
        return self.mean.entries

    @property
    def lane(self) -> Lane | None:
        return None if self.rank is None else (self.role, self.rank)

    def share(self, ns: float) -> float:
        return ns / self.wall_ns if self.wall_ns > 0 else 0.0

    def under(self, path: str) -> int:
        """All that is booked at ``path`` and below it."""
        return sum(ns for leaf, ns in self.entries.items() if leaf == path or leaf.startswith(path + "/"))

    @cached_property
    def roots(self) -> tuple[Node, ...]:
        """The trees: the trunk in its fixed order, below it the largest first."""
        nodes = self._children("")
        trunk = {name: number for number, name in enumerate(CLASSES)}
        return tuple(sorted(nodes, key=lambda node: trunk.get(node.path, len(trunk))))

    def _children(self, parent: str) -> tuple[Node, ...]:
        depth = len(parent) + 1 if parent else 0
        names = {path[depth:].partition("/")[0] for path in self.entries if not parent or path.startswith(parent + "/")}
        nodes = []
        for name in sorted(names):
            path = f"{parent}/{name}" if parent else name
            ns = self.under(path)
            nodes.append(Node(path, ns, self.share(ns), self._children(path)))
        return tuple(sorted(nodes, key=lambda node: -node.ns))


def ledgers(result: RunResult) -> list[Ledger]:
    """The mean steps of the result, with the details of the first step and rank that has them."""
    details: dict[tuple[Lane, str], Mapping[str, Scalar]] = {}
    pieces: dict[tuple[Lane, str], Sequence[Mapping[str, Scalar]]] = {}
    reasons: dict[tuple[Lane, str], tuple[Text, ...]] = {}
    for step in result.ledger:
        for entry in step.entries:
            key = ((step.role, step.rank), entry.path)
            if entry.detail:
                details.setdefault(key, entry.detail)
            if entry.reason is not None:
                reasons.setdefault(key, tuple(text for text in (entry.reason, entry.collect) if text))
            if entry.pieces:
                pieces.setdefault(key, entry.pieces)

    def of(by_path: Mapping[tuple[Lane, str], T], mean: MeanStep) -> dict[str, T]:
        first_by_path: dict[str, T] = {}
        for ((role, rank), path), value in by_path.items():
            if mean.role in (None, role) and mean.rank in (None, rank):
                first_by_path.setdefault(path, value)
        return first_by_path

    return [
        Ledger(mean, of(details, mean), of(pieces, mean) if mean.rank is not None else {}, of(reasons, mean))
        for mean in result.mean_steps
    ]


def extremes(by_rank: Sequence[Ledger]) -> tuple[Ledger, ...]:
    """The slowest, the median and the fastest of many ranks."""
    ordered = sorted(by_rank, key=lambda ledger: (-ledger.wall_ns, ledger.rank))
    return (ordered[0], ordered[len(ordered) // 2], ordered[-1]) if len(ordered) > 3 else tuple(by_rank)


def together(ledgers: Sequence[Ledger]) -> Ledger:
    """All entries of several ledgers, summed: the order of the rows of a table, and no step of anything."""
    entries: dict[str, int] = {}
    for ledger in ledgers:
        for path, ns in ledger.entries.items():
            entries[path] = entries.get(path, 0) + ns
    reasons = {path: texts for ledger in reversed(ledgers) for path, texts in ledger.reasons.items()}
    return Ledger(
        MeanStep(role=None, rank=None, steps=1, wall_ns=sum(entries.values()), entries=entries), {}, {}, reasons
    )


@dataclass(frozen=True)
class LedgerRow:
    """One line of the ledger table: the node in each column; ``others`` counts what a line of the rest stands for."""

    path: str
    depth: int
    cells: tuple[tuple[int, float], ...]
    others: int = 0
    detail: Mapping[str, Scalar] = field(default_factory=dict)
    reasons: tuple[Text, ...] = ()


def ledger_rows(columns: Sequence[Ledger], order: Ledger, siblings: int = 12) -> list[LedgerRow]:
    """The tree as lines. Beyond ``siblings`` entries under one parent, the smallest share one line."""

    def cells(paths: Iterable[str]) -> tuple[tuple[int, float], ...]:
        entries = list(paths)
        sums = [sum(ledger.under(path) for path in entries) for ledger in columns]
        return tuple((ns, ledger.share(ns)) for ns, ledger in zip(sums, columns, strict=True))

    def lines(nodes: Sequence[Node], depth: int) -> Iterator[LedgerRow]:
        shown = nodes if len(nodes) <= siblings else nodes[: siblings - 1]
        for node in shown:
            yield LedgerRow(
                node.path,
                depth,
                cells([node.path]),
                0,
                order.details.get(node.path, {}),
                order.reasons.get(node.path, ()),
            )
            yield from lines(node.children, depth + 1)
        rest = nodes[len(shown) :]
        if rest:
            yield LedgerRow(rest[0].path, depth, cells(node.path for node in rest), others=len(rest))

    return list(lines(order.roots, 0))
