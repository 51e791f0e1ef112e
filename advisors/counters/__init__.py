"""Tables of what was counted beside the times of kernels: by operator type, and over time."""
