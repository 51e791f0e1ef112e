"""Comparing results: pure functions of `RunResult`, which open no profile."""
