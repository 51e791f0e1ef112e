"""The names of compared runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def short_names(paths: Sequence[Path]) -> list[str]:
    """The ends of paths, as short as they can be told apart; what is given twice has the same name.

    >>> short_names([Path("a/one/report.json"), Path("b/two/report.json")])
    ['one/report.json', 'two/report.json']
    """
    parts = [path.absolute().parts for path in paths]
    distinct = len(set(parts))
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == distinct:
            return names
    return [str(path) for path in paths]
