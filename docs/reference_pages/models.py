"""Sections about pydantic models: fields and their types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reference_pages.markdown import code, join, table, to
from reference_pages.texts import prose


def model_sections(schema: Mapping[str, Any], page: str) -> Iterator[str]:
    """One section per model of a JSON schema: what it is, and its fields."""
    for name, model in sorted(schema["$defs"].items()):
        yield one_model(name, model, page)


def one_model(name: str, model: Mapping[str, Any], page: str) -> str:
    required = set(model.get("required", ()))
    rows = (
        (
            code(field),
            kind_of(spec, page),
            "required" if field in required else code(json.dumps(spec.get("default", [] if "items" in spec else {}))),
            spec.get("description", ""),
        )
        for field, spec in model.get("properties", {}).items()
    )
    return join(f"## {name}", prose(model.get("description", "")), table(("Field", "Type", "Default", "Meaning"), rows))


def kind_of(spec: Mapping[str, Any], page: str) -> str:
    """A JSON schema type in words, with links to other models."""
    if "$ref" in spec:
        return to(page, spec["$ref"].rsplit("/", 1)[-1], page)
    if options := spec.get("anyOf", spec.get("oneOf")):
        return " or ".join(kind_of(option, page) for option in options)
    if "enum" in spec or "const" in spec:
        return ", ".join(code(value) for value in spec.get("enum", [spec.get("const")]))
    kind = spec.get("type")
    if kind == "array" and "prefixItems" in spec:
        return "[" + ", ".join(kind_of(item, page) for item in spec["prefixItems"]) + "]"
    if kind == "array":
        return f"list of {kind_of(spec.get('items', {}), page)}"
    if kind == "object":
        rest = spec.get("additionalProperties", spec.get("patternProperties", {}))
        value = next(iter(rest.values())) if "patternProperties" in spec else rest
        return f"map of text to {kind_of(value if isinstance(value, dict) else {}, page)}"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "null",
    }
    pattern = f" matching {code(spec['pattern'])}" if "pattern" in spec else ""
    return words.get(str(kind), "anything") + pattern
