"""Words about differences that several sections use."""

from __future__ import annotations

from advisor_core.api.renderers import Comparison, Verdict
from reports.labels import Labels

MINUS = "\u2212"


def signed(ns: int, t: Labels) -> str:
    """A difference of times."""
    return f"{sign(ns)}{t.time(abs(ns))}"


def signed_share(ratio: float, t: Labels) -> str:
    """A relative difference."""
    return f"{sign(round(ratio, 3))}{t.share(abs(ratio))}"


def sign(value: float) -> str:
    """The sign of a difference; that of none is of both kinds."""
    return "+" if value > 0 else MINUS if value < 0 else "±"


def calls(before: float, after: float, t: Labels) -> str:
    """Calls in a step, before and after."""
    old, new = number(before), number(after)
    return old if old == new else t("compare.calls", before=old, after=new)


def number(count: float) -> str:
    """A number of calls per step, which need not be whole."""
    return f"{count:,.0f}" if count == round(count) else f"{count:,.1f}"


def sentence(comparison: Comparison, t: Labels) -> str:
    """The verdict in one sentence."""
    verdict = comparison.verdict
    before, after = t.wall(verdict.before_ns), t.wall(verdict.after_ns)
    is_same = any(obstacle.about == "same_recording" for obstacle in comparison.obstacles)
    if is_same and not verdict.difference_ns:  # another step of it can have been chosen
        return t("compare.verdict.same", before=before)
    reason = "" if verdict.reason is None else t.of(verdict.reason)
    if verdict.outcome == "not_comparable":
        return t("compare.verdict.not_comparable", reason=reason, before=before, after=after)
    if verdict.outcome == "across_vendors" and reason:
        return t("compare.verdict.other_windows", reason=reason, before=before, after=after)
    change = t("compare.change", before=before, after=after, share=signed_share(verdict.ratio, t))
    if verdict.outcome == "across_vendors":
        return t("compare.verdict.across_vendors", change=change) + _beside(comparison, t)
    if verdict.interval is None:
        return t("compare.verdict.cannot_tell", change=change, reason=reason)
    low, high = (signed_share(ratio, t) for ratio in verdict.interval)
    return t(f"compare.verdict.{verdict.outcome}", change=change, low=low, high=high)


def _beside(comparison: Comparison, t: Labels) -> str:
    """What has to stand beside the times of two devices: whether they do the same work, and the times for as much of
    it where they do not."""
    told = comparison.amounts
    if told is None or told.same is None:
        return t("compare.verdict.work_unknown")
    if told.same:
        return t("compare.verdict.same_work")
    pairs = [
        t("compare.verdict.per_sample", what=t(f"compare.sample.{what}"), before=t.time(one), after=t.time(other))
        for what, (one, other) in told.ns_per_sample.items()
    ]
    if not pairs and told.ns_per_tflop is not None:
        before, after = (t.time(ns) for ns in told.ns_per_tflop)
        pairs = [t("compare.verdict.per_tflop", before=before, after=after)]
    return t("compare.verdict.other_work") + "".join(f"{t('word.clause')}{pair}" for pair in pairs)


def method(verdict: Verdict, t: Labels) -> str:
    """The method of the interval, and its limits; empty where there is none."""
    if verdict.interval is None:
        return ""
    before, after = verdict.steps
    told = t(f"compare.method.{verdict.method}", before=before, after=after)
    return " ".join((told, t("compare.method.caution"))) if t.lang == "en" else told + t("compare.method.caution")
