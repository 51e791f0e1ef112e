"""The errors of what is at a URL."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from advisor_core.contracts.profile import InputError
from advisor_core.remote.url import Url


class DriverError(Exception):
    """The package that reads a kind of URL is not installed; the message says which. Exit code 2."""


class RemoteError(InputError):
    """A URL, or a file there, that cannot be listed or copied; the message names the URL and says why. Exit code 3."""


class CopyError(OSError):
    """A file at a URL cannot be copied; to loaders it is a file that cannot be read."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EIO, why)


@contextmanager
def driver_errors(url: Url, file: str = "") -> Iterator[None]:
    """Raises `RemoteError`, about a file at a URL or about the URL itself, for whatever a driver raises meanwhile.
    Errors of this module stay what they are."""
    try:
        yield
    except (DriverError, RemoteError, CopyError):
        raise
    except Exception as error:
        raise RemoteError(f"{file or url}: {_cause(url, error)}") from None


def _cause(url: Url, error: Exception) -> str:
    """The reason in an error of a driver: in a line, without secrets."""
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    text = " ".join(url.hidden(str(error)).split())[:300]
    if isinstance(error, PermissionError):
        return f"no permission ({text})" if text else "no permission"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
