"""YAML that a package brings with it. It is ours and trusted: what users write goes through `rules.yaml_file`."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from advisor_core.text.kept import kept

_LOADER = str(Path(__file__).with_name("plain_loader.py"))
"""The module that reads; imported when something is not kept."""


def packaged_yaml(package: str, name: str) -> Any:
    """The contents of the file ``name`` beside the modules of ``package``."""
    return _read(f"{package}.{name}", resources.files(package).joinpath(name).read_bytes())


def yaml_beside(path: Path) -> Any:
    """The contents of a file that a plugin has brought with it. Raises `yaml.YAMLError`."""
    return _read(path.name, path.read_bytes())


def _read(name: str, content: bytes) -> Any:
    return kept(name, [content], _LOADER, lambda: _parsed(content))


def _parsed(content: bytes) -> Any:
    import yaml

    from advisor_core.text.plain_loader import PlainLoader

    return yaml.load(content.decode("utf-8"), Loader=PlainLoader)
