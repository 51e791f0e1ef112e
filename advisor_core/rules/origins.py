"""Where options about rules were given: on the command line, or in a settings file with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SELECT, IGNORE, SET = "--select", "--ignore", "--set"


@dataclass(frozen=True)
class Origins:
    """``select`` and ``ignore``: the option, or the place of the key in a settings file (``advisor.toml:12``).
    ``reasons``: of rules that a settings file selects or ignores, by name as given there: place and reason, which may
    be empty. ``settings``: the places of thresholds that a settings file gives, by ``ID.param``."""

    select: str = SELECT
    ignore: str = IGNORE
    reasons: tuple[tuple[str, tuple[str, str]], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def reason(self, names: Iterable[str]) -> tuple[str, str]:
        """Place of the first name that a settings file gives, and the reasons of all; empty for what it does not."""
        known = dict(self.reasons)
        given = [known[name] for name in names if name in known]
        return (given[0][0] if given else "", "; ".join(dict.fromkeys(why for _, why in given if why)))

    def of_setting(self, key: str) -> str:
        """Where the threshold was given: the option or the place in a file."""
        return dict(self.settings).get(key, SET)
