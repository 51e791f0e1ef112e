"""Claims: findings take their time out of the ledger, so that no nanosecond is promised twice.

Causes claim before the symptoms they explain, and fine claims before broad ones (``idle/host/compile`` before
``idle``), larger ones before smaller ones. What is left of a symptom is what no cause explains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor_core.contracts.ledger_paths import LedgerPath, covered
from advisor_core.facts.steps.judged_parts import PART
from advisor_core.result.finding import SEVERITIES, Claim, Finding
from advisor_core.result.run import LedgerStep
from advisor_core.run.compose_mean_steps import rank_means

Balance = dict[str, int]
"""Ledger path to ns per step that is not yet claimed."""


Want = tuple[int, Sequence[str]]
"""ns per step that a finding measured on a rank, or a part of them, and the ledger paths it may claim them from."""


def claim_all(
    findings: Sequence[Finding],
    wants: Sequence[Mapping[int, Sequence[Want]]],
    explains: Mapping[str, Sequence[str]],
    ledger: Sequence[LedgerStep],
) -> list[Finding]:
    """The findings with their impact set to what they could claim; ``wants``: rank to what each wants of it, in parts.
    ``explains``: rule id to the ids of its symptoms. A symptom wants what it measured less what its causes took of the
    same rank's entries under its paths."""
    balances: dict[int, Balance] = {rank: dict(mean.entries) for (_, rank), mean in rank_means(ledger).items()}
    walls = {rank: sum(balance.values()) for rank, balance in balances.items()}
    found = {finding.rule for finding in findings}
    links = {rule: symptoms for rule, symptoms in explains.items() if rule in found}
    depth = _depths(_with_broader(links, findings, wants))
    order = sorted(
        range(len(findings)),
        key=lambda n: (
            depth.get(findings[n].rule, 0),
            -findings[n].impact.gross_ns_per_step,
            findings[n].rule,
            findings[n].fingerprint,
        ),
    )
    done: dict[int, Finding] = {}
    for number in order:
        finding = findings[number]
        by_causes = [
            (claim, share_in(finding, cause))
            for cause in done.values()
            if finding.rule in explains.get(cause.rule, ())
            for claim in cause.impact.claims
        ]
        taken = []
        for rank, (gross, paths) in ((rank, part) for rank, parts in sorted(wants[number].items()) for part in parts):
            explained = sum(
                round(claim.ns * part) for claim, part in by_causes if claim.rank == rank and covered(claim.path, paths)
            )
            taken += _take(balances.get(rank, {}), rank, paths, max(gross - explained, 0))
        total = sum(claim.ns for claim in taken if claim.rank == finding.rank)
        share = total / walls[finding.rank] if finding.rank is not None and walls.get(finding.rank) else 0.0
        impact = finding.impact.model_copy(
            update={"ns_per_step": total, "share_of_step": round(share, 6), "claims": taken}
        )
        done[number] = finding.model_copy(update={"impact": impact})
    return [done[number] for number in range(len(findings))]


def share_in(symptom: Finding, cause: Finding) -> float:
    """The share of the time of a ``cause`` that lies in the part of the recording that a ``symptom`` is about; all of
    it where the symptom is about the whole, or where nothing tells where the cause lies."""
    if PART.name not in symptom.subject or not cause.parts:
        return 1.0
    own = {(at.part, at.phase) for at in symptom.parts}
    return sum(at.share for at in cause.parts if (at.part, at.phase) in own)


def _with_broader(
    explains: Mapping[str, Sequence[str]], findings: Sequence[Finding], wants: Sequence[Mapping[int, Sequence[Want]]]
) -> dict[str, list[str]]:
    """The links, and one from each rule to those that claim what is above its paths: a broad claim never takes time
    from a finer one, whoever wrote it. Links that the rules give themselves come first."""
    paths: dict[str, set[str]] = {}
    for finding, wanted in zip(findings, wants, strict=True):
        paths.setdefault(finding.rule, set()).update(p for parts in wanted.values() for _, some in parts for p in some)
    links = {rule: list(symptoms) for rule, symptoms in explains.items()}
    for fine, own in paths.items():
        for broad, others in paths.items():
            if fine == broad or _reaches(explains, broad, fine) or not _above(others, own) or _above(own, others):
                continue
            links.setdefault(fine, []).append(broad)
    return links


