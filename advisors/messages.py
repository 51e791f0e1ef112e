"""What the advisors say themselves: reasons and titles of evidence, in both languages, from ``messages.yaml``."""

from __future__ import annotations

from functools import cache
from importlib import resources

import yaml

from advisor_core.api import Text


@cache
def _messages() -> dict[str, Text]:
    source = resources.files("advisors").joinpath("messages.yaml").read_text(encoding="utf-8")
    loaded = yaml.load(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {name: Text(**texts) for name, texts in loaded.items()}


def message(name: str, /, **values: object) -> Text:
    """The message ``name`` with its fields filled."""
    return _messages()[name].format(**values)
