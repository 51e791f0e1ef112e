"""Turn a YAML document into a rule or an override, with errors at the line and in the words of an author."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from advisor_core.contracts.problems import Problem, RuleFileError, closest, nearest, shorten
from advisor_core.rules.cases import RuleCases
from advisor_core.rules.files.yaml_file import Document, KeyPath
from advisor_core.rules.model import Rule, RuleOverride, RuleTranslation, SetDefaults

_EXPECTED: Mapping[str, str] = {
    "bool_type": "true or false",
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
"""What pydantic says of a key that a model, or a dataclass, does not have."""
_MISSING = frozenset({"missing", "missing_argument"})
_LOOKS: Mapping[str, str] = {
    "id": "an id such as HD001",
    "after": "an id such as HD001",
    "explains": "an id such as HD001",
    "explained_by": "an id such as HD001",
    "override": "an id such as HD001, or a name such as device-idle",
    "aliases": "an id such as HD001, or a name such as device-idle",
    "name": "a name such as device-idle",
    "params": "a name such as min_share",
    "defaults": "a name such as min_share",
    "signs": "a name such as unused",
    "zh": "an id such as HD001",
    "cases": "an id such as HD001",
    "requires": "a requirement such as npu-advisor>=0.1",
    "vendors": "a vendor such as ascend",
    "claims": "a path such as idle/host",
    "unit": "a unit such as ns or ratio",
}


Described = Rule | RuleOverride | SetDefaults | RuleTranslation | RuleCases
KINDS: Mapping[str, type[Described]] = {
    "override": RuleOverride,
    "defaults": SetDefaults,
    "zh": RuleTranslation,
    "cases": RuleCases,
}
"""The kind of a document with one of these keys; any other is a rule."""


def kind_of_document(document: Document) -> type[Described]:
    """The kind of the document, by its keys. Raises `RuleFileError`."""
    if not isinstance(document.data, dict):
        raise RuleFileError([document.problem((), "a rule is a mapping of keys to values")])
    return next((model for key, model in KINDS.items() if key in document.data), Rule)


def read_document(document: Document) -> Described:
    """The model that the document describes. Raises `RuleFileError`."""
    model = kind_of_document(document)
    try:
        # By way of JSON, where pydantic's strict mode accepts a list for a tuple and still nothing else.
        return model.model_validate_json(json.dumps(document.data), strict=True)
    except ValidationError as error:
        raise RuleFileError(mistakes(document, model, error)) from None


def mistakes(document: Document, model: type[BaseModel], error: ValidationError) -> Iterator[Problem]:
    """The mistakes of a document that should be a ``model``, in the words of its author. One problem per mistake: for a
    value that may be this or that, pydantic complains once for each."""
    places: dict[KeyPath, list[Any]] = {}
    for detail in error.errors(include_url=False):
        places.setdefault(in_file(document, detail["loc"]), []).append(detail)
    meant: set[KeyPath] = set()
    """Keys that are missing because they are misspelt: one mistake, one message."""
    for path, details in places.items():
        if any(detail["type"] in _UNKNOWN for detail in details):
            hint = meant_key(document, model, path)
            meant.add((*path[:-1], hint))
            said = f"did you mean {hint!r}?" if hint else ""
            yield document.problem(path, f"unknown key {path[-1]!r}", said, key=True)
            continue
        rest = [detail for detail in details if detail["type"] not in _MISSING]
        if rest:
            yield _problem(document, path, rest)
    for path, details in places.items():
        for detail in details:
            if detail["type"] in _MISSING and (*path, detail["loc"][-1]) not in meant:
                yield document.problem(path, f"missing key {detail['loc'][-1]!r}", key=True)


def meant_key(document: Document, model: type[BaseModel], path: KeyPath) -> str:
    """The key that the one at ``path`` may be meant for, or nothing."""
    free = set(_keys(model, path[:-1])) - set(document.get(path[:-1]) or ())
    return closest(str(path[-1]), free)


def _problem(document: Document, path: KeyPath, details: list[Any]) -> Problem:
    value = document.get(path)
    first = details[0]
    kinds = [detail["type"] for detail in details]
    if all(kind in _EXPECTED for kind in kinds):
        expected = list(dict.fromkeys(_EXPECTED[kind] for kind in kinds))
        hint = ""
        if "text" in expected and isinstance(value, bool | int | float):
            hint = f'write "{json.dumps(value)}" in quotes'
        if first.get("ctx", {}).get("class_name") == "Sentence":
            hint = "write the text in quotes, or {en: ..., zh: ...}"
        found = "nothing" if value is None else shorten(json.dumps(value, ensure_ascii=False), 40)
        return document.problem(path, f"expected {' or '.join(expected)}, found {found}", hint)
    detail = next(detail for detail in details if detail["type"] not in _EXPECTED)
    context = detail.get("ctx", {})
    if detail["type"] == "literal_error":
        options = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        message = f"{shorten(str(value))!r} is not one of {', '.join(options)}"
        return document.problem(path, message, nearest(str(value), options))
    if detail["type"] == "string_pattern_mismatch":
        field = next((str(step) for step in reversed(path) if step in _LOOKS), "")
        is_key = detail["loc"][-1] == "[key]"
        named = path[-1] if is_key else value
        message = f"{shorten(str(named))!r} is not {_LOOKS.get(field, 'spelt as it must be')}"
        return document.problem(path, message, key=is_key)
    field = next((str(step) for step in reversed(path) if isinstance(step, str)), "the document")
    message = str(detail["msg"]).removeprefix("Value error, ")
    return document.problem(path, re.sub(r"^(\w+) should", f"{field!r} should", message))


def in_file(document: Document, location: tuple[int | str, ...]) -> KeyPath:
    """The part of pydantic's location that the file knows; the rest names alternatives and missing keys."""
    path: KeyPath = ()
    for step in location:
        if (*path, step) not in document.values:
            break
        path = (*path, step)
    return path


def _keys(model: type[BaseModel], path: KeyPath) -> Iterator[str]:
    """The keys that a mapping at ``path`` may have."""
    kinds: list[Any] = [model]
    for step in path:
        kinds = [kind for parent in kinds for kind in _below(parent, step)]
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from kind.model_fields
        elif is_dataclass(kind):
            yield from _members(kind)


def _below(kind: Any, step: str | int) -> Iterator[Any]:
    """The types that a value of type ``kind`` has under ``step``, unions taken apart."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(str(step))
        yield from _alternatives(field.annotation) if field else ()
    elif is_dataclass(kind):
        yield from _alternatives(_members(kind).get(str(step)))
    elif get_origin(kind) in {list, dict}:
        yield from _alternatives(get_args(kind)[-1])


def _members(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass and their types, by the names that a file has for them."""
    types, written = get_type_hints(kind), get_type_hints(kind, include_extras=True)

    def called(name: str) -> str:
        aliases = (getattr(part, "alias", None) for part in getattr(written[name], "__metadata__", ()))
        return next(filter(None, aliases), name)

    return {called(field.name): types[field.name] for field in fields(kind)}


def _alternatives(annotation: Any) -> Iterator[Any]:
    arguments = get_args(annotation)
    if arguments and get_origin(annotation) not in {list, dict, tuple}:
        for argument in arguments:
            yield from _alternatives(argument)
    else:
        yield annotation
