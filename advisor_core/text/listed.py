"""Several texts as one."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.text.base import Text


def listed(texts: Sequence[Text], joint: str = ", ") -> Text:
    """The texts one after the other, in both languages. ``joint``: stands between them in English."""
    return Text(en=joint.join(text.en for text in texts), zh="、".join(text.zh for text in texts))
