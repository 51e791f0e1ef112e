"""The URLs that paths of stand-ins stand for, in what a user reads."""

from __future__ import annotations

from pathlib import Path

from advisor_core.remote.url import Url

_roots: dict[str, str] = {}


def show_as(root: Path, url: Url) -> None:
    """Have `with_urls` name a URL in place of a path."""
    _roots[str(root)] = str(url).rstrip("/")


def with_urls(text: str) -> str:
    """A message, with the URLs of what was opened in place of local paths."""
    for root, url in _roots.items():
        text = text.replace(root, url)
    return text
