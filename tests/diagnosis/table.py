"""The outcome as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.diagnosis.abstention import Loss
from tests.diagnosis.diagnosis import CauseOutcome, Outcome, Prediction
from tests.diagnosis.markdown import percent, table
from tests.diagnosis.scores import CauseScore, Totals, by_cause, total

COMMAND = "make diagnosis"

_HEAD = f"""\
# Does it find what is wrong?

    {COMMAND}

writes this page. A simulated job has known causes of lost time. What a cause costs is measured by simulating the same
job, with the same seed, without it; no rule is involved. The advisor then reads the export of the job and is held
against that.

- *Found*: of the causes that cost at least 3 % of the step, those that a finding names, on the right rank and operator.
  Risks (a leak, fragmentation, memory near the limit) must be found whatever they cost.
- *Precision*: causes found at medium or high severity, over those and the serious findings that name no cause of the
  job and are no symptom of one.
- *First*: the first finding, or the first cause below it where it is a symptom, names the largest cause.
- *Promise kept*: what the rule measured by itself is within 20 % of what the cure saves (measured, estimate), or not
  below it (upper bound). Error: measured less saved, over saved. *By what is claimed*: the same of the time at stake
  that a report shows. It is less where findings share time, as every nanosecond is claimed once, while each cure here
  is measured with the other causes left in place.

The simulator takes durations from published figures and real profiles, not from thresholds of rules; what is assumed
for want of a source says so in `advisor_core/sample`. It is a model all the same: these figures say how the rules do on
jobs of its kind, not on yours.
"""


_PARTS = {
    "catalogue": "The scenarios of `advisor sample`, with which the rules were developed.\n",
    "other sizes": "Other sizes, seeds and rank counts. Held out once, and seen since: rules were mended after it.\n",
    "held out": """\
Other sizes, seeds, models and rank counts again; a check of how far the figures carry over. Its first run, of
which nothing had been seen, found 38 of 38, named the largest cause first in 34 of 36, had a precision of 82 %
with 2 alarms on 9 healthy jobs, and kept 31 of 38 promises. After it a job that was not as healthy as labelled
was replaced, three expectations were completed (a slow host shows in a marked rollout; ranks wait for a slow
reward), the simulator now reduces all gradients before the optimizer, and SA001 is replayed.
""",
}
"""What is said of each part of the grid."""


def document(parts: Mapping[str, Sequence[Outcome]], lost: Sequence[Loss]) -> str:
    """The whole page; ``parts``: outcomes by part of the grid."""
    every = [outcome for outcomes in parts.values() for outcome in outcomes]
    page = [_HEAD, "## In short\n", _totals([(name, total(outcomes)) for name, outcomes in parts.items()])]
    for name, outcomes in parts.items():
        page += [f"## By cause, {name}\n", _PARTS[name], _causes(by_cause(outcomes))]
    page += ["## Shortfalls\n", _shortfalls(every), "## By scenario\n", _scenarios(every)]
    page += ["## Without some of the data\n", _lost(lost)]
    return "\n".join(page)


def _totals(rows: Sequence[tuple[str, Totals]]) -> str:
    head = (
        "part", "causes", "found", "precision", "first", "promises kept", "by what is claimed",
        "median error, measured and estimates", "healthy jobs", "alarms on them",
    )  # fmt: skip
    return table(
        head,
        [
            (
                name,
                t.causes,
                f"{t.found} ({percent(t.recall)})",
                percent(t.precision),
                f"{t.ranked} of {t.rankable}",
                f"{t.kept} of {len(t.predictions)}",
                f"{t.claims_kept} of {len(t.predictions)}",
                percent(t.median_error("exact", "estimate")),
                t.healthy,
                t.healthy_alarms,
            )
            for name, t in rows
        ],
    )


def _error(prediction: Prediction) -> str:
    word = {"exact": "measured", "estimate": "estimate", "upper_bound": "upper bound"}[prediction.basis]
    return f"{100 * prediction.error:+.0f} % ({word})"


def _causes(scores: Sequence[CauseScore]) -> str:
    head = ("cause", "present", "found", "at medium or high", "first, where largest", "promises kept", "errors")
    rows = [
        (
            score.cause,
            score.present,
            score.found,
            score.serious,
            f"{score.firsts[0]} of {score.firsts[1]}",
            f"{score.kept} of {len(score.predictions)}",
            ", ".join(map(_error, score.predictions)) or "-",
        )
        for score in scores
        if score.present
    ]
    quiet = [score.cause for score in scores if not score.present]
    note = f"\nBelow 3 % of the step wherever simulated: {', '.join(quiet)}.\n" if quiet else ""
    return table(head, rows) + note


def _worth(cause: CauseOutcome) -> str:
    return "a risk" if cause.risk else f"{percent(cause.share)} of the step"


def _saved(cause: CauseOutcome) -> str:
    return "(risk)" if cause.risk else f"{cause.saved_ns / 1e6:.2f} ms ({percent(cause.share)})"


def _shortfalls(outcomes: Sequence[Outcome]) -> str:
    lines = []
    for outcome in outcomes:
        for cause in outcome.causes:
            if cause.rule is None:
                lines.append(f"- `{outcome.scenario}`: {cause.cause} ({_worth(cause)}) is not found.")
            elif cause.severity == "low":
                lines.append(f"- `{outcome.scenario}`: {cause.cause} ({_worth(cause)}) is found, at low severity.")
            if cause.prediction is not None and not cause.prediction.kept:
                lines.append(
                    f"- `{outcome.scenario}`: {cause.rule} on {cause.cause} is off by {_error(cause.prediction)}."
                )
        if outcome.ranked is False:
            lines.append(f"- `{outcome.scenario}`: {outcome.first} comes first, not {outcome.causes[0].cause}.")
        lines += [f"- `{outcome.scenario}`: false finding {rule}: {title}." for rule, title in outcome.false_findings]
    return "\n".join(lines) + "\n" if lines else "None.\n"


def _scenarios(outcomes: Sequence[Outcome]) -> str:
    head = ("scenario", "step", "causes: saved by the cure, named by", "first", "false findings")
    return table(
        head,
        [
            (
                outcome.scenario,
                f"{outcome.step_ns / 1e6:.1f} ms",
                "; ".join(f"{c.cause} {_saved(c)} {c.rule or '-'}" for c in (*outcome.causes, *outcome.small))
                or "none",
                outcome.first or "-",
                ", ".join(rule for rule, _ in outcome.false_findings) or "-",
            )
            for outcome in outcomes
        ],
    )


def _lost(lost: Sequence[Loss]) -> str:
    intro = (
        "Each file left out in turn, and other profiler levels. *Appeared*: serious findings that the whole profile "
        "does not give and no cause explains. *Silent*: rules that had a finding and now say that all is in order. "
        "*Asked*: rules that had a finding and now say what they need.\n"
    )
    head = ("scenario", "data", "appeared", "silent", "asked", "error")
    rows = [
        (
            loss.scenario,
            loss.missing,
            ", ".join(loss.appeared) or "-",
            ", ".join(loss.kept_quiet) or "-",
            len(loss.asked),
            loss.error or "-",
        )
        for loss in lost
    ]
    honest = sum(loss.honest for loss in lost)
    return intro + f"\n{honest} of {len(lost)} without fault.\n\n" + table(head, rows)
