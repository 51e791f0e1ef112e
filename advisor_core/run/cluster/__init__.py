"""The ranks of a job on the workers of a Dask cluster: `client` asks, `on_worker` answers, `sameness` is what all
machines must have in common."""
