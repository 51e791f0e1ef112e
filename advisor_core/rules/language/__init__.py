"""The language of conditions and texts."""
