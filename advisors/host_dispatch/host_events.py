"""Names and places of host events, and the settings that were recorded."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Setting
from advisor_core.api.facts import Profile
from advisors.messages import message


def names_of(events: pd.DataFrame, rows: pd.Series) -> np.ndarray:
    """Names of host events; '(unknown)' for row -1."""
    numbers = rows.to_numpy()
    if not len(events):
        return np.full(len(numbers), "(unknown)", dtype=object)
    names = events["name"].iloc[np.maximum(numbers, 0)].astype(str).to_numpy()
    return np.where(numbers >= 0, names, "(unknown)").astype(object)


def recorded_variable(profile: Profile, name: str) -> Setting:
    file = profile.setting_files.get("variables", "")
    return Setting(message("host_dispatch.setting"), name, profile.variables.get(name), file)
