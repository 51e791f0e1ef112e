"""What of a rank is kept from one run to the next, and what that depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import pandas as pd

from advisor_core.cache.derived import Derived
from advisor_core.cache.folder import rank_folder
from advisor_core.cache.ranks import Loaded, kept_rank
from advisor_core.contracts.advisor import Advisor, Scope
from advisor_core.contracts.profile import RankInput
from advisor_core.loaders.readers.files import tell_read
from advisor_core.plugins.guarded_loaders import guarded
from advisor_core.plugins.host import Host
from advisor_core.rules.book import RuleBook
from advisor_core.run.measurements import Asked, asked


def read_rank(host: Host, source: RankInput, cache_bytes: int) -> Loaded:
    """The rank as its loader gives it, or as it was kept. Of loaders of other plugins nothing is kept: what they are
    made of is not known."""
    load = guarded(host, source.loader).load
    folder = rank_folder(cache_bytes) if host.loaders.owner(source.loader).builtin else None
    if folder is None:
        return Loaded(load(source))
    loaded = kept_rank(folder, source, load)
    if loaded.from_cache:
        tell_read(source.bytes)
    return loaded


def kept_of(host: Host, source: RankInput, cache_bytes: int) -> Derived | None:
    """What was derived from a rank; ``None`` where other plugins take part, or nothing is to be kept."""
    folder = rank_folder(cache_bytes)
    if folder is None or not host.is_ours():
        return None
    return Derived(folder, source, tuple(plugin.name for plugin in host.plugins))


def asked_by(book: RuleBook, advisors: Mapping[str, Advisor]) -> list[Asked]:
    """The measurements of a rank that rules ask for. Which they are decides what else is derived, and told of it."""
    ranks = (rule for rule in book if advisors[rule.rule.advisor].scope is Scope.RANK)
    return sorted({asked(advisors[rule.rule.advisor], rule.measure_params) for rule in ranks})


def printed(value: object) -> object:
    """A value of plain things, data classes and frames as something that prints all of itself, and equal things
    equally."""
    if isinstance(value, pd.DataFrame):
        columns = [value.iloc[:, place] for place in range(value.shape[1])]
        return [(column.name, str(column.dtype), column.tolist()) for column in columns]
    if is_dataclass(value):
        return [(field.name, printed(getattr(value, field.name))) for field in fields(value)]
    return value
