"""The model of a rule document: the fields of one YAML document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, StringConstraints, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from advisor_core.names.model import Framework, Generation
from advisor_core.result.finding import AdviceKind, Basis, Confidence, Hazard, Reference, Severity
from advisor_core.text.base import Model, Text

RuleId = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2,5}\d{3}$")]
RuleName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Alias = Annotated[str, StringConstraints(pattern=r"^([A-Z]{2,5}\d{3}|[a-z0-9]+(-[a-z0-9]+)*)$")]
ParamName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
UnitName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z%µ]?[A-Za-z0-9/%_-]*$", max_length=16)]
_STEP = r"([^/\s{}]+|\{\{ [A-Za-z_][A-Za-z0-9_]* \}\})"
LedgerPath = Annotated[str, StringConstraints(pattern=rf"^{_STEP}(/{_STEP})*$", max_length=200)]
Expression = Annotated[str, StringConstraints(min_length=1, max_length=500, strip_whitespace=True)]
Condition = bool | Expression
SignName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
Requirement = Annotated[str, StringConstraints(pattern=r"^npu-advisor\b", max_length=80)]
VendorName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
SoftwareName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=40)]
Phase = Literal["training", "prefill", "decode"]
Role = Literal[
    "rollout",
    "log_prob",
    "ref_log_prob",
    "values",
    "reward",
    "advantage",
    "update_actor",
    "update_critic",
    "weight_sync",
    "checkpoint",
    "validation",
]
"""`advisor_core.vocabulary.phases.PHASES`; a test holds them together."""
ParamValue = bool | int | float | str


class Sentence(Text):
    """A text of a rule: written as it is, it is English; or as ``{en: ..., zh: ...}``. Where Chinese lacks, a
    translation gives it, or the English is shown in both."""

    zh: str = ""

    @model_validator(mode="before")
    @classmethod
    def _plain_is_english(cls, value: Any) -> Any:
        return {"en": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        whole = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [{"type": "string"}, whole], "description": whole.pop("description", "")}


class Param(Model):
    """A threshold with its unit and its origin. ``value`` is a number, a boolean or a word.

    Conditions and advisors see numbers in the base unit (ns, B, ratio, B/s), whatever unit they are written in.
    """

    value: ParamValue
    unit: UnitName = Field(description="ns, us, ms, s, B, KiB, MiB, MB, GB, ratio, %, count, ...; '' for words")
    why: str = Field(min_length=10, description="where the value comes from")
    range: tuple[float, float] | None = Field(None, description="what --set may choose, in the same unit")


class SeveritySpec(Model):
    """The first that holds, from ``high`` down; ``low`` if none does. A condition, or ``true``.

    ``by_share`` is a share of the step, compared with ``params.high_share`` and ``params.medium_share``: ``high``
    stands for ``by_share >= params.high_share``, ``medium`` alike, where they are not given. ``why``: why the severity
    depends on what the condition does not look at."""

    by_share: Expression | None = None
    high: Condition = False
    medium: Condition = False
    low: Condition = True
    why: str | None = Field(None, min_length=10)

    def of(self, level: Severity) -> Condition:
        """The condition of a level."""
        if self.by_share is None or level == "low" or level in self.model_fields_set:
            return bool(value) if isinstance(value := getattr(self, level), bool) else str(value)
        share = self.by_share if self.by_share.isidentifier() else f"({self.by_share})"
        return f"{share} >= params.{level}_share"


class ImpactSpec(Model):
    """``value``: expression giving ns per step; 0 for rules that are not about time. ``idle``: how much of it is idle
    time: that part is claimed from the paths below ``idle``, the rest from the others. Without it the largest entries
    of all paths are claimed first."""

    value: int | Expression
    idle: Expression | None = None
    basis: Basis


class HoldsFor(Model):
    """The conditions under which an advice holds: one of the values of every key that is given. Advice that cannot hold
    for a profile is left out of the report; where the profile does not tell, the report says what it holds for."""

    phase: list[Phase] = Field(default_factory=list)
    role: list[Role] = Field(default_factory=list, description="stages of an iteration of reinforcement learning")
    framework: list[Framework] = Field(default_factory=list)
    software: list[SoftwareName] = Field(default_factory=list, description="what the job must run with")
    chip: list[Generation] = Field(default_factory=list)
    versions: dict[SoftwareName, str] = Field(
        default_factory=dict, description="software to a range of versions, as in PEP 440: >=8.0.RC2,<9"
    )


class AdviceSpec(Model):
    """``when``: given only if the condition holds. ``unless``: withheld if it holds; if it cannot be decided, the
    advice is given with the condition spelled out (``unless_text``). ``holds_for``: applicability as data.

    ``uses`` and ``excludes`` are names of the registry, features of it, or ``NAME=VALUE``; an advice also uses what it
    sets, and excludes what the registry says of the names that it uses. ``hazards``: what can happen to the job; such
    an advice says so in ``risk`` and never comes first."""

    kind: AdviceKind
    text: Sentence
    set: dict[str, str] = Field(default_factory=dict, description="names of settings to values")
    risk: Sentence | None = None
    holds_for: HoldsFor = Field(default_factory=HoldsFor)
    uses: list[str] = Field(default_factory=list)
    excludes: list[str] = Field(default_factory=list)
    hazards: list[Hazard] = Field(default_factory=list)
    when: Expression | None = None
    unless: Expression | None = None
    unless_text: Sentence | None = Field(None, description="the condition of `unless` in words; needed with `unless`")


class ExceptionSpec(Model):
    """A further case in which the finding is no problem, told behind ``not_a_problem_if``, after "or". ``when``: told
    unless the condition is known not to hold; ``holds_for``: told where it can hold for the profile, and for a tenth of
    the time of the finding or more."""

    text: Sentence
    when: Expression | None = None
    holds_for: HoldsFor = Field(default_factory=HoldsFor)


class RuleText(Model):
    """The prose of a rule, Markdown with ``{{ name }}`` and ``{{ name | unit }}`` placeholders.

    ``title`` names the problem, ``good`` the same matter when it is in order (shown for ``pass``, so it has no row to
    quote: only ``params`` and ``profile``)."""

    title: Sentence
    why: Sentence
    good: Sentence
    verify: Sentence
    not_a_problem_if: Sentence | None = None


class Rule(Model):
    """One judgement: a condition over the columns of an advisor, and what to say and do when it holds."""

    id: RuleId
    name: RuleName
    aliases: list[Alias] = Field(default_factory=list, description="former ids and names; they keep working")
    status: Literal["stable", "preview", "deprecated"] = "stable"
    advisor: str = Field(description="the advisor whose rows are judged")
    requires: Requirement | None = Field(None, description="versions that can read it, as npu-advisor>=0.1")
    vendors: list[VendorName] = Field(
        default_factory=list, description="whose profiles are judged; without it as the set says, or any vendor's"
    )
    text: RuleText
    applies: Expression | None = Field(None, description="rows for which this is false are not judged")
    signs: dict[SignName, Expression] = Field(
        default_factory=dict,
        description="conditions by name: `when` and `severity` may use the names, and a finding says which held",
    )
    when: Condition
    severity: SeveritySpec
    confidence: Confidence = "high"
    impact: ImpactSpec
    claims: list[LedgerPath] = Field(
        default_factory=list,
        description="ledger paths the finding is about, claimed in this order; {{ name }} stands for a text column",
    )
    limit: int = Field(5, ge=1, le=50, description="rows that become findings, largest impact first")
    after: list[RuleId] = Field(default_factory=list, description="rules judged before; readable as fired.ID")
    explains: list[RuleId] = Field(default_factory=list, description="symptoms this is a cause of")
    explained_by: list[RuleId] = Field(default_factory=list, description="causes of this: the same link, from its side")
    caveat: Sentence | None = Field(None, description="what casts doubt on findings of the advisors of `caveats`")
    caveats: list[str] = Field(default_factory=list, description="advisor prefixes that get the caveat")
    first_pass: bool = Field(
        False,
        description="where it holds, the recording is of the first pass of a program, and findings with its caveat "
        "may cost nothing later: the plan says to record later steps first, and marks their changes",
    )
    separates: SignName | None = Field(
        None,
        description="for capture-quality rules: the sign by which the ranks of a finding are not of one run; no number "
        "of the result is then a mean over them",
    )
    advice: list[AdviceSpec] = Field(min_length=1)
    exceptions: list[ExceptionSpec] = Field(
        default_factory=list, description="cases in which the finding is no problem, of some kinds of job only"
    )
    params: dict[ParamName, Param] = Field(
        default_factory=dict, description="thresholds; those of the set's defaults are there without being given"
    )
    references: list[Reference] = Field(min_length=1)


class SetDefaults(Model):
    """A document that gives parameters to all rules of its set: each rule has those that it names, or that its
    advisor reads, unless it gives them itself. ``vendors``: of all rules of the set that do not give their own."""

    defaults: dict[ParamName, Param]
    requires: Requirement | None = None
    vendors: list[VendorName] = Field(default_factory=list, description="whose profiles the rules of the set judge")


class AdviceTranslation(Model):
    """The texts of one advice, where the rule has them."""

    text: str | None = None
    risk: str | None = None
    unless_text: str | None = None


class ExceptionTranslation(Model):
    """The text of one exception."""

    text: str


class TextTranslation(Model):
    title: str | None = None
    why: str | None = None
    good: str | None = None
    verify: str | None = None
    not_a_problem_if: str | None = None


class RuleTranslation(Model):
    """The Chinese texts of a rule of the same set: as the rule has them, under the same keys. ``advice`` and
    ``exceptions``: as many as the rule has, in the same order."""

    zh: RuleId = Field(description="id of the rule")
    text: TextTranslation = TextTranslation()
    advice: list[AdviceTranslation] = Field(default_factory=list)
    exceptions: list[ExceptionTranslation] = Field(default_factory=list)
    caveat: str | None = None


class ParamOverride(Model):
    """A new threshold: in the unit of the rule, and inside its range. ``why`` replaces the rule's."""

    value: ParamValue
    why: str | None = Field(None, min_length=10)


class RuleOverride(Model):
    """A document that changes some of a rule and leaves the rest. To change more, give the rule whole, by its id."""

    override: Alias = Field(description="id, name or alias of the rule")
    params: dict[ParamName, ParamOverride] = Field(default_factory=dict)
    severity: SeveritySpec | None = Field(None, description="replaces the rule's severity whole")
    limit: int | None = Field(None, ge=1, le=50)
    enabled: bool = Field(True, description="false: the rule is not judged, and reports say so")
    why: str | None = Field(None, min_length=10, description="why the rule is changed or not judged; told in reports")
