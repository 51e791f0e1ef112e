"""``report.json``: the whole result, by contract 2. The same result gives the same bytes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from advisor_core.api.renderers import ComparisonResult, RunResult


@dataclass(frozen=True)
class JsonRenderer:
    """Writes everything; with ``timings`` false what varies between two runs on the same input is left out."""

    timings: bool = True
    name: str = "json"
    filename: str = "report.json"

    def render(self, result: RunResult, lang: str) -> str:
        """The language makes no difference: texts are there in both."""
        return _written(result.model_dump(mode="json", exclude=None if self.timings else {"timings"}))

    def render_comparison(self, result: ComparisonResult, lang: str) -> str:
        """A comparison of runs; the language makes no difference."""
        return _written(result.model_dump(mode="json"))


def _written(data: dict[str, Any]) -> str:
    try:
        compact = _compact(data)
        compact.encode("utf-8")
    except ValueError:  # NaN, or half of a surrogate pair: rare, and to look at each value takes as long as the rest
        compact = _compact(_portable(data))
    return msgspec.json.format(compact, indent=1) + "\n"


def _compact(data: Any) -> str:
    # Python's encoder writes indented text an object at a time, ten times as slowly as compact text.
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _portable(value: Any) -> Any:
    """``value`` with nothing that other readers of JSON refuse: no NaN or infinity, no half of a surrogate pair."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case str():
            return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
        case dict():
            return {_portable(key): _portable(item) for key, item in value.items()}
        case list():
            return [_portable(item) for item in value]
    return value
