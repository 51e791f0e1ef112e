"""Problems: findings as trees, causes under their symptoms, numbered as every report shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from advisor_core.result.finding import SEVERITIES, Basis, Finding
from advisor_core.result.problem import Problem, Shared
from advisor_core.run.compose_mean_steps import Lane

_WEAKEST_FIRST: tuple[Basis, ...] = ("upper_bound", "estimate", "exact")

SHARED_FROM = 0.01
"""Share of the step from which it is told that time of a problem stands under another one. A convention, as for the
least that most rules judge: less changes no reader's mind."""


@dataclass
class _Node:
    """A finding with the causes that stand below it; the number is given when all trees are known."""

    finding: Finding
    position: int
    causes: list[_Node] = field(default_factory=list)
    number: str = ""

    def walk(self) -> Iterator[_Node]:
        yield self
        for cause in self.causes:
            yield from cause.walk()


def compose_problems(findings: Sequence[Finding], walls: Mapping[Lane, int]) -> list[Problem]:
    """The problems in the order of a report: each tree at the place of its first finding, a cause after its symptom.

    A cause of several symptoms stands under the first of them and is linked from the others. Links to findings that
    are not there are left out; a circle of explanations is cut at its first member. ``walls``: ns of the mean step.
    """
    nodes = {finding.fingerprint: _Node(finding, position) for position, finding in enumerate(findings)}
    causes = _causes(findings)
    roots = _trees(nodes, causes)
    symptoms: dict[str, list[str]] = defaultdict(list)
    for symptom, found in causes.items():
        for cause in found:
            symptoms[cause].append(symptom)
    for position, root in enumerate(roots, 1):
        _number(root, f"F{position}", 0)

    def numbers(fingerprints: set[str]) -> list[str]:
        return [nodes[key].number for key in sorted(fingerprints, key=lambda key: nodes[key].position)]

    def problems(node: _Node, parent: str | None, depth: int) -> Iterator[Problem]:
        below = {cause.finding.fingerprint for cause in node.causes}
        own = node.finding.fingerprint
        yield _problem(
            node,
            parent,
            depth,
            walls,
            also=numbers(set(causes[own]) - below),
            symptoms=numbers(set(symptoms[own])),
            shared=_shared(node, nodes.values(), walls),
        )
        for cause in node.causes:
            yield from problems(cause, node.number, depth + 1)

    return [problem for root in roots for problem in problems(root, None, 0)]


def _causes(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Fingerprint to those of its causes, as either side of a link tells it."""
    causes: dict[str, list[str]] = {finding.fingerprint: [] for finding in findings}
    links = [(finding.fingerprint, cause) for finding in findings for cause in finding.explained_by]
    links += [(symptom, finding.fingerprint) for finding in findings for symptom in finding.explains]
    for symptom, cause in links:
        if symptom in causes and cause in causes and cause != symptom and cause not in causes[symptom]:
            causes[symptom].append(cause)
    return causes


def _trees(nodes: Mapping[str, _Node], causes: Mapping[str, Sequence[str]]) -> list[_Node]:
    placed: set[str] = set()

    def place(key: str) -> _Node:
        placed.add(key)
        for cause in causes[key]:
            if cause not in placed:
                nodes[key].causes.append(place(cause))
        return nodes[key]

    is_cause = {cause for found in causes.values() for cause in found}
    roots = [place(key) for key in nodes if key not in is_cause]
    roots += [place(key) for key in nodes if key not in placed]
    return sorted(roots, key=lambda root: min(node.position for node in root.walk()))


def _number(node: _Node, number: str, depth: int) -> None:
    node.number = number
    for position, cause in enumerate(node.causes):
        _number(cause, number + (_letters(position) if depth % 2 == 0 else str(position + 1)), depth + 1)


def _letters(position: int) -> str:
    """0 to ``a``, 25 to ``z``, 26 to ``aa``."""
    letters = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _problem(
    node: _Node,
    parent: str | None,
    depth: int,
    walls: Mapping[Lane, int],
    also: list[str],
    symptoms: list[str],
    shared: list[Shared],
) -> Problem:
    finding, findings = node.finding, [below.finding for below in node.walk()]
    rank, stake = _stake(node)
    wall = walls.get((finding.role, rank), 0) if rank is not None else 0
    bases = {found.impact.basis for found in findings if found.impact.ns_per_step > 0} or {finding.impact.basis}
    time: Literal["at_stake", "counted_elsewhere", "none"] = "at_stake"
    if not stake:
        time = "counted_elsewhere" if any(found.impact.gross_ns_per_step for found in findings) else "none"
    return Problem(
        number=node.number,
        parent=parent,
        depth=depth,
        findings=[found.fingerprint for found in findings],
        causes=[cause.number for cause in node.causes],
        also_causes=also,
        symptoms=symptoms,
        rank=rank,
        stake_ns=stake,
        share_of_step=round(stake / wall, 6) if wall else 0.0,
        own_ns=finding.impact.ns_per_step,
        shared=shared,
        basis=next(basis for basis in _WEAKEST_FIRST if basis in bases),
        time=time,
        severity=min((found.severity for found in findings), key=SEVERITIES.index),
        actor=_actor(node).number,
    )


def _shared(node: _Node, nodes: Iterable[_Node], walls: Mapping[Lane, int]) -> list[Shared]:
    """The time that a finding measured on its rank and that others, which are no causes of it, claim from the entries
    of which it got the rest."""
    finding, rank = node.finding, node.finding.rank
    if rank is None:
        return []
    least = SHARED_FROM * walls.get((finding.role, rank), 0)
    below = {each.finding.fingerprint for each in node.walk()}
    missing = finding.impact.gross_ns_per_step - sum(_claimed(each.finding, rank) for each in node.walk())
    paths = {claim.path for claim in finding.impact.claims if claim.rank == rank}
    others = [other for other in nodes if other.finding.fingerprint not in below and other.finding.role == finding.role]
    found: list[Shared] = []
    for ns, other in sorted(((_claimed(other.finding, rank, paths), other) for other in others), key=_most_first):
        ns = min(ns, missing)
        if ns <= 0 or ns < least:
            break
        found.append(Shared(number=other.number, ns=ns))
        missing -= ns
    return found


def _most_first(claimed: tuple[int, _Node]) -> tuple[int, int]:
    ns, node = claimed
    return -ns, node.position


def _claimed(finding: Finding, rank: int, paths: Collection[str] | None = None) -> int:
    """The ns of a step of a rank that a finding claims, from all entries of the ledger or from those of ``paths``."""
    claims = finding.impact.claims
    return sum(claim.ns for claim in claims if claim.rank == rank and (paths is None or claim.path in paths))


def _stake(node: _Node) -> tuple[int | None, int]:
    """A rank, and the ns of its step that a finding and its causes claim together, as claims never overlap: the rank
    that the finding is shown for, or where that has none, the one with most."""
    ns: dict[int, int] = defaultdict(int)
    for below in node.walk():
        for claim in below.finding.impact.claims:
            ns[claim.rank] += claim.ns
    rank = node.finding.rank
    if rank is None or not ns.get(rank):
        rank = max(ns, key=lambda key: (ns[key], -key), default=None)
    return (None, 0) if rank is None else (rank, ns[rank])


def _actor(node: _Node) -> _Node:
    """The finding whose advice to follow first: the largest cause of the cause, or the finding itself where it holds
    more than each of its causes."""
    largest = max(node.causes, key=lambda cause: _stake(cause)[1], default=None)
    return _actor(largest) if largest and _stake(largest)[1] >= node.finding.impact.ns_per_step else node
