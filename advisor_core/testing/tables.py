"""Small tables of one rank, the facts over them, and what an advisor measures there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pandas as pd

from advisor_core.contracts.advisor import Advisor, Observations
from advisor_core.contracts.facts import Fact
from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.facts.store import FactStore
from advisor_core.loaders.readers.columns import Interner
from advisor_core.plugins.host import Host, load_host
from advisor_core.text.base import Scalar
from advisor_core.vocabulary.vocabulary import Vocabulary

_NOTHING: dict[str, Scalar] = {"int": -1, "bool": False, "text": "", "float": float("nan")}


def table(name: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The canonical table ``name`` from rows; what a row leaves out has no value. A key that ends in ``_us`` is
    microseconds for the column that ends in ``_ns``. Raises KeyError for a column that the table does not have."""
    schema = SCHEMAS[name]
    nothing = {column.name: _NOTHING[column.dtype] for column in schema.columns}
    listed = list(rows)
    given: dict[str, Any] = {"source_row": list(range(len(listed)))}
    for number, row in enumerate(listed):
        for key, value in row.items():
            column = key.removesuffix("_us") + "_ns" if key.endswith("_us") else key
            if column not in given:  # those of which no row tells, most of them, are for `conform` to make
                if column not in nothing:
                    raise KeyError(f"table {name} has no column {column!r}")
                given[column] = [nothing[column]] * len(listed)
            given[column][number] = round(value * 1_000) if key.endswith("_us") else value
    texts = Interner()
    for declared in schema.columns:
        if declared.dtype == "text" and declared.name in given:
            given[declared.name] = texts.categorical(texts.codes(given[declared.name]))
    return schema.conform(pd.DataFrame(given))


def profile(**changes: Any) -> Profile:
    """A profile of Ascend without tables: rank 0, level 1, PyTorch, nothing recorded; ``changes`` replace fields."""
    fields: dict[str, Any] = {
        "rank": 0, "kind": "test", "path": "test", "level": "level1", "framework": "pytorch", "versions": {},
        "profiler": {}, "variables": {}, "tables": {}, "missing": {}, "files": [], "diagnostics": [],
        "vendor": "ascend", "vocabulary": _vocabulary(str(changes.get("vendor", "ascend"))),
    }  # fmt: skip
    return Profile(**{**fields, **changes})


@cache
def installed() -> Host:
    """All installed plugins, loaded once for a process."""
    return load_host()


@cache
def _vocabulary(vendor: str) -> Vocabulary:
    return installed().vocabulary(vendor)


def fact_store(
    host: Host | None = None,
    about: Profile | None = None,
    facts: Iterable[Fact[object]] = (),
    **tables: pd.DataFrame,
) -> FactStore:
    """The facts of all installed plugins, and ``facts``, over these tables. Raises KeyError for a table that there is
    not."""
    given = (about or profile()).given()
    for name, frame in tables.items():
        given.put(SCHEMAS[name], frame)
    return FactStore({**(host or installed()).facts, **{fact.name: fact for fact in facts}}, given)


def measure(advisor: Advisor, store: FactStore, **params: Scalar) -> Observations:
    """The observations of an advisor. Raises `Unavailable` and `NotApplicable` like the advisor."""
    return advisor.measure(store.view(advisor.needs, advisor.wants), params)
