"""Headings of the columns that a result shows, in both languages, as they are declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor_core.contracts.columns import Column
from advisor_core.contracts.labels import HEADING
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.plugins.host import Host
from advisor_core.result.run import RunResult
from advisor_core.text.base import Text
from advisor_core.text.headings import heading_key

_ENDINGS = ("_ns", "_us", "_ms", "_bytes", "_mhz")


def compose_headings(host: Host, result: RunResult) -> dict[str, Text]:
    """The labels of the result: what plugins call parts of the ledger, and the headings of what is shown."""
    shown = {f"{HEADING}{key}" for name, unit in _shown(result) for key in _keys(name, unit)}
    declared = {key: column.heading for key, column in _declared(host).items() if key in shown}
    known = {**declared, **host.texts()}
    return {key: text for key, text in sorted(known.items()) if not key.startswith(HEADING) or key in shown}


def declared_headings(host: Host) -> dict[str, Text]:
    """Headings of the columns that have a Chinese one. A name has one heading: that of the first plugin, ours come
    first, then of the canonical tables."""
    return {key: column.heading for key, column in _declared(host).items()}


def _declared(host: Host) -> dict[str, Column]:
    advisors = (column for advisor in host.advisors.values() for column in advisor.shown().values())
    tables = (column for schema in SCHEMAS.values() for column in schema.columns)
    found: dict[str, Column] = {}
    for column in (*advisors, *tables):
        if column.zh:
            found.setdefault(f"{HEADING}{column.key}", column)
    return found


def _shown(result: RunResult) -> Iterator[tuple[str, str | None]]:
    """Names with their units, where these are known."""
    for finding in result.findings:
        yield from ((name, finding.units.get(name)) for name in finding.observation)
        yield from _without_units(finding.subject)
        for item in finding.evidence:
            yield from ((name, item.units.get(name)) for row in item.rows for name in row)
    for step in result.ledger:
        for entry in step.entries:
            yield from _without_units(entry.detail)
            for piece in entry.pieces:
                yield from _without_units(piece)
    for environment in (result.environment, *result.role_environments.values()):
        yield from _without_units(environment.chip)
        yield from _without_units(environment.profiler)


def _without_units(values: Mapping[str, object]) -> Iterator[tuple[str, None]]:
    return ((name, None) for name in values)


def _keys(name: str, unit: str | None) -> Iterator[str]:
    """Keys under which the heading of a shown name may stand; the ending tells the unit where it stands nowhere
    else."""
    yield heading_key(name, unit)
    if unit is None:
        yield from (name.removesuffix(ending) for ending in _ENDINGS if name.endswith(ending))
