"""Names of what is kept: digests of all that it depends on."""

from __future__ import annotations

import hashlib
import os

from advisor_core.cache.fingerprint import Files, code_digest, files_of
from advisor_core.contracts.profile import RankInput


def files_of_rank(source: RankInput) -> Files | None:
    """The files that tell whether a rank is as it was; ``None`` for one of which nothing is kept: sums are read for all
    ranks at once."""
    return None if source.coarse or source.problem else files_of(source.directory)


def tables_of(source: RankInput, files: Files) -> str | None:
    """The name of the tables of a rank, as it was read; as `name_of`."""
    return name_of(source, files, "tables")


def name_of(source: RankInput, files: Files, about: object) -> str | None:
    """The name of what is derived from these files of a rank; ``about``: what else it depends on. ``None`` where it
    cannot be told which code derives it. In messages a rank is called as the user called it: that is part of it."""
    try:
        code = code_digest()
    except OSError:
        return None
    place = os.path.abspath(source.directory)  # noqa: PTH100  # `Path.absolute` keeps '..'
    told = f"{place}\n{source!r}\n{files.digest}\n{code}\n{about!r}"
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()
