"""Texts that plugins bring for what reports show by name: headings of columns, parts of the ledger."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from advisor_core.text.base import Text

HEADING: Final = "heading."
PATH: Final = "path."
_KEY: Final = re.compile(r"(heading\.[A-Za-z_]\w*|path\.\w+(/\w+)*)")


@dataclass(frozen=True)
class Label:
    """``name``: ``heading.COLUMN``, the heading of a column that an advisor measures or shows, without the unit at the
    end of its name; or ``path.PATH``, a part of the ledger."""

    name: str
    text: Text

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no label: {HEADING}COLUMN or {PATH}PATH")
