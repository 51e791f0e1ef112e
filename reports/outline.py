"""Outline of a report, shared by all renderers: the order of findings, symptoms with their causes, unexplained time.

Nothing here knows a format. Times are ns per step, means over the steps of a rank.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

from advisor_core.contracts.ledger_paths import LedgerPath
from advisor_core.result.finding import SEVERITIES, Advice, Basis, Finding, Severity
from advisor_core.result.run import LedgerStep, RuleOutcome, RunResult, State
from advisor_core.text.base import Scalar, Text
from reports.labels import Labels, one_line

CLASSES = ("compute", "communication", "idle")
"""The trunk of the ledger, in the order in which bars show it."""

UNEXPLAINED_LIMIT = 0.02
"""Share of the step above which time that no finding claims is listed."""

TOP = 3
ALL_RANKS = 6
"""Up to so many ranks a table has a column for each."""

STATE_ORDER: tuple[State, ...] = ("fail", "error", "cannot_answer", "not_applicable", "pass", "left_out")
assert set(STATE_ORDER) == set(get_args(State))


# --- the ledger


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
    """The mean step of one rank; ``rank`` is ``None`` for the mean of all ranks. ``role``: of a job whose roles were
    profiled one by one; the mean of all of it is then an iteration, the sum of its roles."""

    rank: int | None
    steps: int
    wall_ns: int
    entries: Mapping[str, int]
    details: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    pieces: Mapping[str, Sequence[Mapping[str, Scalar]]] = field(default_factory=dict)
    reasons: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)
    """Why an entry has no cause, and what would tell it."""
    role: str | None = None

    @property
    def lane(self) -> Lane | None:
        return None if self.rank is None else (self.role, self.rank)

    def share(self, ns: float) -> float:
        return ns / self.wall_ns if self.wall_ns > 0 else 0.0

    def under(self, path: str) -> int:
        """All that is booked at ``path`` and below it."""
        return sum(ns for leaf, ns in self.entries.items() if LedgerPath(path).covers(leaf))

    @cached_property
    def roots(self) -> tuple[Node, ...]:
        """The trees: the trunk in its fixed order, below it the largest first."""
        nodes = self._children("")
        trunk = {name: number for number, name in enumerate(CLASSES)}
        return tuple(sorted(nodes, key=lambda node: trunk.get(node.path, len(trunk))))

    def _children(self, parent: str) -> tuple[Node, ...]:
        depth = len(parent) + 1 if parent else 0
        names = {
            path[depth:].partition("/")[0] for path in self.entries if not parent or LedgerPath(parent).above(path)
        }
        nodes = []
        for name in sorted(names):
            path = f"{parent}/{name}" if parent else name
            ns = self.under(path)
            nodes.append(Node(path, ns, self.share(ns), self._children(path)))
        return tuple(sorted(nodes, key=lambda node: -node.ns))


def ledgers(steps: Sequence[LedgerStep]) -> list[Ledger]:
    """The mean step of each rank, by rank; of several roles, by role in the order of the result, and rank."""
    by_lane: dict[Lane, list[LedgerStep]] = defaultdict(list)
    for step in steps:
        by_lane[step.role, step.rank].append(step)
    roles = list(dict.fromkeys(role for role, _ in by_lane))
    result = []
    for role, rank in sorted(by_lane, key=lambda lane: (roles.index(lane[0]), lane[1])):
        own = by_lane[role, rank]
        sums: dict[str, int] = defaultdict(int)
        details: dict[str, Mapping[str, Scalar]] = {}
        pieces: dict[str, Sequence[Mapping[str, Scalar]]] = {}
        reasons: dict[str, tuple[Text, ...]] = {}
        for step in own:
            for entry in step.entries:
                sums[entry.path] += entry.ns
                if entry.detail:
                    details.setdefault(entry.path, entry.detail)
                if entry.reason is not None:
                    reasons.setdefault(entry.path, tuple(text for text in (entry.reason, entry.collect) if text))
                if entry.pieces:
                    pieces.setdefault(entry.path, entry.pieces)
        wall = round(sum(step.wall_ns for step in own) / len(own))
        entries = {path: round(ns / len(own)) for path, ns in sums.items()}
        result.append(Ledger(rank, len(own), wall, entries, details, pieces, reasons, role))
    return result


def mean_ledger(by_rank: Sequence[Ledger]) -> Ledger:
    """The mean of all ranks."""
    sums: dict[str, int] = defaultdict(int)
    details: dict[str, Mapping[str, Scalar]] = {}
    reasons: dict[str, tuple[Text, ...]] = {}
    for ledger in by_rank:
        reasons = {**ledger.reasons, **reasons}
        for path, ns in ledger.entries.items():
            sums[path] += ns
        for path, detail in ledger.details.items():
            details.setdefault(path, detail)
    count = max(1, len(by_rank))
    return Ledger(
        rank=None,
        steps=max((ledger.steps for ledger in by_rank), default=0),
        wall_ns=round(sum(ledger.wall_ns for ledger in by_rank) / count),
        entries={path: round(ns / count) for path, ns in sums.items()},
        details=details,
        reasons=reasons,
    )


def role_means(by_rank: Sequence[Ledger]) -> tuple[Ledger, ...]:
    """The mean of the ranks of each role."""
    roles = dict.fromkeys(ledger.role for ledger in by_rank)
    return tuple(replace(mean_ledger([led for led in by_rank if led.role == role]), role=role) for role in roles)


def whole_iteration(by_role: Sequence[Ledger]) -> Ledger:
    """The roles one after the other: their sum."""
    sums: dict[str, int] = defaultdict(int)
    details: dict[str, Mapping[str, Scalar]] = {}
    reasons: dict[str, tuple[Text, ...]] = {}
    for ledger in by_role:
        reasons = {**ledger.reasons, **reasons}
        details = {**ledger.details, **details}
        for path, ns in ledger.entries.items():
            sums[path] += ns
    return Ledger(
        rank=None,
        steps=max((ledger.steps for ledger in by_role), default=0),
        wall_ns=sum(ledger.wall_ns for ledger in by_role),
        entries=sums,
        details=details,
        reasons=reasons,
    )


def extremes(by_rank: Sequence[Ledger]) -> tuple[Ledger, ...]:
    """The slowest, the median and the fastest of many ranks."""
    ordered = sorted(by_rank, key=lambda ledger: (-ledger.wall_ns, ledger.rank))
    return (ordered[0], ordered[len(ordered) // 2], ordered[-1]) if len(ordered) > TOP else tuple(by_rank)


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
        wanted = list(paths)
        sums = [sum(ledger.under(path) for path in wanted) for ledger in columns]
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


# --- findings


@dataclass(frozen=True)
class Stake:
    """Time at stake of a finding together with its causes, on one rank; ``share`` is of its step."""

    ns: int
    share: float
    basis: Basis


@dataclass(frozen=True)
class Item:
    """A finding in its place: ``number`` as printed (``F1``, its causes ``F1a`` ...), ``anchor`` to link to.

    ``walls``: lane to its step, ns. ``causes`` stand below it; ``also_causes`` and ``symptoms`` are the anchors and
    numbers of what stands elsewhere.
    """

    number: str
    anchor: str
    finding: Finding
    walls: Mapping[Lane, int]
    causes: tuple[Item, ...]
    symptoms: tuple[tuple[str, str], ...] = ()
    also_causes: tuple[tuple[str, str], ...] = ()

    def walk(self) -> Iterator[Item]:
        yield self
        for cause in self.causes:
            yield from cause.walk()

    @cached_property
    def stake(self) -> Stake:
        """Claims never overlap, so those of a symptom and of its causes on one rank add up: on the rank the finding is
        shown for, or where that has none, where they are most."""
        findings = [item.finding for item in self.walk()]
        ns: dict[int, int] = defaultdict(int)
        for claim in (claim for finding in findings for claim in finding.impact.claims):
            ns[claim.rank] += claim.ns
        rank = self.finding.rank
        if rank is None or not ns[rank]:
            rank = max(ns, key=lambda key: (ns[key], -key), default=None)
        bases = {finding.impact.basis for finding in findings if finding.impact.ns_per_step > 0}
        bases = bases or {self.finding.impact.basis}
        weakest: Basis = "upper_bound" if "upper_bound" in bases else "estimate" if "estimate" in bases else "exact"
        if rank is None:
            return Stake(0, 0.0, weakest)
        wall = self.walls.get((self.finding.role, rank), 0)
        return Stake(ns[rank], ns[rank] / wall if wall else 0.0, weakest)

    @property
    def of_step(self) -> str:
        """The name of the text that says what the share is of."""
        return "first.of_step" if self.finding.role is None else "first.of_role"

    @property
    def no_time(self) -> str:
        """Where there is no time at stake, the name of the text that says why."""
        if self.stake.ns:
            return ""
        measured = max(item.finding.impact.gross_ns_per_step for item in self.walk())
        return "first.counted_elsewhere" if measured else "first.no_time"

    @cached_property
    def severity(self) -> Severity:
        """The highest of the finding and its causes."""
        return min((item.finding.severity for item in self.walk()), key=SEVERITIES.index)

    @property
    def actor(self) -> Item:
        """Whose advice to follow first: the largest cause of the cause, or the finding itself where it holds more than
        each of its causes."""
        largest = max(self.causes, key=lambda cause: cause.stake.ns, default=None)
        return largest.actor if largest and largest.stake.ns >= self.finding.impact.ns_per_step else self

    @property
    def advice(self) -> Advice:
        """The first thing to do."""
        return self.actor.finding.advice[0]


def arrange(findings: Sequence[Finding], walls: Mapping[Lane, int]) -> list[Item]:
    """Findings as trees, causes under their symptom, in the order of the result. ``walls``: lane to its step, ns.

    A cause of several symptoms stands under the first of them and is linked from the others. Links to findings that
    are not in the result are left out; a circle of explanations is cut at its first member.
    """
    index: dict[str, int] = {}
    for number, finding in enumerate(findings):
        index.setdefault(finding.fingerprint, number)
    causes: dict[int, list[int]] = defaultdict(list)
    for number, finding in enumerate(findings):
        for fingerprint in finding.explained_by:
            cause = index.get(fingerprint)
            if cause is not None and cause != number and cause not in causes[number]:
                causes[number].append(cause)
    for number, finding in enumerate(findings):
        for fingerprint in finding.explains:
            symptom = index.get(fingerprint)
            if symptom is not None and symptom != number and number not in causes[symptom]:
                causes[symptom].append(number)

    placed: set[int] = set()
    below: dict[int, list[int]] = {}

    def place(number: int) -> list[int]:
        """Put a finding and all its causes; the numbers of the whole tree."""
        placed.add(number)
        below[number] = []
        members = [number]
        for cause in causes[number]:
            if cause not in placed:
                below[number].append(cause)
                members += place(cause)
        return members

    is_cause = {cause for found in causes.values() for cause in found}
    trees = [(min(place(n)), n) for n in range(len(findings)) if n not in is_cause]
    trees += [(min(place(n)), n) for n in range(len(findings)) if n not in placed]

    names: dict[int, str] = {}

    def name(number: int, label: str, depth: int) -> None:
        names[number] = label
        for position, cause in enumerate(below[number]):
            name(cause, label + (_letters(position) if depth % 2 == 0 else str(position + 1)), depth + 1)

    for position, (_, root) in enumerate(sorted(trees)):
        name(root, f"F{position + 1}", 0)

    anchors = _anchors(findings)
    symptoms: dict[int, list[int]] = defaultdict(list)
    for symptom, found in causes.items():
        for cause in found:
            symptoms[cause].append(symptom)

    def link(numbers: Iterable[int]) -> tuple[tuple[str, str], ...]:
        return tuple((anchors[number], names[number]) for number in sorted(numbers))

    def item(number: int) -> Item:
        own = below[number]
        return Item(
            number=names[number],
            anchor=anchors[number],
            finding=findings[number],
            walls=walls,
            causes=tuple(item(cause) for cause in own),
            symptoms=link(symptoms[number]),
            also_causes=link(set(causes[number]) - set(own)),
        )

    return [item(root) for _, root in sorted(trees)]


def _letters(position: int) -> str:
    """0 to ``a``, 25 to ``z``, 26 to ``aa``."""
    letters = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _anchors(findings: Sequence[Finding]) -> list[str]:
    """An id for each finding, from its fingerprint, so that a link from a ticket survives a new run."""
    seen: dict[str, int] = defaultdict(int)
    anchors = []
    for finding in findings:
        slug = re.sub(r"[^A-Za-z0-9]+", "-", finding.fingerprint).strip("-")[:64] or "finding"
        seen[slug] += 1
        anchors.append(f"f-{slug}" if seen[slug] == 1 else f"f-{slug}--{seen[slug]}")
    return anchors


# --- what no finding claims


@dataclass(frozen=True)
class Unclaimed:
    """A ledger entry of which more than the limit is claimed by no finding."""

    rank: int
    path: str
    ns: int
    share: float
    ranks: int = 1
    """Of how many ranks this is the one with most: of many ranks, an entry is listed once."""
    role: str | None = None


def unclaimed(by_rank: Sequence[Ledger], findings: Sequence[Finding]) -> dict[Lane, dict[str, int]]:
    """What is left of each entry of each rank of each role after every finding took its claims.

    A claim of an inner node takes from all entries below it in proportion to what is left there.
    """
    left = {ledger.lane: dict(ledger.entries) for ledger in by_rank if ledger.lane is not None}
    for finding in findings:
        for claim in finding.impact.claims:
            if (finding.role, claim.rank) in left:
                _take(left[finding.role, claim.rank], claim.path, claim.ns)
    return left


def _take(left: dict[str, int], path: str, ns: int) -> None:
    leaves = [leaf for leaf in left if LedgerPath(path).covers(leaf)]
    total = sum(left[leaf] for leaf in leaves)
    if total <= 0:
        return
    part = min(1.0, ns / total)
    for leaf in leaves:
        left[leaf] -= round(left[leaf] * part)


# --- the whole


@dataclass(frozen=True)
class Outline:
    """A result, read."""

    result: RunResult

    @cached_property
    def by_rank(self) -> list[Ledger]:
        return ledgers(self.result.ledger)

    @property
    def has_roles(self) -> bool:
        """Whether the roles of a job were profiled one by one: the report then goes by roles, not by ranks."""
        return bool(self.result.profile.roles)

    @cached_property
    def mean(self) -> Ledger:
        """The mean step of all ranks; of several roles, the iteration that they make up."""
        return whole_iteration(role_means(self.by_rank)) if self.has_roles else mean_ledger(self.by_rank)

    @cached_property
    def shown(self) -> tuple[Ledger, ...]:
        """The ranks the first screen shows, or the roles."""
        return role_means(self.by_rank) if self.has_roles else extremes(self.by_rank)

    @cached_property
    def told(self) -> tuple[Ledger, ...]:
        """The ranks whose largest stretches are told: those shown, or the slowest of each role."""
        if not self.has_roles:
            return self.shown
        ordered = sorted(self.by_rank, key=lambda ledger: -ledger.wall_ns)
        return tuple(next(led for led in ordered if led.role == role.role) for role in self.shown)

    @property
    def ranks(self) -> int:
        return len({ledger.rank for ledger in self.by_rank})

    @cached_property
    def columns(self) -> tuple[Ledger, ...]:
        """The columns of the ledger table: every rank, or the mean and the extremes of many."""
        if len(self.by_rank) <= 1:
            return tuple(self.by_rank)
        if self.has_roles:
            return (self.mean, *self.shown)
        return (self.mean, *(self.by_rank if len(self.by_rank) <= ALL_RANKS else self.shown))

    @cached_property
    def rows(self) -> list[LedgerRow]:
        return ledger_rows(self.columns, self.mean)

    @cached_property
    def items(self) -> list[Item]:
        walls = {ledger.lane: ledger.wall_ns for ledger in self.by_rank if ledger.lane is not None}
        return arrange(self.result.findings, walls)

    @cached_property
    def anchors(self) -> dict[str, str]:
        """The first finding of each rule that fired."""
        found: dict[str, str] = {}
        for root in self.items:
            for item in root.walk():
                found.setdefault(item.finding.rule, item.anchor)
        return found

    @cached_property
    def kinds(self) -> list[tuple[Item, int]]:
        """The first tree of each rule, in the order the engine ranked them, and how many trees of that rule follow."""
        first: dict[str, Item] = {}
        for item in self.items:
            first.setdefault(item.finding.rule, item)
        count = Counter(item.finding.rule for item in self.items)
        return [(item, count[rule] - 1) for rule, item in first.items()]

    @property
    def top(self) -> list[tuple[Item, int]]:
        """What matters most: different problems, not one problem on many ranks."""
        return self.kinds[:TOP]

    @cached_property
    def rules(self) -> dict[State, list[RuleOutcome]]:
        """Every rule by its state; the states that want attention first. Stages for which a rule says the same of
        itself share one entry, with their names as its ``role``."""
        groups: dict[State, list[RuleOutcome]] = {state: [] for state in STATE_ORDER}
        for outcome in _together(self.result.rules):
            groups[outcome.state].append(outcome)
        return {state: sorted(found, key=lambda outcome: outcome.rule) for state, found in groups.items()}

    @property
    def outcomes(self) -> int:
        """Rules that were asked: without those that were left out."""
        return sum(len(found) for state, found in self.rules.items() if state != "left_out")

    @property
    def unanswered(self) -> int:
        return len(self.rules["cannot_answer"]) + len(self.rules["error"])

    @cached_property
    def _left(self) -> dict[Lane, dict[str, int]]:
        return unclaimed(self.by_rank, self.result.findings)

    @cached_property
    def unexplained(self) -> list[Unclaimed]:
        """Entries above the limit that no finding claims, largest first."""
        found = [
            Unclaimed(ledger.rank, path, ns, ledger.share(ns), role=ledger.role)
            for ledger in self.by_rank
            if ledger.rank is not None and ledger.lane is not None
            for path, ns in self._left[ledger.lane].items()
            if ledger.share(ns) > UNEXPLAINED_LIMIT
        ]
        found.sort(key=lambda entry: (-(entry.ns if self.has_roles else entry.share), entry.rank, entry.path))
        if len(self.by_rank) <= ALL_RANKS:
            return found
        count = Counter((entry.role, entry.path) for entry in found)
        worst: dict[tuple[str | None, str], Unclaimed] = {}
        for entry in found:
            key = (entry.role, entry.path)
            worst.setdefault(key, replace(entry, ranks=count[key]))
        return list(worst.values())

    @property
    def claimed_share(self) -> float:
        """Share of the mean step that findings claim."""
        wall = sum(ledger.wall_ns for ledger in self.by_rank)
        left = sum(sum(entries.values()) for entries in self._left.values())
        return 1 - left / wall if wall > 0 else 0.0

    @property
    def known_share(self) -> float:
        """Share of the mean step that is booked under a cause other than unknown."""
        vague = sum(ns for path, ns in self.mean.entries.items() if path.rpartition("/")[2] == "unknown")
        return 1 - self.mean.share(vague)

    @property
    def unrecorded(self) -> list[str]:
        """Environment variables that an advice names and the profile does not record."""
        wanted = {
            name
            for finding in self.result.findings
            for advice in finding.advice
            if advice.kind == "env"
            for name in advice.set
        }
        return sorted(wanted - self.result.environment.variables.keys())


def _together(outcomes: Sequence[RuleOutcome]) -> list[RuleOutcome]:
    groups: dict[tuple[object, ...], list[RuleOutcome]] = {}
    for outcome in outcomes:
        about = (outcome.rule, outcome.state, repr(outcome.reason), repr(outcome.collect))
        groups.setdefault(about if outcome.role is not None else (*about, len(groups)), []).append(outcome)
    return [
        own[0]
        if len(own) == 1
        else own[0].model_copy(
            update={
                "role": ", ".join(outcome.role or "" for outcome in own),
                "findings": sum(outcome.findings for outcome in own),
                "severity": min((o.severity for o in own if o.severity), key=SEVERITIES.index, default=None),
            }
        )
        for own in groups.values()
    ]


def percents(values: Sequence[float]) -> list[int]:
    """Whole percentages of the sum of ``values`` that add up to 100 (largest remainder)."""
    total = sum(values)
    if total <= 0:
        return [0] * len(values)
    exact = [100 * value / total for value in values]
    whole = [int(value) for value in exact]
    by_rest = sorted(range(len(values)), key=lambda number: (whole[number] - exact[number], number))
    for number in by_rest[: 100 - sum(whole)]:
        whole[number] += 1
    return whole


def verdict(outline: Outline, labels: Labels) -> str:
    """One sentence, from the numbers alone: what the step consists of, largest part first."""
    mean = outline.mean
    if not outline.by_rank or mean.wall_ns <= 0 or not mean.roots:
        return labels("verdict.no_ledger")
    parts = sorted(
        zip(mean.roots, percents([node.ns for node in mean.roots]), strict=True), key=lambda pair: -pair[0].ns
    )
    said: list[str] = []
    for node, percent in parts:
        if node.ns == 0:
            continue
        key = f"verdict.{node.path}"
        what = labels(key) if key in labels else labels.path(node.path)
        leaf = max(node.leaves(), key=lambda leaf: leaf.ns)
        inner = round(100 * mean.share(leaf.ns))
        if percent >= 25 and leaf.path != node.path and leaf.ns * 2 >= node.ns:
            if leaf.path.endswith("/unknown"):
                what = labels("verdict.unknown", what=what)
            else:
                what = labels("verdict.within", what=what, percent=inner, inner=labels.trail(leaf.path))
        said.append(labels("verdict.next" if said else "verdict.part", percent=percent or "< 1", what=what))
    ranks, steps = outline.ranks, mean.steps
    time, listed = labels.wall(mean.wall_ns), labels("word.clause").join(said)
    if outline.has_roles:
        of = labels("verdict.roles", roles=len(outline.shown), ranks=ranks)
        return labels("verdict.of_roles", time=time, what=of, parts=listed)
    if ranks > 1 and steps > 1:
        of = labels("verdict.ranks_steps", ranks=ranks, steps=steps)
    elif ranks > 1:
        of = labels("verdict.ranks", count=ranks)
    elif steps > 1:
        of = labels("verdict.steps", count=steps)
    else:
        return labels("verdict.of", time=time, parts=listed)
    return labels("verdict.of_mean", time=time, what=of, parts=listed)


_NAMES = {"pytorch": "PyTorch", "mindspore": "MindSpore"} | {f"level{n}": f"Level{n}" for n in ("_none", 0, 1, 2)}
"""How a reader writes what a profile calls its framework and its level."""


@dataclass(frozen=True)
class Ran:
    """One fact about what ran."""

    key: str
    value: str


def what_ran(outline: Outline, labels: Labels) -> list[Ran]:
    """The facts the first line gives: enough to know whether this is the profile one thinks it is."""
    result = outline.result
    missing = labels("word.unknown")
    frameworks = _distinct(_NAMES.get(entry.framework or "", entry.framework) for entry in result.inputs)
    levels = _distinct(_NAMES.get(entry.level or "", entry.level) for entry in result.inputs)
    phase = f"phase.{result.profile.kind}"
    facts = [
        Ran("ran.step_time", labels.wall(outline.mean.wall_ns) if outline.by_rank else missing),
        Ran("ran.framework", labels.join(frameworks) or missing),
        Ran("ran.level", labels.join(levels) or missing),
        Ran("ran.ranks", _ranks(result, labels)),
        Ran("ran.steps", _steps(result, labels)),
        Ran("ran.phase", labels(phase) if phase in labels else result.profile.kind),
        Ran("ran.chip", _chip(result) or missing),
    ]
    if result.profile.role is not None:
        facts.insert(1, Ran("ran.role", result.profile.role))
    if outline.has_roles:
        facts[0] = Ran("ran.iteration", facts[0].value)
        facts.insert(1, Ran("ran.roles", labels.join(list(result.profile.roles))))
    if sizes := [f"{name} {size}" for name, size in result.profile.parallel.items() if size > 1]:
        facts.append(Ran("ran.parallel", labels.join(sizes)))
    return facts


def _distinct(values: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


def _ranks(result: RunResult, labels: Labels) -> str:
    ranks = result.profile.ranks
    listed = labels.join([str(rank) for rank in ranks[:8]])
    if len(ranks) > 8:
        listed = labels("ran.more", list=listed, count=len(ranks) - 8)
    world = result.profile.world_size
    return labels("ran.ranks_of", list=listed, world=world) if world and world > len(ranks) else listed or "–"


def _steps(result: RunResult, labels: Labels) -> str:
    if not result.profile.steps:
        return labels("word.unknown")
    steps = list(dict.fromkeys(step.step for step in result.profile.steps))
    numbered = [step for step in steps if step is not None]
    if not numbered:
        return labels("ran.step_anonymous")
    if len(numbered) == 1:
        return labels("ran.step_one", step=numbered[0])
    return labels("ran.steps_many", count=len(numbered), first=min(numbered), last=max(numbered))


def _chip(result: RunResult) -> str:
    chip = result.environment.chip
    cores, clock = chip.get("cube_cores"), chip.get("mhz")
    if isinstance(cores, int) and isinstance(clock, int | float):
        return f"{cores} cube / {chip.get('vector_cores')} vector, {clock:.0f} MHz"
    for name in ("name", "chip", "soc", "soc_name", "soc_version", "model", "family", "type"):
        if isinstance(value := chip.get(name), str) and value:
            return value
    return next((value for value in chip.values() if isinstance(value, str) and value), "")


def coverage(outline: Outline, labels: Labels) -> list[str]:
    """How many rules are in which state; states without a rule are left out."""
    return [labels(f"states.{state}", n=len(outline.rules[state])) for state in STATE_ORDER if outline.rules[state]]


def rank_name(ledger: Ledger, outline: Outline, labels: Labels) -> str:
    """What a bar or a column is called: its rank, and for a choice of many which of them it is."""
    if ledger.rank is None and ledger.role is not None:
        return one_line(ledger.role)
    if ledger.rank is None and outline.has_roles:
        return labels("word.iteration")
    if ledger.rank is None:
        return labels("word.mean", count=len(outline.by_rank))
    if len(outline.shown) < len(outline.by_rank) and ledger in outline.shown:
        role = ("slowest", "median", "fastest")[outline.shown.index(ledger)]
        return labels(f"word.{role}", rank=ledger.rank)
    return labels("word.rank", rank=ledger.rank)
