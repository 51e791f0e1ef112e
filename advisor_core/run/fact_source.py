"""The source of facts for measurements: a rank, or all ranks of the job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from advisor_core.contracts.facts import Facts, JobFacts
from advisor_core.contracts.keys import AnyKey
from advisor_core.contracts.missing import Missing
from advisor_core.contracts.stopwatch import Stopwatch
from advisor_core.text.base import Text


class FactSource(Protocol):
    """The facts of a rank, or those of all ranks of the job. ``watch``: what measuring and judging take is counted
    there."""

    watch: Stopwatch

    def view(self, needs: Iterable[AnyKey], wants: Iterable[AnyKey]) -> Facts | JobFacts:
        """The values that an advisor declared. Raises `Unavailable` or `NotApplicable`."""

    def missing(self, key: AnyKey) -> Missing | None:
        """The reason why a value is not known, ``None`` where it is."""

    def caveats(self, needs: Iterable[AnyKey]) -> tuple[Text, ...]:
        """Contradictions between other files of the recording and a measurement that needs these values."""
