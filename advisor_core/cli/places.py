"""Places of profiles: paths, or URLs that fsspec knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor_core.cli.console import EXIT_INPUT, EXIT_USAGE, stop
from advisor_core.remote.url import Url, is_url

if TYPE_CHECKING:
    from advisor_core.cli.progress import Progress


class PlaceType(click.Path):
    """A path, or a URL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and is_url(value):
            return Url(value)
        return value if isinstance(value, Url) else super().convert(value, param, ctx)


PLACE = PlaceType(path_type=Path)


def on_disk(places: Sequence[Path | Url]) -> tuple[Path, ...]:
    """Those of the places that are paths."""
    return tuple(place for place in places if isinstance(place, Path))


def as_paths(places: Sequence[Path | Url]) -> tuple[Path, ...]:
    """The places as paths that only name them: of a URL its parts."""
    return tuple(place if isinstance(place, Path) else Path(*place.parts) for place in places)


def content(path: Path) -> Path:
    """The file to open for a path of `reached`. Stops where it cannot be copied."""
    from advisor_core.remote.copies import here

    try:
        return here(path)
    except OSError as error:
        stop(EXIT_INPUT, error.strerror or str(error))


def reached(places: Sequence[Path | Url], cache_bytes: int, progress: Progress) -> tuple[Path, ...]:
    """A path that loaders can read for each place, until the command ends. Stops where a URL cannot be reached."""
    if len(paths := on_disk(places)) == len(places):
        return paths
    return click.get_current_context().with_resource(_reached(places, cache_bytes, progress))


@contextmanager
def _reached(places: Sequence[Path | Url], cache_bytes: int, progress: Progress) -> Iterator[tuple[Path, ...]]:
    from advisor_core.contracts.isolation import quiet
    from advisor_core.remote.copies import listen_to_copies
    from advisor_core.remote.errors import DriverError, RemoteError
    from advisor_core.remote.opened import opened
    from advisor_core.run.prepared import installed_host
    from advisor_core.run.work import Work

    host = installed_host()
    foreign = any(not host.loaders.owner(name).builtin for name in host.loaders)  # they open files by themselves
    urls = [place for place in places if isinstance(place, Url)]
    with ExitStack() as stack:
        try:
            with progress.of(Work()) as work, quiet():
                listen_to_copies(work.copy)
                opened_urls = iter(stack.enter_context(opened(urls, cache_bytes, whole=foreign)))
        except DriverError as error:
            stop(EXIT_USAGE, str(error))
        except RemoteError as error:
            stop(EXIT_INPUT, str(error))
        yield tuple(place if isinstance(place, Path) else next(opened_urls) for place in places)
