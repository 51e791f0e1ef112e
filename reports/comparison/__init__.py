"""Sections of the document about a comparison of runs."""
