"""Messages of advisors in both languages, reasons and titles of evidence: each package has its ``messages.yaml``."""

from __future__ import annotations

from functools import cache
from importlib import resources

from advisor_core.api import Text, packaged_yaml

_FILE = "messages.yaml"


@cache
def _messages() -> dict[str, Text]:
    folders = [folder for folder in resources.files("advisors").iterdir() if folder.joinpath(_FILE).is_file()]
    packages = ["advisors", *(f"advisors.{folder.name}" for folder in folders)]
    return {name: Text(**texts) for package in packages for name, texts in packaged_yaml(package, _FILE).items()}


def message(name: str, /, **values: object) -> Text:
    """The message ``name`` with its fields filled."""
    return _messages()[name].format(**values)
