"""The file system behind a URL, by fsspec: the only module that imports it. The extra ``npu-advisor[remote]`` brings
it, and the package that reads the protocol (``s3fs``) is the user's to install."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from advisor_core.remote.errors import DriverError, driver_errors
from advisor_core.remote.url import Url

Entry = Mapping[str, Any]
"""A file or directory as a driver describes it: ``name``, ``type``, ``size`` and what else it knows."""

_AT_ONCE: Final = 32
"""Requests that wait for a server at the same time: an answer takes some 50 ms, of which we do nothing in most. Our
choice."""

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class FileSystem:
    """The file system of a URL, and the path in it that the URL names. Its methods raise whatever the driver raises."""

    url: Url
    driver: Any
    root: str

    def path(self, relative: str) -> str:
        """The path of what lies below the URL; of '' that of the URL."""
        if not relative:
            return self.root
        return f"{self.root.rstrip('/')}/{relative}" if self.root.strip("/") else f"{self.root}{relative}"

    def relative(self, name: str) -> str | None:
        """The place of something below the URL, from its name as the driver tells it; ``None`` for what is not."""
        above = self.path("x")[:-1]
        told = str(self.driver._strip_protocol(name)).rstrip("/")
        return told[len(above) :] if told.startswith(above) and len(told) > len(above) else None

    def entries(self, relative: str) -> list[Entry]:
        """All in a directory, as it is now."""
        self.driver.invalidate_cache(self.path(relative))
        return list(self.driver.ls(self.path(relative), detail=True))

    def entry(self, relative: str) -> Entry:
        """One file or directory, as it is now."""
        self.driver.invalidate_cache(self.path(relative))
        found: Entry = self.driver.info(self.path(relative))
        return found

    def beginning(self, relative: str, size: int) -> bytes:
        """The first bytes of a file."""
        read: bytes = self.driver.cat_file(self.path(relative), start=0, end=size)
        return read[:size]  # some servers give all

    def copy(self, relative: str, target: Path, told: Callable[[int], None]) -> None:
        """Copy a file to the local file ``target``; ``told`` hears of the bytes as they come."""
        from fsspec.callbacks import Callback

        class Told(Callback):  # type: ignore[misc]
            def relative_update(self, inc: int = 1) -> None:
                told(inc)

        self.driver.get_file(self.path(relative), str(target), callback=Told())

    def each(self, call: Callable[[A], T], arguments: Sequence[A]) -> list[T]:
        """The results of a call for each argument, in order: several at the same time where the driver bears that."""
        if len(arguments) < 2 or not getattr(self.driver, "async_impl", False):
            return [call(argument) for argument in arguments]
        pool = ThreadPoolExecutor(min(_AT_ONCE, len(arguments)), thread_name_prefix="url")
        try:
            return list(pool.map(call, arguments))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # the others need not be waited for where one raised


def file_system(url: Url) -> FileSystem:
    """The file system of a URL. Raises `DriverError` and `RemoteError`."""
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "fsspec":
            raise
        raise DriverError(f'{url}: fsspec is not installed: pip install "npu-advisor[remote]"') from None
    with driver_errors(url):
        try:
            driver, root = url_to_fs(url.text)
        except ImportError as error:
            raise DriverError(f"{url}: the package that reads such URLs is not installed ({error})") from None
    return FileSystem(url, driver, root)
