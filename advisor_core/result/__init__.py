"""The result of a run: what report.json holds."""
