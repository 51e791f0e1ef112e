"""The shared facts of all ranks, for advisors of the job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor_core.contracts.facts import JobFacts
from advisor_core.contracts.keys import Answers, AnyKey
from advisor_core.contracts.missing import Missing
from advisor_core.contracts.stopwatch import Stopwatch
from advisor_core.facts.doubt.marks import caveats
from advisor_core.text.base import Text


class JobStore:
    """The facts that each rank shares with the job, by rank."""

    def __init__(self, ranks: Mapping[int, Answers]) -> None:
        self._ranks = ranks
        self.watch = Stopwatch()

    def missing(self, key: AnyKey) -> Missing | None:
        """The reason why no rank has the value, as the first rank gives it; ``None`` where one has it."""
        found = [answers.find(key) for answers in self._ranks.values()]
        reasons = [answer for answer in found if isinstance(answer, Missing)]
        return reasons[0] if reasons and len(reasons) == len(found) else None

    def view(self, needs: Iterable[AnyKey], wants: Iterable[AnyKey]) -> JobFacts:
        """The declared facts. Raises `Unavailable` or `NotApplicable` for the first needed value that no rank has."""
        needs = tuple(needs)
        for key in needs:
            if (missing := self.missing(key)) is not None:
                raise missing.error()
        return JobFacts(self._ranks, (*needs, *wants))

    def caveats(self, needs: Iterable[AnyKey]) -> tuple[Text, ...]:
        """Doubts about a measurement that needs these values, on any rank."""
        needs = tuple(needs)
        return tuple(dict.fromkeys(text for rank in self._ranks.values() for text in caveats(needs, rank)))
