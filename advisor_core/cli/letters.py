"""Letters that the encoding of a console lacks: a plain one in their place, so that a number keeps its meaning (``us``
for microseconds and not ``?s``), and never an error in the middle of an answer."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Mapping

from advisor_core.cli.console import tell

PLAIN: Mapping[str, str] = {
    **dict.fromkeys("\u2013\u2014\u2212\u2591", "-"),
    **dict.fromkeys("\u00b7\u3002", "."),
    **dict.fromkeys("\u00b5\u03bc", "u"),
    **dict.fromkeys("\u201c\u201d", '"'),
    **dict.fromkeys("\u2018\u2019", "'"),
    **dict.fromkeys("\u00a0\u2003", " "),
    **dict.fromkeys("\uff0c\u3001", ","),
    "\u2588": "#",
    "\u2592": "=",
    "\u203a": ">",
    "\u2192": "->",
    "\u2026": "...",
    "\u00d7": "x",
    "\u00b1": "+-",
    "\u2264": "<=",
    "\u2265": ">=",
    "\uff08": "(",
    "\uff09": ")",
    "\uff1a": ":",
    "\uff1b": ";",
    "\uff01": "!",
}
"""Letters of our texts and drawings, and what stands for them; any other letter becomes a question mark."""

_HANDLER = "npu-advisor-plain"


def plain_letters(error: UnicodeError) -> tuple[str, int]:
    """The handler of encoding errors: what stands for the letters that cannot be encoded. Raises other errors."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


def accept_any_console() -> None:
    """Make stdout and stderr write what they are given, in whatever encoding they have."""
    codecs.register_error(_HANDLER, plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def warn_of_lost_letters(lang: str) -> None:
    """Say so where an answer is Chinese and the encoding of stdout is not."""
    encoding = sys.stdout.encoding or "ascii"
    if lang == "zh" and not _can_write("\u4e2d\u6587", encoding):
        tell(f"warning: the encoding of this console, {encoding}, has no Chinese: set PYTHONIOENCODING=utf-8")


def _can_write(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
