"""Doubt where files of one recording disagree: what each says in total, which is doubted, and what hangs on it."""
