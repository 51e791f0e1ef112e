"""Operator types as sequences of words, so that a word is never found within another.

``DSARandomNormal`` is the words dsa, random, normal: it has no word ``norm``. Libraries do not agree where a word ends
(``MatMulV3``, ``GroupedMatmul``): words that stand side by side count together, so that ``matmul`` is in both.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

BEGIN: Final = "^"
END: Final = "$"
"""Before or after the words of a pattern: they must be the first or the last of the type."""

_VERSION: Final = re.compile(r"V\d+$")
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|\d+[dD]?(?![a-z])|\d+|[A-Z]?[a-z]+|[A-Z]+")


def words(operator: str) -> tuple[str, ...]:
    """The words of an operator type, in small letters, without the prefix of the API and without the version.

    >>> words("aclnnMatMulV3"), words("BNTrainingReduce"), words("Conv2DBackpropFilter")
    (('mat', 'mul'), ('bn', 'training', 'reduce'), ('conv', '2d', 'backprop', 'filter'))
    """
    bare = operator.removeprefix("aclnn").removeprefix("trans_")
    return tuple(word.lower() for word in _WORD.findall(_VERSION.sub("", bare)))


@cache
def runs(operator: str, longest: int | None = None) -> frozenset[str]:
    """All that stands side by side in a type: each sequence of its words without gaps, also marked with `BEGIN` or
    `END` where it is the first or the last. ``longest``: of sequences of more characters only those are told of which
    the last word goes beyond it; names of templates have so many words that all their sequences are far too many.

    >>> sorted(runs("RmsNorm"))
    ['^rms', '^rmsnorm', '^rmsnorm$', 'norm', 'norm$', 'rms', 'rmsnorm', 'rmsnorm$']
    """
    found = words(operator)
    count = len(found)
    texts = set()
    for first in range(count):
        text = ""
        for last in range(first + 1, count + 1):
            if longest is not None and len(text) > longest:
                break
            text += found[last - 1]
            begins, ends = BEGIN if first == 0 else "", END if last == count else ""
            texts |= {text, begins + text, text + ends, begins + text + ends}
    return frozenset(texts)


def pattern(text: str) -> str:
    """A sequence of words as `runs` has it: ``^real div`` is ``^realdiv``. Raises `ValueError` for what no type has."""
    plain = "".join(text.split()).lower()
    if not re.fullmatch(r"\^?[a-z0-9]+\$?", plain):
        raise ValueError(f"{text!r} is not a sequence of words, with ^ before or $ after it")
    return plain
