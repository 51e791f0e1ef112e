"""A rule made ready to judge: its conditions parsed and its texts checked against the names that it may use."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from advisor_core.contracts.ledger_paths import LedgerPaths
from advisor_core.contracts.problems import Problem, RuleFileError, SourceError, nearest
from advisor_core.names.book import NameBook
from advisor_core.names.settings import Setting
from advisor_core.result.finding import SEVERITIES, Severity
from advisor_core.rules.applicability import range_problem
from advisor_core.rules.files.yaml_file import Document, KeyPath
from advisor_core.rules.language.expression import Expression, as_written, parse
from advisor_core.rules.language.nodes import Constant, Kind, Sign, Symbol, walk
from advisor_core.rules.language.scope import Scope, kind_of, param_values
from advisor_core.rules.language.template import Template, TextTemplate, code_span, parse_template
from advisor_core.rules.model import AdviceSpec, ExceptionSpec, HoldsFor, Param, Rule
from advisor_core.text.base import Scalar, Text

if TYPE_CHECKING:
    from advisor_core.contracts.advisor import Advisor

T = TypeVar("T")


@dataclass(frozen=True)
class CompiledAdvice:
    """``number``: its place in the rule, from 1. ``holds_for``: as the rule says, and for the framework whose APIs the
    text names. ``uses``: settings, APIs and features that following it puts to use. ``excludes``: those that it must
    not be combined with, by the rule or the registry of names, each with how a report calls it."""

    number: int
    spec: AdviceSpec
    text: TextTemplate
    risk: TextTemplate | None
    when: Expression | None
    unless: Expression | None
    unless_text: TextTemplate | None
    holds_for: HoldsFor
    settings: tuple[Setting, ...] = ()
    uses: tuple[str, ...] = ()
    excludes: tuple[tuple[str, Text], ...] = ()


@dataclass(frozen=True)
class CompiledException:
    """A further case in which a finding is no problem: as `ExceptionSpec`."""

    spec: ExceptionSpec
    text: TextTemplate
    when: Expression | None
    holds_for: HoldsFor


class Part(Generic[T]):
    """A part of a rule, compiled on first use and kept. Of a rule that `Compiler.compile` gave it cannot fail; of one
    that `Compiler.on_demand` gave, getting it raises `RuleFileError` where something is wrong with it."""

    def __init__(self, make: Callable[[Compiler], Any]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, rule: None, owner: type) -> Part[T]: ...

    @overload
    def __get__(self, rule: CompiledRule, owner: type) -> T: ...

    def __get__(self, rule: CompiledRule | None, owner: type) -> Part[T] | T:
        if rule is None:
            return self
        made: T = self.make(rule.compiler)
        if rule.compiler.problems:
            raise RuleFileError(rule.compiler.problems)
        rule.__dict__[self.name] = made  # found before this from now on
        return made


@dataclass(frozen=True)
class CompiledRule:
    """``file`` and ``line``: where the rule was read. ``params``: values in base units, as conditions and the advisor
    see them. ``set_by``: who gave a parameter another value than the rule's. ``severity``: from high down.
    ``signs``: conditions by name, which ``when`` and ``severity`` use.
    ``after`` and ``explains``: today's ids, where the rule may name former ones. ``replaces``: the file whose rule of
    the same id this one stands for. ``ruleset``: the name of its set. ``vendors``: whose profiles it judges; none:
    those of any vendor. The other attributes are its `Part`s."""

    rule: Rule
    advisor: Advisor
    file: str
    line: int
    params: Mapping[str, Scalar]
    set_by: Mapping[str, str]
    after: tuple[str, ...]
    explains: tuple[str, ...]
    compiler: Compiler = field(repr=False, compare=False)
    replaces: str = ""
    ruleset: str = ""
    vendors: tuple[str, ...] = ()

    applies = Part[Expression | None](lambda made: made.expression(("applies",), made.rule.applies, made.scope))
    signs = Part[Mapping[str, Expression]](lambda made: made.signs)
    when = Part[Expression](lambda made: made.expression(("when",), made.rule.when))
    severity = Part[tuple[tuple[Severity, Expression], ...]](lambda made: made.severity())
    impact = Part[Expression](lambda made: made.nanoseconds(("impact", "value"), made.rule.impact.value))
    idle = Part[Expression | None](lambda made: made.nanoseconds(("impact", "idle"), made.rule.impact.idle))
    advice = Part[tuple[CompiledAdvice, ...]](lambda made: made.all_advice())
    title = Part[TextTemplate](lambda made: made.text(("text", "title"), made.rule.text.title))
    good = Part[TextTemplate](lambda made: made.good(("text", "good"), made.rule.text.good))
    why = Part[TextTemplate](lambda made: made.text(("text", "why"), made.rule.text.why))
    verify = Part[TextTemplate](lambda made: made.text(("text", "verify"), made.rule.text.verify))
    not_a_problem_if = Part[TextTemplate | None](
        lambda made: made.text(("text", "not_a_problem_if"), made.rule.text.not_a_problem_if)
    )
    exceptions = Part[tuple[CompiledException, ...]](lambda made: made.all_exceptions())
    caveat = Part[TextTemplate | None](lambda made: made.text(("caveat",), made.rule.caveat))

    @property
    def id(self) -> str:
        return self.rule.id

    @property
    def names(self) -> NameBook:
        """The registry of names."""
        return self.compiler.names

    def reads(self, names: Collection[str]) -> bool:
        """True where one of its conditions has one of the ``names``, such as ``profile.kind``. Advice is looked at as
        it is written: it is compiled for rules that find something; and so is everything first, as few have them."""
        rule, spec = self.rule, self.rule.severity
        of_levels = (spec.by_share, *(spec.of(level) for level in SEVERITIES))
        sources = (rule.applies, rule.when, *rule.signs.values(), *of_levels)
        in_advice = [text for advice in rule.advice for text in (advice.when, advice.unless)]
        in_advice += [exception.when for exception in rule.exceptions]
        every = [as_written(source) for source in (*sources, *in_advice) if source is not None]
        if not any(name in source for source in every for name in names):
            return False
        conditions = [self.applies, self.when, *(condition for _, condition in self.severity), *self.signs.values()]
        if any(symbol.key in names for condition in conditions if condition for symbol in condition.symbols):
            return True
        return any(name in as_written(text) for text in in_advice if text is not None for name in names)

    def judges(self, vendors: Collection[str]) -> bool:
        """Whether it is for profiles of one of these vendors; '' is a vendor that is not known."""
        return not self.vendors or "" in vendors or any(name in self.vendors for name in vendors)

    @property
    def measure_params(self) -> dict[str, Scalar]:
        """The parameters that the advisor reads."""
        return {name: self.params[name] for name in self.advisor.params}

    @property
    def condition(self) -> str:
        """``when`` with what its signs stand for, so that it can be read by itself."""
        text = as_written(self.rule.when)
        for name, sign in self.rule.signs.items():
            meaning = f"({as_written(sign)})".replace("\\", r"\\")
            text = re.sub(rf"(?<![\w.'\"]){name}(?![\w.'\"])", meaning, text)
        return text

    def good_text(self, profile: Mapping[str, Scalar]) -> Text:
        """The text for a rule that passes."""
        return self.good.render({f"profile.{name}": value for name, value in profile.items()})


@dataclass
class Draft:
    """A rule on its way: as read, with what later documents and options changed of it. ``ruleset`` and ``vendors``: as
    of `CompiledRule`. ``told``: what is wrong with the form of its documents; such a draft is compiled for its other
    mistakes only. ``translation``: the document with its Chinese texts, where they have one of their own. ``trusted``:
    it was checked before it was installed, and nothing has changed it."""

    rule: Rule
    document: Document
    source: int
    enabled: bool = True
    set_by: dict[str, str] = field(default_factory=dict)
    replaces: str = ""
    left_out: Text = field(default_factory=lambda: Text(en="", zh=""))
    severity_from: Document | None = None
    told: tuple[Problem, ...] = ()
    translation: Document | None = None
    ruleset: str = ""
    vendors: tuple[str, ...] = ()
    trusted: bool = False

    def words(self, path: KeyPath, lang: str) -> tuple[Document, KeyPath]:
        """The place of the text ``path`` in a language."""
        if lang == "zh" and self.translation is not None and path in self.translation.values:
            return self.translation, path
        inline = (*path, lang)
        return self.document, inline if inline in self.document.values else path

    def problem(self, path: KeyPath, message: str, hint: str = "", **place: Any) -> Problem:
        return self.document.problem(path, message, hint, **place)


class Compiler:
    """Compiles one draft; ``problems`` collects everything that is wrong with it, but for what can be wrong with a text
    or a range of versions of a trusted one by itself. ``scope``: what ``applies`` and the signs may name; everything
    else may name the signs too, see `with_signs`."""

    rule: Rule
    scope: Scope

    def __init__(
        self,
        draft: Draft,
        advisor: Advisor,
        profile: Mapping[str, Any],
        ids: Mapping[str, str],
        names: NameBook,
        paths: LedgerPaths,
        explains: Iterable[str] = (),
    ) -> None:
        self.draft = draft
        self.explains = tuple(explains)
        self.names = names
        self.paths = paths
        self.rule = draft.rule
        self.advisor = advisor
        self.ids = ids
        fired = {name: ids.get(name, name) for name in self.rule.after}
        self.scope = Scope(advisor.declared(), self.rule.params, profile, fired)
        self.rowless = Scope({}, self.rule.params, profile)
        self.problems: list[Problem] = []
        self.used: set[Symbol] = set()
        self.used_signs: set[str] = set()

    def compile(self) -> CompiledRule | None:
        """The rule with all of its parts, or ``None`` if there are problems."""
        self.check_params()
        self.check_rest()
        parts = [part for part in vars(CompiledRule).values() if isinstance(part, Part)]
        made = {part.name: part.make(self) for part in parts}
        if not self.problems and not self.draft.told and self.draft.severity_from is None:
            self.check_all_params_used()
            self.check_all_signs_used()
        if self.problems or self.draft.told:
            return None
        rule = self.on_demand()
        rule.__dict__.update(made)
        return rule

    def on_demand(self) -> CompiledRule:
        """The rule, of which nothing is compiled or checked before it is used."""
        return CompiledRule(
            rule=self.rule,
            advisor=self.advisor,
            file=self.draft.document.file,
            line=self.draft.document.line,
            params=param_values(self.rule.params),
            set_by=dict(self.draft.set_by),
            after=tuple(self.ids.get(name, name) for name in self.rule.after),
            explains=self.explains,
            compiler=self,
            replaces=self.draft.replaces,
            ruleset=self.draft.ruleset,
            vendors=self.draft.vendors,
        )

    @cached_property
    def signs(self) -> dict[str, Expression]:
        """The signs by name, without those that cannot be read."""
        return {name: sign for name, sign in self._all_signs.items() if sign}

    @cached_property
    def with_signs(self) -> Scope:
        """The names that may be used, signs included. A sign with a mistake stands for something: that it is named
        elsewhere is no mistake of its own."""
        known = {
            name: sign.root if sign else Constant(name, 0, "bool", "", True) for name, sign in self._all_signs.items()
        }
        return replace(self.scope, signs=known)

    @cached_property
    def _all_signs(self) -> dict[str, Expression | None]:
        for name in self.rule.signs:
            if name in self.scope.columns:
                self.problems.append(
                    self.draft.problem(("signs", name), f"{name!r} is a column of the advisor already", key=True)
                )
        return {name: self.expression(("signs", name), source, self.scope) for name, source in self.rule.signs.items()}

    def severity(self) -> tuple[tuple[Severity, Expression | None], ...]:
        spec = self.rule.severity
        share = ("severity", "by_share")
        if spec.by_share and self.expression(share, spec.by_share, want="number", unit="ratio") is None:
            return ()
        levels: list[tuple[Severity, Expression | None]] = []
        for level in SEVERITIES:
            by_share = spec.by_share is not None and level != "low" and level not in spec.model_fields_set
            if by_share and f"{level}_share" not in self.rule.params:
                hint = "give it in `params`, or in the `defaults` of the set"
                document = self.draft.severity_from or self.draft.document
                self.problems.append(document.problem(share, f"unknown name 'params.{level}_share'", hint))
                continue
            levels.append((level, self.expression(share if by_share else ("severity", level), spec.of(level))))
        return tuple(levels)

    def attempt(
        self,
        path: KeyPath,
        make: Callable[[], T],
        document: Document | None = None,
        *,
        lang: str = "",
        stripped: bool = False,
    ) -> T | None:
        """The thing that is made, or ``None`` and a problem at ``path`` of the document, or of the text there in a
        language."""
        try:
            return make()
        except SourceError as error:
            place = document or self.draft.document
            if lang:
                place, path = self.draft.words(path, lang)
            written = str(place.get(path))
            # Conditions lost their outer white space when they were read; texts begin where they begin.
            offset = error.offset + (len(written) - len(written.lstrip()) if stripped else 0)
            self.problems.append(place.problem(path, error.message, error.hint, offset=offset))
            return None

    def expression(
        self,
        path: KeyPath,
        source: str | float | None,
        scope: Scope | None = None,
        *,
        want: Kind = "bool",
        unit: str = "",
    ) -> Expression | None:
        if source is None:
            return None
        use = scope or self.with_signs
        document = (self.draft.severity_from if path[0] == "severity" else None) or self.draft.document
        made = self.attempt(path, lambda: parse(source, use, want=want, unit=unit), document, stripped=True)
        if made:
            self.used.update(made.symbols)
            self.used_signs.update(node.name for node in walk(made.root) if isinstance(node, Sign))
        return made

    def nanoseconds(self, path: KeyPath, source: str | float | None) -> Expression | None:
        return self.expression(path, source, want="number", unit="ns")

    def text(self, path: KeyPath, text: Text | None, scope: Scope | None = None) -> TextTemplate | None:
        if text is None:
            return None
        use = scope or self.with_signs
        made_of = {"en": text.en, "zh": text.zh or text.en}
        en, zh = (self.words(path, lang, words, use) for lang, words in made_of.items())
        if en is None or zh is None:
            return None
        made = TextTemplate(en, zh)
        self.used.update(made.symbols)
        return made

    def words(self, path: KeyPath, lang: str, words: str, scope: Scope) -> Template | None:
        return self.attempt(path, lambda: parse_template(words, scope, trusted=self.draft.trusted), lang=lang)

    def good(self, path: KeyPath, text: Text) -> TextTemplate | None:
        """As `text`, but there is no row to quote when nothing is wrong."""
        count = len(self.problems)
        made = self.text(path, text, self.rowless)
        hint = "`good` is shown when no row is at fault: it can quote params and profile only"
        for number, problem in enumerate(self.problems[count:], count):
            if any(repr(name) in problem.message for name in self.scope.columns):
                self.problems[number] = Problem(problem.file, problem.line, problem.column, problem.message, hint)
        return made

    def all_advice(self) -> tuple[CompiledAdvice | None, ...]:
        return tuple(self.advice(index, spec) for index, spec in enumerate(self.rule.advice))

    def advice(self, index: int, spec: AdviceSpec) -> CompiledAdvice | None:
        path = ("advice", index)
        if (spec.unless is None) != (spec.unless_text is None):
            message = "`unless` and `unless_text` go together"
            hint = "say in words what the reader must check when it cannot be decided"
            self.problems.append(self.draft.problem(path, message, hint))
        for name, wanted in spec.holds_for.versions.items():
            if not self.draft.trusted and (problem := range_problem(wanted)):
                self.problems.append(self.draft.problem((*path, "holds_for", "versions", name), problem))
        if spec.hazards and spec.risk is None:
            hint = "say what can happen, how to notice it and how to undo it"
            self.problems.append(self.draft.problem((*path, "hazards"), "`hazards` without `risk`", hint, key=True))
        text = self.text((*path, "text"), spec.text)
        risk = self.text((*path, "risk"), spec.risk)
        when = self.expression((*path, "when"), spec.when)
        unless = self.expression((*path, "unless"), spec.unless)
        unless_text = self.text((*path, "unless_text"), spec.unless_text)
        if text is None:
            return None
        settings = tuple(self.names.setting(name, value) for name, value in spec.set.items())
        uses = (*(item for setting in settings for item in setting.in_use()), *spec.uses)
        excludes = dict.fromkeys((*spec.excludes, *self.names.excluded_by(uses)))
        shown = tuple((name, self.shown(name)) for name in excludes)
        holds = spec.holds_for
        frameworks = [] if holds.framework else sorted(self.names.frameworks_of(spec.text.en))
        if frameworks:
            holds = holds.model_copy(update={"framework": frameworks})
        return CompiledAdvice(index + 1, spec, text, risk, when, unless, unless_text, holds, settings, uses, shown)

    def all_exceptions(self) -> tuple[CompiledException | None, ...]:
        return tuple(self.exception(index, spec) for index, spec in enumerate(self.rule.exceptions))

    def exception(self, index: int, spec: ExceptionSpec) -> CompiledException | None:
        path = ("exceptions", index)
        text = self.text((*path, "text"), spec.text)
        when = self.expression((*path, "when"), spec.when)
        if spec.when is None and spec.holds_for == HoldsFor():
            hint = "write it in `text.not_a_problem_if`"
            self.problems.append(self.draft.problem(path, "the exception has no condition", hint))
        return None if text is None else CompiledException(spec, text, when, spec.holds_for)

    def shown(self, name: str) -> Text:
        """The title of a name or feature of the registry in a report."""
        entry = self.names.get(name)
        return (
            entry.title
            if entry is not None and entry.title is not None
            else Text(en=code_span(name), zh=code_span(name))
        )

    def check_params(self) -> None:
        for name, param in self.rule.params.items():
            if name in (self.draft.document.get(("params",)) or {}):
                given = name not in self.draft.set_by
                self.problems.extend(range_problems(self.draft.document, ("params", name), param, given=given))
        for name in self.advisor.params:
            if name not in self.rule.params:
                message = f"advisor {self.advisor.name!r} reads the parameter {name!r}, which is not given"
                self.problems.append(self.draft.problem(("params",), message, key=True))

    def check_all_params_used(self) -> None:
        used = {symbol.key for symbol in self.used} | {f"params.{name}" for name in self.advisor.params}
        for name in self.rule.params:
            if f"params.{name}" not in used:
                message = f"parameter {name!r} is not used: not in a condition, not in a text, not by the advisor"
                self.problems.append(self.draft.problem(("params", name), message, key=True))

    def check_all_signs_used(self) -> None:
        for name in self.rule.signs:
            if name not in self.used_signs:
                message = f"sign {name!r} is not used in `when` or `severity`"
                self.problems.append(self.draft.problem(("signs", name), message, key=True))

    def check_rest(self) -> None:
        self.problems.extend(self.check_advice())
        if (self.rule.caveat is None) != (not self.rule.caveats):
            path = ("caveat",) if self.rule.caveat else ("caveats",)
            self.problems.append(self.draft.problem(path, "`caveat` and `caveats` go together", key=True))
        if self.rule.first_pass and not self.rule.caveats:
            message = "`first_pass` is about the findings of `caveats`, and there are none"
            self.problems.append(self.draft.problem(("first_pass",), message, key=True))
        if self.rule.separates is not None and self.rule.separates not in self.rule.signs:
            message = f"the rule has no sign {self.rule.separates!r}"
            self.problems.append(self.draft.problem(("separates",), message))
        for index, claim in enumerate(self.rule.claims):
            if claim not in self.paths:
                message = f"the ledger has no {claim!r}"
                self.problems.append(self.draft.problem(("claims", index), message, nearest(claim, self.paths.all)))
            for found in re.finditer(r"\{\{ (\w+) \}\}", claim):
                symbol = self.attempt(("claims", index), partial(self.scope.column, found[1], found.start() + 3))
                if symbol is not None and symbol.kind != "text":
                    message = f"{found[1]!r} is not text: it cannot be part of a path"
                    self.problems.append(self.draft.problem(("claims", index), message, offset=found.start() + 3))
        for index, reference in enumerate(self.rule.references):
            if reference.url is not None and not reference.url.startswith("https://"):
                self.problems.append(self.draft.problem(("references", index, "url"), "link is not https"))

    def check_advice(self) -> Iterator[Problem]:
        """A finding needs at least one advice, whatever the conditions say: one without any, or a pair of which one
        has under ``unless`` what the other has under ``when``. The first must be safe."""
        if self.rule.advice[0].hazards:
            hint = "begin with the most effective advice that has none"
            yield self.draft.problem(("advice", 0, "hazards"), "the first advice has hazards", hint, key=True)
        conditions = {
            (spec.when, spec.unless) for spec in self.rule.advice if spec.holds_for == HoldsFor() and not spec.hazards
        }
        if (None, None) in conditions or any(
            when and not unless and (None, when) in conditions for when, unless in conditions
        ):
            return
        hint = "give one without `when`, `unless`, `holds_for` and `hazards`"
        yield self.draft.problem(
            ("advice",), "all advice is conditional: a finding could be left with none", hint, key=True
        )


def range_problems(document: Document, path: KeyPath, param: Param, *, given: bool = True) -> Iterator[Problem]:
    """The mistakes in a parameter's own range and unit. ``given``: its value is the one of the document."""
    if kind_of(param.value) != "number":
        if param.range is not None:
            yield document.problem((*path, "range"), "only numbers have a range")
        if param.unit:
            yield document.problem((*path, "unit"), "only numbers have a unit", "write unit: ''")
    elif param.range is not None:
        low, high = param.range
        if low > high:
            yield document.problem((*path, "range"), f"range {low:g} to {high:g} is empty")
        elif given and not in_range(param, param.value):
            yield document.problem((*path, "value"), f"{param.value} is outside of the range {low:g} to {high:g}")


def in_range(param: Param, value: Scalar) -> bool:
    """Whether the rule allows the value."""
    if param.range is None or not isinstance(value, int | float):
        return True
    return param.range[0] <= value <= param.range[1]
