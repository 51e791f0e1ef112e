"""The JSON schema of a rule document, for editors; the checks that need other files are left to ``rules check``."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from advisor_core.rules.files.documents import KINDS
from advisor_core.rules.model import Rule


def rule_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of one YAML document: a rule, or what one of the keys of `KINDS` makes it."""
    references, schema = models_json_schema([(model, "validation") for model in (Rule, *KINDS.values())])
    chosen: dict[str, Any] = references[Rule, "validation"]
    for key, model in KINDS.items():
        chosen = {"if": {"required": [key]}, "then": references[model, "validation"], "else": chosen}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "npu-advisor rule document",
        "type": "object",
        # Chosen by the key and not by oneOf, so that an editor shows the mistakes of the one that is meant.
        **chosen,
        "$defs": schema["$defs"],
    }
