"""Decide whether an advice holds for a job, from its profile: yes, no, or not known.

An advice that cannot hold is left out. Where the profile does not tell, it is given with its condition in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from advisor_core.names.settings import concerns
from advisor_core.rules.language.template import code_span
from advisor_core.rules.model import HoldsFor
from advisor_core.rules.places import Place, Possible, decide, holds_in
from advisor_core.text.base import Text
from advisor_core.text.listed import listed
from advisor_core.text.messages import message


@dataclass(frozen=True)
class Job:
    """The properties of a job that decide which advice holds for it.

    ``software``: what the recording shows to run; other software may run as well. ``versions``: recorded ones by
    software. ``variables``: recorded environment, '' for what is recorded as not set.
    ``features``: features of the registry to whether the job uses them. ``places``: where the time of the finding lies,
    in a recording of several parts: they decide in place of ``phases`` and ``roles``."""

    phases: Possible = None
    roles: Possible = None
    frameworks: Possible = None
    software: frozenset[str] = frozenset()
    chips: Possible = None
    versions: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, bool] = field(default_factory=dict)
    places: tuple[Place, ...] = ()

    def uses(self, excluded: str) -> bool | None:
        """Whether the job has the setting or feature in use; ``None`` where that is not recorded."""
        name, has_value, _ = excluded.partition("=")
        if name in self.features:
            return self.features[name]
        if name not in self.variables:
            return None
        value = self.variables[name]
        if not has_value:
            return bool(value)
        return any(concerns(excluded, f"{name}={option.strip()}") for option in (value, *value.split(",")))


def in_range(version: str | None, wanted: str) -> bool | None:
    """Whether a recorded version lies in a range; ``None`` where it is not recorded, or not as PEP 440 writes it."""
    if version is None:
        return None
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(wanted, prereleases=True).contains(Version(version))
    except InvalidVersion:
        return None


def range_problem(wanted: str) -> str:
    """The mistake in a range of versions; '' if there is none."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(wanted)
    except InvalidSpecifier:
        return f"{wanted!r} is not a range of versions such as >=8.0.RC2,<9"
    return ""


ENGINES: Final = (frozenset({"vllm", "vllm-ascend"}), frozenset({"sglang"}), frozenset({"mindie"}))
"""Software that generates tokens, each with its plugins: where a recording shows one of them, no other runs there."""


def _runs(shown: frozenset[str], wanted: Sequence[str]) -> bool | None:
    """Whether one of the ``wanted`` runs where the recording shows ``shown``; ``None`` where it does not tell."""
    if shown & set(wanted):
        return True
    asked = [engine for engine in ENGINES if engine & set(wanted)]
    others = frozenset().union(*(engine for engine in ENGINES if engine not in asked))
    is_engine = set(wanted) <= frozenset().union(*ENGINES)
    return False if is_engine and shown & others and not any(shown & engine for engine in asked) else None


def conditions(holds: HoldsFor, job: Job, title_of: Callable[[str], Text]) -> list[Text] | None:
    """The conditions that the reader must check, in words; ``None`` if the advice cannot hold. ``title_of``: how a
    software is called."""
    open_: list[Text] = []
    for decided, text in _checks(holds, job, title_of):
        if decided is False:
            return None
        if decided is None:
            open_.append(text)
    return open_


def _checks(holds: HoldsFor, job: Job, title_of: Callable[[str], Text]) -> Iterator[tuple[bool | None, Text]]:
    of_part: tuple[tuple[str, Possible, Sequence[str]], ...] = (
        ("phase", job.phases, holds.phase),
        ("role", job.roles, holds.role),
    )
    if job.places:
        yield from holds_in(holds, job.places)
        of_part = ()
    properties: tuple[tuple[str, Possible, Sequence[str]], ...] = (
        *of_part,
        ("framework", job.frameworks, holds.framework),
        ("chip", job.chips, holds.chip),
    )
    for key, possible, values in properties:
        if values:
            yield (
                decide(possible, values),
                message(
                    f"advice.only.{key}", **dict(listed([message(f"advice.{key}.{name}") for name in values], " or "))
                ),
            )
    if holds.software:
        titles = [title_of(name) for name in holds.software]
        yield _runs(job.software, holds.software), message("advice.only.software", **dict(listed(titles, " or ")))
    for name, wanted in holds.versions.items():
        text = message("advice.only.version", software=title_of(name), range=code_span(wanted))
        yield in_range(job.versions.get(name), wanted), text
