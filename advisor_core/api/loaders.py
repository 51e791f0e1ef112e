"""The parts of a loader: finding profiles, the canonical tables, diagnostics."""

from __future__ import annotations

from advisor_core.contracts.missing import Missing, Unavailable
from advisor_core.contracts.profile import InputError, Loader, Profile, RankInput
from advisor_core.contracts.tables import SCHEMAS, Int64Array, PositionKind, RowSource, Table, TableSchema
from advisor_core.result.run import Diagnostic, InputFile

__all__ = [
    "SCHEMAS",
    "Diagnostic",
    "InputError",
    "InputFile",
    "Int64Array",
    "Loader",
    "Missing",
    "PositionKind",
    "Profile",
    "RankInput",
    "RowSource",
    "Table",
    "TableSchema",
    "Unavailable",
]
