"""Texts in two languages, and numbers with their units."""
