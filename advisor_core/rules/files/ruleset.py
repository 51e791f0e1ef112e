"""Load rule files into a rule book: documents of several sources merged, checked against each other, ordered."""

from __future__ import annotations

import graphlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor_core.contracts.ledger_paths import LedgerPaths
from advisor_core.contracts.problems import Problem, RuleFileError, nearest
from advisor_core.contracts.registry import Ruleset
from advisor_core.names.book import NameBook
from advisor_core.rules.book import ON_COMMAND_LINE, RuleBook, names_of
from advisor_core.rules.cases import RuleCases
from advisor_core.rules.compiled import CompiledRule, Compiler, Draft, in_range, range_problems
from advisor_core.rules.files.defaults import inherit
from advisor_core.rules.files.documents import kind_of_document, read_document
from advisor_core.rules.files.param_value import ParamValueError, param_value
from advisor_core.rules.files.requires import unmet
from advisor_core.rules.files.salvage import UNREADABLE, salvage
from advisor_core.rules.files.translation import translate
from advisor_core.rules.files.yaml_file import Document, read_yaml, trusted_reader
from advisor_core.rules.language.profile_names import PROFILE_NAMES
from advisor_core.rules.language.template import escape_markdown
from advisor_core.rules.model import Param, Rule, RuleOverride, RuleTranslation, SetDefaults
from advisor_core.rules.origins import Origins
from advisor_core.text.base import Scalar
from advisor_core.text.messages import message

if TYPE_CHECKING:
    from advisor_core.contracts.advisor import Advisor

CASES = "cases"
"""The folder of a rule set that has the cases of its rules."""


def load_rules(
    sources: Sequence[Path | Ruleset],
    advisors: Mapping[str, Advisor],
    overrides: Mapping[str, Scalar] | None = None,
    *,
    origins: Origins = ON_COMMAND_LINE,
    names: NameBook | None = None,
    paths: LedgerPaths | None = None,
    vendors: Collection[str] | None = None,
    strict: bool = True,
    trusted: Collection[str] = (),
) -> RuleBook:
    """The rules of rule sets, and of files and folders (searched for ``*.yaml`` and ``*.yml``). No rule set may give a
    rule of another again. Later files and folders win: they may give a rule again by its id, or change some of it
    (``override: ID``). ``overrides``: parameters set by the user, as ``{"HD001.idle_share": 0.2}``, in the unit of the
    rule, or as text with a unit; ``origins`` says where. ``names``: the registry of names, which says what settings
    exclude each other. ``paths``: those of the ledger that rules may claim; without them any operator class is taken
    for one. ``vendors``: those that rules may be for; ``None``: any. ``trusted``: rule sets, by name, that were
    checked before they were installed. Of these the cases are not read, and the conditions and texts of a rule that no
    other source changes are compiled and checked when it is used; see `CompiledRule`.

    Raises `RuleFileError` with all problems of all files; unless ``strict``: then what is wrong is left out and told
    in the book's ``problems``.
    """
    loader = RuleLoader(advisors, names or NameBook(), paths or LedgerPaths(), vendors, trusted)
    for source in sources:
        loader.read(source)
    for key, value in (overrides or {}).items():
        loader.set_option(key, value, origins.of_setting(key))
    book = loader.finish()
    if strict and book.problems:
        raise RuleFileError(book.problems)
    return book


def rule_files(source: Path, *, cases: bool = True) -> list[Path]:
    """The files of a source, with the cases of its rules or without. Raises `RuleFileError`."""
    if source.is_dir():
        files = []
        for folder, below, names in os.walk(source):
            if not cases and CASES in below:
                below.remove(CASES)
            files += [Path(folder, name) for name in names if name.endswith((".yaml", ".yml"))]
        if files := sorted(path for path in files if path.is_file()):
            return files
        raise RuleFileError([Problem(display(source), 0, 0, "has no rule files (*.yaml)")])
    if source.exists():
        return [source]
    raise RuleFileError([Problem(display(source), 0, 0, "does not exist")])


def setting_name(key: str, origin: str) -> str:
    """What messages call a threshold that the user set: the file that its problems name."""
    return f"{origin} {key}"


