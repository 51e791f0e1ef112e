"""Facts that book every nanosecond of a step."""
