"""The canonical tables of what a CSV file holds: most files hold one as it stands, some two, or other rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from advisor_core.contracts.missing import Missing
from advisor_core.contracts.tables import CORE_COUNTERS, PORTS
from advisor_core.loaders.readers import core_counters, ports
from advisor_core.loaders.readers.csv_file import CsvTable
from advisor_core.text.messages import message

if TYPE_CHECKING:
    import numpy.typing as npt


def tables_of(
    frame: pd.DataFrame, more: Mapping[str, npt.NDArray[Any]], table: CsvTable, kind: str, file: str
) -> tuple[dict[str, pd.DataFrame], dict[str, Missing]]:
    """The tables, with the source rows of ``frame``, and why one is lacking that such files may have. ``frame`` and
    ``more``: as `read_csv` gives them; ``kind``: the name of the file without numbers and suffix."""
    if kind in ports.KINDS:
        return {PORTS.name: ports.of_file(frame, ports.KINDS[kind])}, {}
    frames = {table.schema.name: frame}
    if not table.more:
        return frames, {}
    counters = core_counters.long(frame, more)
    if counters is None:
        return frames, {CORE_COUNTERS.name: Missing(message("loader.no_core_counters", file=file))}
    return frames | {CORE_COUNTERS.name: counters}, {}
