"""The steps of a rank that are measured: the recorded ones without a warm-up, or the one that was chosen."""

from __future__ import annotations

import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.profile import PROFILE
from advisor_core.facts.steps.recorded_steps import COLUMNS, recorded_steps
from advisor_core.facts.steps.warm_up import warm_up
from advisor_core.text.messages import message


@fact("steps", needs=(recorded_steps, PROFILE), wants=(warm_up,), shared=True, columns=COLUMNS)
def steps(facts: Facts) -> pd.DataFrame:
    """One row per step, in order of time: the recorded steps without a first one that warms up. With ``--step`` only
    that step's window, whichever it is."""
    windows = facts[recorded_steps]
    wanted = facts[PROFILE].selected_step
    if wanted is None:
        steady: pd.DataFrame = windows.iloc[1:].reset_index(drop=True) if warm_up in facts else windows
        return steady
    chosen: pd.DataFrame = windows[windows["step"] == wanted].reset_index(drop=True)
    if chosen.empty:
        recorded = ", ".join(str(step) for step in windows["step"])
        raise Unavailable(message("steps.absent", step=wanted, recorded=recorded))
    return chosen
