"""The verdict: slower, faster, within the noise of the steps, or not to be told."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.compare.comparability import is_whole
from advisor_core.compare.match import Match
from advisor_core.compare.noise import Noise, noise
from advisor_core.result.comparison import Obstacle, Outcome, Verdict
from advisor_core.text.base import Text
from advisor_core.text.messages import message
from advisor_core.text.units import format_quantity


def verdict(match: Match, obstacles: Sequence[Obstacle]) -> Verdict:
    """The steps of both sides against one another, unless an obstacle spoils that."""
    before, after = (side.mean.wall_ns for side in (match.before, match.after))
    sides = match.before.durations, match.after.durations
    told = Noise("none", None) if before <= 0 or any((steps <= 0).any() for steps in sides) else noise(*sides)
    spoilt = [obstacle for obstacle in obstacles if "verdict" in obstacle.spoils]
    outcome, reason = _outcome(told, [len(steps) for steps in sides])
    if spoilt:
        told, outcome, reason = Noise("none", None), "not_comparable", spoilt[0].text
    if match.across_vendors and not match.of_baseline and not any(is_whole(one) for one in spoilt):
        # Two devices are no regression; a step that is none on one side is said with both times.
        outcome, reason = "across_vendors", next((one.text for one in spoilt if "causes" in one.spoils), None)
    return Verdict(
        outcome=outcome,
        before_ns=before,
        after_ns=after,
        difference_ns=after - before,
        ratio=(after - before) / before if before > 0 else 0.0,
        interval=told.interval,
        method=told.method,
        steps=(len(sides[0]), len(sides[1])),
        reason=reason,
    )


def _outcome(told: Noise, steps: Sequence[int]) -> tuple[Outcome, Text | None]:
    if told.interval is not None:
        low, high = told.interval
        return ("slower" if low > 0 else "faster" if high < 0 else "within_noise"), None
    if min(steps) == 0:
        return "cannot_tell", message("compare.no_series")
    if min(steps) == 1:
        return "cannot_tell", message("compare.one_step")
    if told.method == "none":
        return "cannot_tell", message("compare.no_time")
    chance = {lang: format_quantity(told.least, "ratio", lang) for lang in ("en", "zh")}
    return "cannot_tell", message("compare.few_steps", chance=Text(**chance))
