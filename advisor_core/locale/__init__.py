"""Texts that the host itself says about an input, in both languages.

The sentences live in ``messages.yaml``; code names them. A message that names an unknown id or leaves a field
unfilled is an error of the programmer and raises KeyError.
"""

from __future__ import annotations

from functools import cache

from advisor_core.models.base import Text
from advisor_core.packaged import packaged_yaml


@cache
def _messages() -> dict[str, Text]:
    return {name: Text(**texts) for name, texts in packaged_yaml(__name__, "messages.yaml").items()}


def message(name: str, /, **values: object) -> Text:
    """The message ``name`` with its fields filled."""
    return _messages()[name].format(**values)
