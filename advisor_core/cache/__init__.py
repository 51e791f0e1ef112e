"""Ranks as they were read, kept in the cache directory of the user and mapped into memory the next time."""
