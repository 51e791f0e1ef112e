"""Messages of the host about an input, in both languages.

The sentences live in ``messages.yaml`` and, about advice, in ``advice.yaml``; code names them. A message that names an
unknown id or leaves a field unfilled is an error of the programmer and raises KeyError.
"""

from __future__ import annotations

from functools import cache

from advisor_core.text.base import Text
from advisor_core.text.packaged import packaged_yaml


@cache
def _messages() -> dict[str, Text]:
    files = [packaged_yaml("advisor_core.text", name) for name in ("messages.yaml", "advice.yaml")]
    return {name: Text(**texts) for file in files for name, texts in file.items()}


def message(name: str, /, **values: object) -> Text:
    """The message ``name`` with its fields filled."""
    return _messages()[name].format(**values)
