"""Phases of an iteration of reinforcement learning: what each leaves of the device unused, and how evenly the ranks
share its work.

A phase is a role that was profiled by itself, or what marks in the trace name (facts ``phases`` and ``phase_ledger``).
"""

from __future__ import annotations

from advisors.rl import balance, idle, launches

ADVISORS = (idle.idle, balance.balance, launches.rollout_launches)
