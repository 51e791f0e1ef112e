"""Findings: the problem, its cost, the advice, and the evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.result.evidence import Evidence
from advisor_core.text.base import Model, Scalar, Text

Severity = Literal["high", "medium", "low"]
Confidence = Literal["high", "medium", "low"]
Basis = Literal["exact", "estimate", "upper_bound"]
Hazard = Literal["hang", "crash", "accuracy"]
AdviceKind = Literal["env", "code", "config", "collect", "investigate"]

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")


def at_least(severity: Severity, limit: Severity) -> bool:
    """Whether a severity is ``limit`` or above.

    >>> at_least("high", "medium"), at_least("low", "medium")
    (True, False)
    """
    return SEVERITIES.index(severity) <= SEVERITIES.index(limit)


class Claim(Model):
    """The part of a ledger entry that a finding is about: ``ns`` per step of ``rank`` under ``path``."""

    rank: int
    path: str
    ns: int


class Impact(Model):
    """Time at stake, per step of the rank the finding is about.

    ``ns_per_step`` is what the finding claims of that rank's ledger after findings that rank before it took theirs:
    the claims on one rank never add up to more than its step. ``claims`` lists those on all its ranks.
    ``gross_ns_per_step`` is what the rule measured on its own. ``basis``: ``exact`` (measured), ``estimate``
    (modelled), ``upper_bound`` (cannot be more).
    """

    ns_per_step: int
    gross_ns_per_step: int
    share_of_step: float
    basis: Basis
    claims: list[Claim] = Field(default_factory=list)


class Advice(Model):
    """One thing to do. ``set`` maps names of settings to values. ``only_if`` and ``unless`` are conditions that could
    not be decided from the profile and that the reader must check first: the advice holds if the one is true and the
    other is not.
    ``hazards``: what can happen to the job, told in ``risk``. ``uses`` and ``excludes``: settings (``NAME=VALUE``),
    APIs and features that following the advice puts to use, and those that it must not be combined with."""

    kind: AdviceKind
    text: Text
    set: dict[str, str] = Field(default_factory=dict)
    risk: Text | None = None
    only_if: Text | None = None
    unless: Text | None = None
    hazards: list[Hazard] = Field(default_factory=list)
    uses: list[str] = Field(default_factory=list)
    excludes: list[str] = Field(default_factory=list)


class PartShare(Model):
    """A part of a recording of several parts, and the share of the time of a finding that lies there. ``part``:
    training, log_probs, prefill, decode, mixed (prefill and decode in one pass) or unknown. ``phase``: of an iteration
    of reinforcement learning, as it is marked, '' none."""

    part: str
    phase: str = ""
    share: float


class Reference(Model):
    """The public source of a threshold, a formula or a remedy."""

    title: str
    url: str | None = None


class Finding(Model):
    """One row of an advisor that a rule judged to be a problem. ``fingerprint`` depends on the rule and on what the
    finding is about, never on measured values. ``rank`` is the rank it is shown for, ``ranks`` all that have it;
    ``step`` is ``None`` when the numbers are means over all steps. ``role``: of a job whose roles were profiled
    one by one; its step, and what it claims, are those of that role."""

    rule: str
    name: str
    fingerprint: str
    title: Text
    why: Text
    verify: Text
    not_a_problem_if: Text | None = None
    severity: Severity
    confidence: Confidence
    rank: int | None
    ranks: list[int]
    step: int | None
    subject: dict[str, Scalar]
    impact: Impact
    observation: dict[str, Scalar]
    units: dict[str, str] = Field(description="unit of each observation column")
    condition: str
    signs: list[str] = Field(default_factory=list, description="named parts of the rule's condition that held")
    evidence: list[Evidence] = Field(min_length=1)
    advice: list[Advice] = Field(min_length=1)
    withheld: list[Text] = Field(default_factory=list, description="advice that is left out, with the reason")
    explains: list[str] = Field(default_factory=list, description="fingerprints of the symptoms this is a cause of")
    explained_by: list[str] = Field(default_factory=list, description="fingerprints of its causes, largest first")
    caveats: list[Text] = Field(default_factory=list)
    first_pass: str | None = Field(
        None,
        description="fingerprint of the finding by which the recording is of a program's first pass: this one may cost "
        "nothing later",
    )
    doubted: bool = Field(
        default=False, description="another file contradicts what it was measured on: it stands after all that are not"
    )
    references: list[Reference] = Field(default_factory=list)
    role: str | None = None
    parts: list[PartShare] = Field(
        default_factory=list, description="where its time lies, largest first; empty in a recording of one part"
    )
