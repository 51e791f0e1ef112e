"""The parts of a recording that advice depends on, and the phases that rules name for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TRAINING, LOG_PROBS, PREFILL, DECODE, MIXED, UNKNOWN = "training", "log_probs", "prefill", "decode", "mixed", "unknown"

PARTS: Final = (TRAINING, LOG_PROBS, PREFILL, DECODE, MIXED, UNKNOWN)
"""All that there are. ``log_probs``: forward passes of the software of training, without a loss to learn from;
``mixed``: passes that compute new sequences and next tokens together."""

PHASES: Final[Mapping[str, frozenset[str] | None]] = {
    TRAINING: frozenset({"training"}),
    LOG_PROBS: frozenset({"training"}),
    PREFILL: frozenset({"prefill"}),
    DECODE: frozenset({"decode"}),
    MIXED: frozenset({"prefill", "decode"}),
    UNKNOWN: None,
}
"""Part to the phases of rules that it can be, ``None`` for any. Log-probabilities run the model of training in its
software: advice on that holds, advice on an engine does not."""

KINDS: Final[Mapping[str, str | None]] = {
    TRAINING: "training",
    LOG_PROBS: "training",
    PREFILL: "inference",
    DECODE: "inference",
    MIXED: "inference",
    UNKNOWN: None,
}
"""Part to what rules read as ``profile.kind`` of a finding in it, ``None`` where that is not known."""

LEAST: Final = 0.1
"""Share of the time of a finding, or of a recording, from which a part counts; our choice: advice that leaves out the
others misses a tenth of it at most."""

TOLD: Final = 0.01
"""Share of the time of a finding, or of a recording, from which a part is told at all; our choice, as for findings."""


def place_name(part: str, phase: str) -> str:
    """``decode``; ``decode (generate)`` in a phase of reinforcement learning that is marked."""
    return f"{part} ({phase})" if phase else part


def place_of(name: str) -> tuple[str, str]:
    """Part and phase of a `place_name`; of any other text, that text and ''."""
    part, _, phase = name.partition(" (")
    return (part, phase.removesuffix(")")) if part in PARTS else (name, "")
