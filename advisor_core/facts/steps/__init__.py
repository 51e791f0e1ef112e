"""Facts of the steps of a rank: windows, the time line, phases."""