def displayed_files(sources: Iterable[Path]) -> set[str]:
    """The names of the sources and their files in messages; a source that cannot be read has none."""
    names = set()
    for source in sources:
        names.add(display(source))
        with suppress(RuleFileError):  # which loading it tells
            names |= {name for _, name in _with_names(source)}
    return names


def _with_names(source: Path, *, cases: bool = True) -> Iterator[tuple[Path, str]]:
    """The files of a source, each with how messages call it. Raises `RuleFileError`."""
    shown = Path(display(source))  # once: to resolve the path of each file takes longer than to read it
    return ((file, str(shown / file.relative_to(source))) for file in rule_files(source, cases=cases))


def display(path: Path) -> str:
    """The name of a file in messages: relative to the working directory where it is inside of it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@dataclass
class RuleLoader:
    """Reads sources one after the other, then gives the book. ``drafts``: the rules by id, with their documents."""

    advisors: Mapping[str, Advisor]
    names: NameBook
    paths: LedgerPaths
    vendors: Collection[str] | None = None
    trusted: Collection[str] = ()
    sets: list[Ruleset] = field(default_factory=list)
    """The sources by number; what is no rule set is one by the name of its file or folder, for any vendor."""
    installed: set[int] = field(default_factory=set)
    """The numbers of those that plugins bring."""
    drafts: dict[str, Draft] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    defaults: dict[int, dict[str, Param]] = field(default_factory=dict)
    """Parameters for all rules of a source, by its number."""
    set_vendors: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Whose profiles the rules of a source are for, by its number."""
    unreadable: list[Draft] = field(default_factory=list)
    """The readable parts of documents with mistakes of form."""
    known: set[str] = field(default_factory=set)
    """Names in documents that could not be used: referring to them is no mistake of its own."""

    def __post_init__(self) -> None:
        self.problems += self.names.problems

    def read(self, source: Path | Ruleset) -> None:
        """All documents of a source; what belongs to a rule after the rules, so that the order of files does not
        matter. Cases are for ``rules test``."""
        number = len(self.sets)
        ruleset = source if isinstance(source, Ruleset) else Ruleset(source.stem, source)
        if ruleset is source:
            self.installed.add(number)
        self.sets.append(ruleset)
        self.set_vendors[number] = ruleset.vendors
        trusted = ruleset is source and ruleset.name in self.trusted
        changes: list[tuple[Document, RuleOverride]] = []
        translations: list[tuple[Document, RuleTranslation]] = []
        unreadable: list[tuple[Document, Sequence[Problem]]] = []
        for document in self.documents(ruleset.root, trusted=trusted):
            if problem := unmet(document):
                self.problems.append(problem)
                self.remember(document)
                continue
            try:
                model = read_document(document)
            except RuleFileError as error:
                self.problems += error.problems
                self.remember(document)
                unreadable.append((document, error.problems))
                continue
            if isinstance(model, RuleOverride):
                changes.append((document, model))
            elif isinstance(model, RuleTranslation):
                translations.append((document, model))
            elif isinstance(model, SetDefaults):
                self.add_defaults(document, model, number)
            elif isinstance(model, RuleCases):
                continue
            else:
                self.add(Draft(model, document, number, trusted=trusted))
        for draft in self.drafts.values():
            if draft.source == number:
                self.inherit(draft)
        for document, translation in translations:
            self.translate(document, translation, number)
        for document, change in changes:
            self.change(document, change, number)
        for document, told in unreadable:
            self.salvage(document, number, told)

    def salvage(self, document: Document, number: int, told: Sequence[Problem]) -> None:
        """Keep what can be read of a document for the mistakes in it that are not of form."""
        if not isinstance(document.data, dict):
            return
        kind = kind_of_document(document)
        if kind is Rule:
            if found := salvage(document, Rule):
                self.unreadable.append(Draft(found[0], found[1], number, told=tuple(told)))
                self.inherit(self.unreadable[-1])
        elif (
            kind is RuleOverride
            and (change := salvage(document, RuleOverride))
            and (draft := self.find(change[0].override))
        ):
            self.unreadable.append(replace(draft, set_by=dict(draft.set_by), told=tuple(told)))
            self.apply(self.unreadable[-1], change[1], change[0])

    def documents(self, source: Path, *, trusted: bool) -> Iterator[Document]:
        try:
            files = list(_with_names(source, cases=not trusted))
        except RuleFileError as error:
            self.problems += error.problems
            return
        read = trusted_reader([path for path, _ in files], f"rules-{source.name}") if trusted else read_yaml
        for path, name in files:
            try:
                documents = read(path, name)
            except RuleFileError as error:
                self.problems += error.problems
                continue
            if not documents:
                self.problems.append(Problem(name, 0, 0, "has no rule in it"))
            yield from documents

    def add_defaults(self, document: Document, model: SetDefaults, number: int) -> None:
        earlier = self.defaults.setdefault(number, {})
        for name, param in model.defaults.items():
            if name in earlier:
                message = f"{name!r} has a default in the set already"
                self.problems.append(document.problem(("defaults", name), message, key=True))
            self.problems += range_problems(document, ("defaults", name), param)
            earlier.setdefault(name, param)
        if model.vendors:
            self.problems += self.unknown_vendors(document, model.vendors)
            self.set_vendors[number] = tuple(model.vendors)

    def unknown_vendors(self, document: Document, vendors: Sequence[str]) -> Iterator[Problem]:
        for index, vendor in enumerate(vendors):
            if self.vendors is not None and vendor not in self.vendors:
                hint = nearest(vendor, self.vendors) or f"known: {', '.join(sorted(self.vendors))}"
                yield document.problem(("vendors", index), f"no vendor {vendor!r}", hint)

    def inherit(self, draft: Draft) -> None:
        """Give the rule the name and the vendors of its set, and the defaults of it that it uses."""
        draft.ruleset = self.sets[draft.source].name
        draft.vendors = tuple(draft.rule.vendors) or self.set_vendors[draft.source]
        advisor = self.advisors.get(draft.rule.advisor)
        draft.rule = inherit(draft.rule, self.defaults.get(draft.source, {}), advisor.params if advisor else ())

    def translate(self, document: Document, translation: RuleTranslation, number: int) -> None:
        draft = self.drafts.get(translation.zh)
        if draft is not None and draft.source == number:
            self.problems += translate(draft, document, translation)
        elif translation.zh not in self.known:
            self.problems.append(document.problem(("zh",), *self.unknown(translation.zh)))

    def remember(self, document: Document) -> None:
        for key in ("id", "name"):
            if isinstance(found := document.get((key,)), str):
                self.known.add(found)

    def add(self, draft: Draft) -> None:
        earlier = self.drafts.get(draft.rule.id)
        if earlier is not None and earlier.source == draft.source:
            place = f"first in {earlier.document.file}:{earlier.document.line}"
            self.problems.append(draft.problem(("id",), f"rule {draft.rule.id} is given twice", place))
        elif earlier is not None and draft.source in self.installed:
            place = f"it is the id of {earlier.document.file}:{earlier.document.line}; only --ruleset replaces a rule"
            self.problems.append(draft.problem(("id",), f"rule {draft.rule.id} is taken", place))
        else:
            draft.replaces = earlier.document.file if earlier is not None else ""
            self.drafts[draft.rule.id] = draft

    def find(self, name: str) -> Draft | None:
        if name in self.drafts:
            return self.drafts[name]
        return next((draft for draft in self.drafts.values() if name in names_of(draft.rule)), None)

    def unknown(self, name: str) -> tuple[str, str]:
        """Message and hint for a rule that does not exist."""
        names = [known for draft in self.drafts.values() for known in names_of(draft.rule)]
        return f"no rule {name!r}", nearest(name, names)

    def change(self, document: Document, change: RuleOverride, number: int) -> None:
        """Apply an override document of a source to the rule that it names."""
        draft = self.find(change.override)
        if draft is None:
            if change.override not in self.known:
                self.problems.append(document.problem(("override",), *self.unknown(change.override)))
            return
        draft.trusted = draft.trusted and draft.source == number  # what was checked is the rule as it was
        self.apply(draft, document, change)

    def apply(self, draft: Draft, document: Document, change: RuleOverride) -> None:
        for name, param in change.params.items():
            mistake = self.set_param(draft, name, param.value, f"{document.file}:{document.line}", param.why)
            if mistake:
                problem, hint, at_name = mistake
                path = ("params", name) if at_name else ("params", name, "value")
                self.problems.append(document.problem(path, problem, hint, key=at_name))
        if change.severity is not None:
            draft.rule = draft.rule.model_copy(update={"severity": change.severity})
            draft.severity_from = document
            self.inherit(draft)
        if change.limit is not None:
            draft.rule = draft.rule.model_copy(update={"limit": change.limit})
        if "enabled" in change.model_fields_set:
            draft.enabled = change.enabled
            why = f": {escape_markdown(change.why)}" if change.why else ""
            place = f"{Path(document.file).name}:{document.line}"
            draft.left_out = message("rule.left_out_by_file", place=place, why=why)

    def set_option(self, key: str, value: Scalar, origin: str) -> None:
        """Apply one ``--set ID.param=VALUE``, or the same in a settings file, its ``origin``."""
        name, _, param = key.rpartition(".")
        draft = self.find(name)
        mistake: tuple[str, str, bool] | None
        if not name:
            mistake = ("write ID.param=VALUE", "", True)
        elif draft is None:
            mistake = None if name in self.known else (*self.unknown(name), True)
        else:
            mistake = self.set_param(draft, param, value, origin)
        if mistake:
            self.problems.append(Problem(setting_name(key, origin), 0, 0, mistake[0], mistake[1]))

    def set_param(
        self, draft: Draft, name: str, value: Scalar, origin: str, why: str | None = None
    ) -> tuple[str, str, bool] | None:
        """Give a parameter another value, or say what is wrong with it: message, hint, and whether it is the name."""
        param = draft.rule.params.get(name)
        if param is None:
            hint = nearest(name, draft.rule.params) or f"it has: {', '.join(draft.rule.params) or 'none'}"
            return f"rule {draft.rule.id} has no parameter {name!r}", hint, True
        try:
            converted = param_value(value, param)
        except ParamValueError as error:
            return str(error), error.hint, False
        if not in_range(param, converted):
            assert param.range is not None
            low, high = param.range
            return f"{value} is outside of the range {low:g} to {high:g} {param.unit}".rstrip(), "", False
        update = {"value": converted, **({"why": why} if why else {})}
        params = {**draft.rule.params, name: param.model_copy(update=update)}
        draft.rule = draft.rule.model_copy(update={"params": params})
        draft.set_by[name] = origin
        return None

    def finish(self) -> RuleBook:
        """Check the rules against each other and compile what holds."""
        ids = self.canonicalnames_of()
        good = {id_: draft for id_, draft in self.drafts.items() if self.references_hold(draft, ids)}
        for relation in ("after", "explains"):
            for id_ in self.in_cycles(relation, good, ids):
                del good[id_]
        explains = self.explained(good, ids)
        compiled = {}
        for id_, draft in self.drafts.items():
            rule = self.compiled(draft, ids, explains.get(id_, ()))
            if rule is not None and id_ in good:
                compiled[id_] = rule
        for draft in self.unreadable:
            self.more_of(draft, ids)
        order_ids = _ordered(compiled)
        order = [compiled[id_] for id_ in order_ids]
        return RuleBook(
            tuple(rule for rule in order if self.drafts[rule.id].enabled),
            tuple(rule for rule in order if not self.drafts[rule.id].enabled),
            tuple(sorted(set(self.problems))),
            {id_: self.drafts[id_].left_out for id_ in order_ids if not self.drafts[id_].enabled},
        )

    def compiled(self, draft: Draft, ids: Mapping[str, str], explains: Iterable[str]) -> CompiledRule | None:
        """The rule, if nothing is wrong with it by itself."""
        advisor = self.advisors.get(draft.rule.advisor)
        if advisor is None:
            return None
        compiler = Compiler(draft, advisor, PROFILE_NAMES, ids, self.names, self.paths, explains)
        if draft.trusted:
            return compiler.on_demand()
        rule = compiler.compile()
        self.problems += compiler.problems
        return rule

    def more_of(self, draft: Draft, ids: Mapping[str, str]) -> None:
        """Further mistakes of a rule whose form is wrong: none where one is told already, nor any that follows from
        that."""
        count = len(self.problems)
        self.references_hold(draft, ids)
        self.compiled(draft, ids, ())
        found, self.problems[count:] = self.problems[count:], []
        places = {(problem.file, problem.line, problem.column) for problem in draft.told}
        lost = {f"params.{name}" for name in draft.rule.params if draft.rule.params[name].why == UNREADABLE}
        self.problems += (
            problem
            for problem in found
            if (problem.file, problem.line, problem.column) not in places
            and not any(name in problem.message for name in lost)
        )

    def canonicalnames_of(self) -> dict[str, str]:
        """Ids, names and aliases, each to the id of its rule. A name that two rules want stays with the first."""
        owners = {id_: id_ for id_ in self.drafts}
        for id_, draft in self.drafts.items():
            for name in dict.fromkeys(names_of(draft.rule)[1:]):
                owner = owners.setdefault(name, id_)
                if owner == id_:
                    continue
                path = ("name",) if name == draft.rule.name else ("aliases", draft.rule.aliases.index(name))
                other = self.drafts[owner].document
                message = f"{name!r} already belongs to rule {owner}"
                self.problems.append(draft.problem(path, message, f"{other.file}:{other.line}"))
        return owners

    def references_hold(self, draft: Draft, ids: Mapping[str, str]) -> bool:
        count = len(self.problems)
        rule = draft.rule
        if rule.advisor not in self.advisors:
            hint = nearest(rule.advisor, self.advisors)
            self.problems.append(draft.problem(("advisor",), f"no advisor {rule.advisor!r}", hint))
        self.problems += self.unknown_vendors(draft.document, rule.vendors)
        for key in ("after", "explains", "explained_by"):
            for index, name in enumerate(getattr(rule, key)):
                if name not in ids and name not in self.known:
                    self.problems.append(draft.problem((key, index), *self.unknown(name)))
                elif ids.get(name) == rule.id:
                    self.problems.append(draft.problem((key, index), f"rule {name} is itself"))
        for index, prefix in enumerate(rule.caveats):
            if not any(name.startswith(prefix) for name in self.advisors):
                hint = nearest(prefix, {name.split(".")[0] for name in self.advisors} | set(self.advisors))
                self.problems.append(draft.problem(("caveats", index), f"no advisor begins with {prefix!r}", hint))
        return len(self.problems) == count

    def explained(self, drafts: Mapping[str, Draft], ids: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Rule to its symptoms, by whichever of the two the link is given."""
        links = {id_: [ids.get(name, name) for name in draft.rule.explains] for id_, draft in drafts.items()}
        for id_, draft in drafts.items():
            for cause in draft.rule.explained_by:
                if ids.get(cause, cause) in links:
                    links[ids.get(cause, cause)].append(id_)
        return {id_: tuple(dict.fromkeys(symptoms)) for id_, symptoms in links.items()}

    def in_cycles(self, relation: str, drafts: Mapping[str, Draft], ids: Mapping[str, str]) -> set[str]:
        """Rules whose ``after`` (or ``explains``) leads back to themselves."""
        links: Mapping[str, Iterable[str]] = (
            self.explained(drafts, ids)
            if relation == "explains"
            else {id_: [ids.get(name, name) for name in draft.rule.after] for id_, draft in drafts.items()}
        )
        graph = {id_: set(names) for id_, names in links.items()}
        found: set[str] = set()
        while True:
            try:
                graphlib.TopologicalSorter(graph).prepare()
                return found
            except graphlib.CycleError as error:
                cycle = sorted(set(error.args[1]))
                first = self.drafts[cycle[0]]
                message = f"rules {', '.join(cycle)} form a circle of `{relation}`"
                self.problems.append(first.problem((relation,), message, key=True))
                found.update(cycle)
                graph = {id_: names for id_, names in graph.items() if id_ not in found}


def _ordered(rules: Mapping[str, CompiledRule]) -> list[str]:
    """Ids, each behind those in its ``after``; by id where that leaves a choice, whatever the order of files."""
    waiting = {id_: {name for name in rule.after if name in rules} for id_, rule in sorted(rules.items())}
    order: list[str] = []
    while waiting:
        ready = next(id_ for id_, names in waiting.items() if not names)
        order.append(ready)
        del waiting[ready]
        for names in waiting.values():
            names.discard(ready)
    return order
