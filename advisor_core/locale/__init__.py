"""Texts that the host itself says about an input, in both languages.

The sentences live in ``messages.yaml``; code names them. A message that names an unknown id or leaves a field
unfilled is an error of the programmer and raises KeyError.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import yaml

from advisor_core.models.base import Text


@cache
def _messages() -> dict[str, Text]:
    source = resources.files(__name__).joinpath("messages.yaml").read_text(encoding="utf-8")
    loaded = yaml.load(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {name: Text(**texts) for name, texts in loaded.items()}


def message(name: str, /, **values: object) -> Text:
    """The message ``name`` with its fields filled."""
    return _messages()[name].format(**values)
