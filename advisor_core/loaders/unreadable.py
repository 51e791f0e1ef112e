"""The sign of a file that could not be read, which may be otherwise the next time though nothing of it changes."""

from __future__ import annotations

from advisor_core.text.messages import message


def tells_unreadable(text: str) -> bool:
    """True where an English text says of a file that it could not be read."""
    return message("loader.unreadable", file="\0", why="\0").en.split("\0")[1] in text