def _above(some: set[str], others: set[str]) -> bool:
    """Whether one of ``some`` paths is above one of the ``others``."""
    return any(LedgerPath(path).above(other) for path in some for other in others)


def _reaches(explains: Mapping[str, Sequence[str]], cause: str, symptom: str) -> bool:
    """Whether ``cause`` explains ``symptom``, by way of others or by itself."""
    seen, waiting = {cause}, [cause]
    while waiting:
        for rule in explains.get(waiting.pop(), ()):
            if rule == symptom:
                return True
            if rule not in seen:
                seen.add(rule)
                waiting.append(rule)
    return False


def _depths(explains: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Distance of a rule from a cause: 0 for causes, more for what they explain."""
    depths: dict[str, int] = {}

    def push(rule: str, depth: int) -> None:
        if depth > depths.get(rule, 0) and depth < 20:
            depths[rule] = depth
            for symptom in explains.get(rule, ()):
                push(symptom, depth + 1)

    for rule, symptoms in explains.items():
        for symptom in symptoms:
            push(symptom, depths.get(rule, 0) + 1)
    return depths


def _take(balance: Balance, rank: int, paths: Sequence[str], wanted: int) -> list[Claim]:
    """Take up to ``wanted`` ns from the leaves at or below ``paths``: path by path in the order in which the rule names
    them, of each the largest leaf first."""
    place = {leaf: next((n for n, path in enumerate(paths) if LedgerPath(path).covers(leaf)), None) for leaf in balance}
    leaves = [(number, -balance[leaf], leaf) for leaf, number in place.items() if number is not None]
    taken = []
    for _, _, leaf in sorted(leaves):
        amount = min(wanted, balance[leaf])
        if amount > 0:
            taken.append(Claim(rank=rank, path=leaf, ns=amount))
            balance[leaf] -= amount
            wanted -= amount
    return taken


def rank_findings(findings: Sequence[Finding]) -> list[Finding]:
    """The findings in order: those that no file contradicts first; of these most time at stake first; then severity,
    rule and subject, so that the order never depends on the machine."""
    return sorted(
        findings,
        key=lambda finding: (
            finding.doubted,
            -finding.impact.ns_per_step,
            SEVERITIES.index(finding.severity),
            finding.rule,
            finding.fingerprint,
        ),
    )


def link(findings: Sequence[Finding], explains: Mapping[str, Sequence[str]]) -> list[Finding]:
    """The findings with causes and symptoms linked, where they share a rank, and a part of the recording where the
    symptom is about one; causes largest first, each together with its own causes."""
    known: dict[str, list[Finding]] = {
        symptom.fingerprint: [
            cause
            for cause in findings
            if symptom.rule in explains.get(cause.rule, ())
            and set(cause.ranks) & set(symptom.ranks)
            and share_in(symptom, cause) > 0
        ]
        for symptom in findings
    }
    # What explains a cause of a symptom is linked with that cause, not with the symptom a second time.
    causes = {
        symptom: [cause for cause in found if not any(cause in known[other.fingerprint] for other in found)]
        for symptom, found in known.items()
    }
    totals = {finding.fingerprint: _with_causes(finding, causes, ()) for finding in findings}
    return [
        finding.model_copy(
            update={
                "explains": [symptom.fingerprint for symptom in findings if finding in causes[symptom.fingerprint]],
                "explained_by": [
                    cause.fingerprint
                    for cause in sorted(
                        rank_findings(causes[finding.fingerprint]), key=lambda cause: -totals[cause.fingerprint]
                    )
                ],
            }
        )
        for finding in findings
    ]


def _with_causes(finding: Finding, causes: Mapping[str, Sequence[Finding]], path: tuple[str, ...]) -> int:
    """ns per step claimed by a finding and by all that explains it; a circle of explanations counts once."""
    if finding.fingerprint in path:
        return 0
    below = (*path, finding.fingerprint)
    return finding.impact.ns_per_step + sum(_with_causes(cause, causes, below) for cause in causes[finding.fingerprint])
