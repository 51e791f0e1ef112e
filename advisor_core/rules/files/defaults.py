"""The parameters that a rule has from the defaults of its set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from advisor_core.result.finding import Severity
from advisor_core.rules.model import Param, Rule

_NAMED = re.compile(r"params\.(?<!\wparams\.)([a-z][a-z0-9_]*)")
"""A pattern that begins with plain letters: these are searched for twenty times as fast as the begin of a word."""
_LEVELS: tuple[Severity, ...] = ("high", "medium")


def inherit(rule: Rule, defaults: Mapping[str, Param], read: Iterable[str]) -> Rule:
    """The rule with those defaults that it names and does not give. ``read``: what its advisor reads."""
    wanted = {*_NAMED.findall(rule.model_dump_json()), *read}
    wanted.update(f"{level}_share" for level in _LEVELS if f"params.{level}_share" in str(rule.severity.of(level)))
    inherited = {name: param for name, param in defaults.items() if name in wanted and name not in rule.params}
    return rule.model_copy(update={"params": {**rule.params, **inherited}}) if inherited else rule
