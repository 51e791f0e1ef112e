"""Readers of the formats that exports are written in."""
