"""The JSON schema of a rule document, for editors; the checks that need other files are left to ``rules check``."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from advisor_core.rules.model import Rule, RuleOverride


def rule_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of one YAML document: a rule, or with the key ``override`` a change of one."""
    references, schema = models_json_schema([(Rule, "validation"), (RuleOverride, "validation")])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "npu-advisor rule document",
        "type": "object",
        # Chosen by the key and not by oneOf, so that an editor shows the mistakes of the one that is meant.
        "if": {"required": ["override"]},
        "then": references[RuleOverride, "validation"],
        "else": references[Rule, "validation"],
        "$defs": schema["$defs"],
    }
