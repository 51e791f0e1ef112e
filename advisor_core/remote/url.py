"""A URL as the user gives it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:://|::)")
"""The beginning of a URL, or of a chain of them (``zip::s3://``). A drive of Windows has one letter."""

_USER: Final = re.compile(r"(?<=://)[^/@]*@")
_QUERY: Final = re.compile(r"(https?://[^?#]*)[?#].*?(?=::|$)")
_USER_IN_TEXT: Final = re.compile(r"(?<=://)[^\s/@]*@")
_QUERY_IN_TEXT: Final = re.compile(r"""(https?://[^\s?#'"<>]*)[?#][^\s'"<>]*""")
_NOT_IN_NAMES: Final = re.compile(r'[\\:*?"<>|\0]')
"""Characters that one system or another does not have in names of files."""


def is_url(text: str) -> bool:
    """Whether a path as the user wrote it is a URL."""
    return _URL.match(text) is not None


@dataclass(frozen=True)
class Url:
    """``text``: as the user wrote it, which may hold a password or a signature."""

    text: str

    @property
    def place(self) -> str:
        """The URL by which copies are known: without a slash at its end."""
        return self.text.rstrip("/")

    def __str__(self) -> str:
        """For messages: without what is secret."""
        return _QUERY.sub(r"\1", _USER.sub("", self.text))

    def hidden(self, text: str) -> str:
        """A text, such as that of an error of a driver, without what is secret in this URL and in any other there:
        drivers write it with other escapes (``%2F``)."""
        text = text.replace(self.place, str(self).rstrip("/"))
        return _QUERY_IN_TEXT.sub(r"\1", _USER_IN_TEXT.sub("", text))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of which the place consists, as names of files; the last one is that of the profile."""
        _, separator, path = str(self).split("::")[0].partition("://")
        names = path.split("/") if any(path.split("/")) and separator else re.split(r"[/:]+", str(self))
        return tuple(_NOT_IN_NAMES.sub("_", name) for name in names if name not in ("", ".", ".."))
