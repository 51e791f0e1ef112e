"""Records the operators of public model code, which the simulator then runs (``make recordings``)."""
