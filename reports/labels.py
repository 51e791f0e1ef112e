"""Labels in both languages of a report, and formatting of values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from advisor_core.api import Scalar, Text, packaged_yaml
from advisor_core.api.renderers import Advice, LedgerWindow, RunResult, countable, format_quantity

_WAIT_RANK = re.compile(r"^(?P<family>.+/(group )?rank)[ _](?P<n>\d+)$")
_VAGUE = {"unknown", "other"}
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")

LANGUAGES = ("en", "zh")


def visible(text: str) -> str:
    """``text`` without characters that cannot be seen or that steer a terminal or the direction of writing.

    A kernel name may hold escape sequences, bidirectional overrides or halves of surrogate pairs; each becomes U+FFFD.
    """
    if text.isprintable():  # nearly always, and told much faster than by a search
        return text
    return _INVISIBLE.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """``text`` on one line, with what is invisible made visible."""
    if text.isprintable():  # the space is its only white space
        return text if "  " not in text and text.strip(" ") == text else " ".join(text.split())
    return " ".join(visible(text.replace("\t", " ")).split())


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters of ``text``, cut in the middle: names often differ at their end."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def prettify(part: str) -> str:
    """A name that no locale knows, made readable: ``host_copy`` to ``host copy``."""
    return part.replace("_", " ").replace("-", " ").strip() or "?"


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Every label: key to language to text."""
    loaded: dict[str, dict[str, str]] = packaged_yaml("reports", "locale.yaml")
    return loaded


_TIMES = (("s", 10**9), ("ms", 10**6), ("µs", 10**3))


@dataclass(frozen=True)
class TimeColumn:
    """A unit and a number of decimals that a whole table column shares."""

    unit: str
    factor: int
    decimals: int

    def __call__(self, ns: int) -> str:
        return f"{ns / self.factor:,.{self.decimals}f}"


class Labels:
    """The labels of one language. Calling it with an unknown key is an error, never an empty label."""

    def __init__(self, lang: str, added: Mapping[str, Text] | None = None, window: LedgerWindow = "step") -> None:
        """``added``: headings of the columns that the result shows and labels of plugins, from the result; ``window``:
        what its ledger is of, which labels call ``{unit}``."""
        self.lang = "zh" if lang == "zh" else "en"
        self.added = added or {}
        keys = {"unit": f"unit.{window}", "units": f"units.{window}", "counted": f"counted.{window}"}
        words = {form: catalogue()[key][self.lang] for form, key in keys.items()}
        words |= {form.capitalize(): word.capitalize() for form, word in words.items()}
        self._units = {f"{{{form}}}": word for form, word in words.items()}
        self._said: dict[str, str] = {}

    @classmethod
    def of_result(cls, result: RunResult, lang: str) -> Labels:
        """The labels of a report on ``result``."""
        return cls(lang, result.labels, result.profile.window)

    def __call__(self, key: str, **values: object) -> str:
        """The label ``key``, its fields filled; ``{count:row is|rows are}`` chooses the form that fits a number."""
        text = self._said.get(key)
        if text is None:
            text = self._said[key] = self._with_units(key)
        return text.format(**{name: countable(value) for name, value in values.items()}) if values else text

    def _with_units(self, key: str) -> str:
        """The label ``key`` with what the ledger is of, its other fields not filled."""
        added = self.added.get(key)
        text = added.of(self.lang) if added is not None else catalogue()[key][self.lang]
        for field, word in self._units.items():
            text = text.replace(field, word)
        return text

    def __contains__(self, key: str) -> bool:
        return key in catalogue() or key in self.added

    def hazards(self, advice: Advice) -> str:
        """What following the advice can do to the job; empty for safe advice."""
        return self("word.comma").join(self(f"hazard.{hazard}") for hazard in advice.hazards)

    def of(self, text: Text) -> str:
        """The text of the result in this language."""
        return text.of(self.lang)

    def either(self, text: str | Text) -> str:
        """What a view calls something: a name, or what it is in both languages."""
        return self.of(text) if isinstance(text, Text) else text

    def join(self, items: list[str]) -> str:
        return self("word.comma").join(items)

    def name(self, name: str) -> str:
        """The heading of a column: as it is declared, else its name made readable."""
        return self(f"heading.{name}") if f"heading.{name}" in self else prettify(one_line(name))

    # --- ledger paths

    def path(self, path: str) -> str:
        """The label of the last part of a ledger path; what is unknown is prettified."""
        if f"path.{path}" in self:
            return self(f"path.{path}")
        if (match := _WAIT_RANK.match(path)) and f"path.{match['family']}" in self:
            return self(f"path.{match['family']}", n=match["n"])
        return prettify(one_line(path.rpartition("/")[2]))

    def trail(self, path: str) -> str:
        """The label of a ledger path read on its own, without the tree around it."""
        parent, _, last = path.rpartition("/")
        if f"trail.{parent}" in self:
            return self(f"trail.{parent}", part=self.path(path))
        if parent and last in _VAGUE:
            return self("trail.vague", **{"class": self.path(path.partition("/")[0]), "part": self.path(path)})
        return self.path(path)

    # --- values

    def quantity(self, value: Scalar, unit: str = "") -> str:
        """A value with its unit; what is not recorded or not finite reads as unknown."""
        return one_line(format_quantity(value, unit, self.lang))

    def column(self, largest_ns: int) -> TimeColumn:
        """How the times of one table column are written, so that they compare at a glance: one unit, one precision."""
        unit, factor = next(((unit, factor) for unit, factor in _TIMES if largest_ns >= factor), ("ns", 1))
        digits = len(str(largest_ns // factor))
        return TimeColumn(unit, factor, 0 if factor == 1 else max(1, 5 - digits))

    def wall(self, ns: int) -> str:
        """The time of a step, to four digits: it is what a reader compares with the exporter's own files."""
        for unit, factor in _TIMES:
            if ns >= factor:
                amount = ns / factor
                return f"{amount:,.{max(0, 4 - len(str(int(amount))))}f} {unit}"
        return f"{ns} ns"

    def time(self, ns: float) -> str:
        return self.quantity(round(ns), "ns")

    def share(self, ratio: float) -> str:
        return self.quantity(float(ratio), "ratio")


def is_number(value: Any) -> bool:
    """Whether a value is set flush right: a number, and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
