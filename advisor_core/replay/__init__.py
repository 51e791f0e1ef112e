"""The replay: a dependency graph of what was recorded, and when everything would have happened after a change."""
