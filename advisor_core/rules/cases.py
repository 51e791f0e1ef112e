"""Example rows of a rule with the judgement that they must get: its documentation and its test."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.names.model import Framework, Generation
from advisor_core.result.finding import Severity
from advisor_core.rules.model import Phase, Role, RuleId
from advisor_core.text.base import Model

Value = bool | int | float | str | None


class CaseJob(Model):
    """The facts about the job that advice depends on; a fact that is left out is not known."""

    phase: list[Phase] | None = None
    role: list[Role] | None = None
    framework: list[Framework] | None = None
    chip: list[Generation] | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    features: dict[str, bool] = Field(default_factory=dict)


class Expected(Model):
    """``severity``, ``advice`` (the number, in the rule, of the first that is given) and ``signs``: of the row with the
    largest impact."""

    state: Literal["fail", "pass", "not_applicable", "cannot_answer"]
    severity: Severity | None = None
    advice: int | None = Field(None, ge=0)
    signs: list[str] | None = None


class Case(Model):
    """``rows``: columns of the advisor, in their units; what a row leaves out is not known."""

    name: str = Field(min_length=5, description="what the rows show, in words")
    rows: list[dict[str, Value]] = Field(min_length=1)
    profile: dict[str, Value] = Field(default_factory=dict, description="values of profile.NAME")
    env: dict[str, str] = Field(default_factory=dict, description="recorded variables")
    fired: dict[RuleId, bool | None] = Field(default_factory=dict, description="rules judged before")
    job: CaseJob = CaseJob()
    expect: Expected


class RuleCases(Model):
    """A document of cases of one rule."""

    cases: RuleId = Field(description="id of the rule")
    examples: list[Case] = Field(min_length=1)
