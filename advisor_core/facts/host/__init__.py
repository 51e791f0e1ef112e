"""Facts of the host: launches, calls, pauses."""
