"""Which phase of an iteration of reinforcement learning a name is about: of a mark in a trace, of a role's directory.

The names are those that verl and MindSpeed-RL give to the functions and roles that they mark: the worker methods of
verl (``generate_sequences``, ``compute_log_prob``, ``compute_ref_log_prob``, ``update_actor``), its newer role labels
(``actor_compute_log_prob``, ``ref_compute_log_prob``, ``actor_update``, ``train_batch``, ``async_rollout``), the timers
of its trainer (``gen``, ``ref``, ``adv`` ...) and the methods of MindSpeed-RL (``ActorRolloutHybrid.update_actor``,
``Reward.compute_rm_score``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BY_PART: Final = (
    ("ref_log_prob", ("ref_log_prob", "ref_compute_log_prob")),
    ("log_prob", ("compute_log_prob", "old_log_prob")),
    ("update_critic", ("update_critic", "critic_update")),
    ("update_actor", ("update_actor", "actor_update", "train_batch")),
    ("values", ("compute_values",)),
    ("reward", ("compute_rm_score", "reward")),
    ("advantage", ("compute_advantage",)),
    ("weight_sync", ("update_weights",)),
    ("checkpoint", ("save_checkpoint",)),
    ("rollout", ("generate_sequences", "async_rollout", "rollout_generate", "agent_loop_rollout")),
)
"""Phase and parts of names that stand for it; the first that occurs decides. ``ActorRolloutHybrid.update_actor`` shows
why ``rollout`` alone is no such part."""

_BY_NAME: Final = {
    "gen": "rollout",
    "rollout": "rollout",
    "ref": "ref_log_prob",
    "adv": "advantage",
    "values": "values",
    "testing": "validation",
}
"""Names too short to look for within others."""

PHASES: Final = (*dict.fromkeys(name for name, _ in _BY_PART), "validation")
"""The known phases."""

Aliases = Sequence[tuple[str, str]]
"""Part of a name, and the phase that the user says it stands for."""


def phase_of(name: str, aliases: Aliases = ()) -> str:
    """The phase that ``name`` is about, '' for none; case does not matter. The user's ``aliases`` come first."""
    lower = name.strip().lower()
    for part, phase in aliases:
        if part.lower() in lower:
            return phase
    for phase, parts in _BY_PART:
        if any(part in lower for part in parts):
            return phase
    return _BY_NAME.get(lower, "")
