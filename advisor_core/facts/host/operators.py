"""The operators of the framework among what the host did."""

from __future__ import annotations

import pandas as pd

from advisor_core.facts.matching import matching
from advisor_core.vocabulary.vocabulary import Vocabulary


def operators_of(events: pd.DataFrame, words: Vocabulary) -> pd.DataFrame:
    """The rows of ``host_events`` that are operators, without the marks that some exports list among them."""
    return events[(events["category"] == "cpu_op") & ~matching(events["name"], words.annotation)]
