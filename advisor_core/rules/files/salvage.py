"""Reads what can be read of a document with mistakes of form, so that the mistakes in its names and conditions are told
in the same round. Parts that cannot be read are replaced by something harmless."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from advisor_core.rules.files.documents import in_file, meant_key
from advisor_core.rules.files.yaml_file import Document, KeyPath
from advisor_core.text.base import Model

M = TypeVar("M", bound=Model)

_ROUNDS = 5
"""A replaced part can bring to light that something in it is missing; deeper than this no document goes."""

UNREADABLE = "stands for what cannot be read"
"""The ``why`` of a parameter that replaces one with mistakes."""

_TEXT = {"en": "", "zh": ""}
_ADVICE = {"kind": "investigate", "text": _TEXT}
_PARAM = {"value": 0, "unit": "", "why": UNREADABLE}
_HARMLESS: Mapping[str, Any] = {
    "id": "ZZ999",
    "name": "unreadable",
    "when": True,
    "severity": {},
    "impact": {"value": 0, "basis": "exact"},
    "params": {"*": _PARAM},
    "advice": [_ADVICE],
    "text": dict.fromkeys(("title", "good", "why", "verify"), _TEXT),
    "references": [{"title": "unreadable"}],
}


def salvage(document: Document, model: type[M]) -> tuple[M, Document] | None:
    """The model of what can be read, and the document it then is; ``None`` where too little is left."""
    document = replace(document, data=copy.deepcopy(document.data))
    for _ in range(_ROUNDS):
        try:
            return model.model_validate_json(json.dumps(document.data), strict=True), document
        except ValidationError as error:
            details = error.errors(include_url=False)
            # Misspelt keys first: what they give is then not missing.
            for detail in sorted(details, key=lambda detail: detail["type"] != "extra_forbidden"):
                document = _mended(document, model, detail)
    return None


def _mended(document: Document, model: type[M], detail: Any) -> Document:
    location = detail["loc"]
    if detail["type"] == "missing":
        path = in_file(document, location[:-1])
        found = document.get(path)
        if isinstance(found, dict):
            found.setdefault(location[-1], _harmless((*path, location[-1])))
        return document
    path = in_file(document, location)
    parent = document.get(path[:-1])
    if detail["type"] == "extra_forbidden":
        if isinstance(parent, dict) and path[-1] in parent:
            return _renamed(document, path, meant_key(document, model, path))
    elif isinstance(parent, dict) and path:
        value = _harmless(path)
        if value is None:
            parent.pop(path[-1], None)
        else:
            parent[path[-1]] = value
    elif isinstance(parent, list):
        _set_item(parent, path)
    return document


def _set_item(items: list[Any], path: KeyPath) -> None:
    """A list item that cannot be read becomes a harmless one, or the text that lists mostly have."""
    index = path[-1]
    assert isinstance(index, int)
    if index < len(items):
        value = _harmless(path)
        items[index] = "ZZ999" if value is None else value


def _harmless(path: KeyPath) -> Any:
    """A valid value for ``path``; ``None`` where none is needed."""
    found: Any = _HARMLESS
    for step in path:
        if isinstance(found, list):
            found = found[0]
        elif isinstance(found, Mapping):
            found = found.get(str(step), found.get("*"))
        else:
            return None
    return copy.deepcopy(found)


def _renamed(document: Document, path: KeyPath, key: str) -> Document:
    """The document with the misspelt key at ``path`` spelt as ``key``, or without it if there is none."""
    parent = document.get(path[:-1])
    value = parent.pop(path[-1])
    if not key:
        return document
    parent[key] = value
    new = (*path[:-1], key)

    def moved(place: KeyPath) -> KeyPath:
        return (*new, *place[len(path) :]) if place[: len(path)] == path else place

    keys = {moved(place): where for place, where in document.keys.items()}
    values = {moved(place): where for place, where in document.values.items()}
    return replace(document, keys=keys, values=values)
