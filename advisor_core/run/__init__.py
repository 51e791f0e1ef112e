"""The order of a run, from the ranks on disk to one result."""
