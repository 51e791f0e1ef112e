"""The errors of what is at a URL."""

from __future__ import annotations

import errno

from advisor_core.contracts.profile import InputError
from advisor_core.remote.url import Url


class DriverError(Exception):
    """The package that reads a kind of URL is not installed; the message says which. Exit code 2."""


class RemoteError(InputError):
    """What is at a URL cannot be listed or copied; the message names the URL and says why. Exit code 3."""


class CopyError(OSError):
    """A file at a URL cannot be copied; to loaders it is a file that cannot be read."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EIO, why)


def cause(url: Url, error: Exception) -> str:
    """The reason in an error of a driver, which may be of any kind: in a line, without secrets."""
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    text = " ".join(url.hidden(str(error)).split())[:300]
    if isinstance(error, PermissionError):
        return f"no permission ({text})" if text else "no permission"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
