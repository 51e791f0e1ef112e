"""Messages of advisors in both languages, from ``messages.yaml``: reasons and titles of evidence."""

from __future__ import annotations

from functools import cache

from advisor_core.api import Text, packaged_yaml


@cache
def _messages() -> dict[str, Text]:
    return {name: Text(**texts) for name, texts in packaged_yaml("advisors", "messages.yaml").items()}


def message(name: str, /, **values: object) -> Text:
    """The message ``name`` with its fields filled."""
    return _messages()[name].format(**values)
