"""Facts of the replay: the dependency graph of a rank, and what a step would take after a change."""
