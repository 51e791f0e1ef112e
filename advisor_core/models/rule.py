"""The rule document: what one YAML document may say."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from advisor_core.models.base import Model, Text
from advisor_core.models.finding import AdviceKind, Basis, Confidence, Reference

RuleId = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2,5}\d{3}$")]
RuleName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Expression = Annotated[str, StringConstraints(min_length=1, max_length=500, strip_whitespace=True)]

RULE_ID = re.compile(r"^[A-Z]{2,5}\d{3}$")


class Param(Model):
    """A threshold with its unit and its origin. ``value`` is a number, a boolean or a word."""

    value: bool | int | float | str
    unit: str
    why: str = Field(min_length=10, description="where the value comes from")
    range: tuple[float, float] | None = Field(None, description="what --set may choose")


class SeveritySpec(Model):
    """The first that holds, from ``high`` down. A condition, or ``true``."""

    high: Expression | bool = False
    medium: Expression | bool = False
    low: Expression | bool = True


class ImpactSpec(Model):
    """``value``: expression giving ns per step."""

    value: Expression
    basis: Basis


class AdviceSpec(Model):
    """``when``: given only if the condition holds. ``unless``: withheld if it holds; if it cannot be decided, the
    advice is given with the condition spelled out (``unless_text``)."""

    kind: AdviceKind
    text: Text
    set: dict[str, str] = Field(default_factory=dict)
    risk: Text | None = None
    when: Expression | None = None
    unless: Expression | None = None
    unless_text: Text | None = None


class RuleText(Model):
    """The prose of a rule, Markdown with ``{{ name }}`` and ``{{ name | unit }}`` placeholders.

    ``title`` names the problem, ``good`` the same matter when it is in order (shown for ``pass``)."""

    title: Text
    good: Text
    why: Text
    verify: Text
    not_a_problem_if: Text | None = None


class Rule(Model):
    """One judgement: a condition over the columns of an advisor, and what to say and do when it holds."""

    id: RuleId
    name: RuleName
    aliases: list[str] = Field(default_factory=list, description="former ids and names; they keep working")
    status: Literal["stable", "preview", "deprecated"] = "stable"
    advisor: str = Field(description="the advisor whose rows are judged")
    params: dict[str, Param] = Field(default_factory=dict)
    applies: Expression | None = Field(None, description="rows for which this is false are not judged")
    when: Expression
    severity: SeveritySpec
    confidence: Confidence = "high"
    impact: ImpactSpec
    claims: list[str] = Field(default_factory=list, description="ledger paths the finding is about")
    limit: int = Field(5, ge=1, le=50, description="rows that become findings, largest impact first")
    after: list[RuleId] = Field(default_factory=list, description="rules judged before; readable as fired.ID")
    explains: list[RuleId] = Field(default_factory=list, description="symptoms this is a cause of")
    caveat: Text | None = Field(None, description="for capture-quality rules: put on findings of `caveats` rules")
    caveats: list[str] = Field(default_factory=list, description="advisor prefixes that get the caveat")
    advice: list[AdviceSpec] = Field(min_length=1)
    text: RuleText
    references: list[Reference] = Field(min_length=1)
