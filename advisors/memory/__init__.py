"""Device memory: distance to its limit, fragmentation, leaks, unused memory, and buffers of communication."""

from __future__ import annotations

from advisors.memory import communication, fragmentation, growth, trend, usage

FACTS = (trend.memory_trend,)
ADVISORS = (usage.usage, fragmentation.fragmentation, growth.growth, communication.communication)
