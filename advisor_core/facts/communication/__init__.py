"""Facts of collectives."""
