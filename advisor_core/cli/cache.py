"""``advisor cache``: what of profiles is kept for the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from advisor_core.cli.console import EXIT_USAGE, epilog, printable, say, stop
from advisor_core.cli.settings import current_settings, settings_options

if TYPE_CHECKING:
    from advisor_core.cache.folder import CacheFolder, Held

MIB = 1 << 20


@click.group(epilog=epilog())
def cache() -> None:
    """Look at what of profiles is kept for the next run, or delete it.

    What was read of a rank and measured on it is kept in the cache directory of the user, never in the profile, and
    taken from there as long as no file of the rank has changed. `--no-cache` of a command does without it; `cache_gib`
    in advisor.toml says how much it may take. What was not used for longest is deleted first. Copies of files at URLs,
    which the next run need not fetch, may take as much again.
    """


@cache.command(epilog=epilog())
@settings_options()
def info() -> None:
    """Print where the cache is, how many files it holds, and how much they take."""
    limit = current_settings().values.cache_gib
    folder = _folder()
    say(printable(f"folder: {folder.path}"))
    say(_told(_held(folder)))
    say(f"copies of {_told(_copies())}, from URLs")
    say(f"limit: {limit:g} GiB" if limit else "limit: 0, nothing is kept")


@cache.command(epilog=epilog())
def clear() -> None:
    """Delete all of it."""
    from advisor_core.remote import kept

    folder = _folder()
    before, copies = _held(folder), _copies()
    try:
        left = folder.clear()
        kept.clear()
    except OSError as error:
        stop(EXIT_USAGE, f"{error.filename or folder.path}: {error.strerror or error}")
    if left.files:
        stop(EXIT_USAGE, f"{folder.path}: {_told(left)} could not be deleted")
    say(f"deleted: {_told(before)}; copies of {_told(copies)}, from URLs")


def _folder() -> CacheFolder:
    from advisor_core.cache.folder import rank_folder

    folder = rank_folder(1)
    if folder is None:
        stop(EXIT_USAGE, "this user has no cache directory; XDG_CACHE_HOME names one")
    return folder


def _held(folder: CacheFolder) -> Held:
    try:
        return folder.held()
    except OSError as error:
        stop(EXIT_USAGE, f"{folder.path}: {error.strerror or error}")


def _copies() -> Held:
    """The copies of files at URLs."""
    from advisor_core.cache.folder import Held
    from advisor_core.remote import kept

    try:
        return Held(*kept.held())
    except OSError as error:
        stop(EXIT_USAGE, f"{error.filename}: {error.strerror or error}")


def _told(held: Held) -> str:
    return f"files: {held.files}, {held.bytes / MIB:.1f} MiB"
