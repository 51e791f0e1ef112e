"""Assign kernels to classes of work, by the words of their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from advisor_core.text.base import Text
from advisor_core.vocabulary.words import pattern, runs

OTHER: Final = "other"
AI_CPU: Final = "aicpu"
WITHOUT: Final = "!"
"""Before words that keep a type from being of a class."""

_CLASS: Final = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class OperatorWords:
    """Words of one's own kernels, and the class that they belong to. They come before those of the vendor.

    ``name``: of this entry, such as ``hello.kernels``. ``operator_class``: an existing class, or a new one, which gets
    the leaf ``compute/CLASS`` of the ledger and then needs a ``label``. ``words``: as in the files of vendors:
    sequences of whole words, ``^`` before those that begin a type, ``$`` after those that end it, ``!`` before those
    that keep a type out.
    """

    name: str
    operator_class: str
    words: tuple[str, ...]
    label: Text | None = None

    def __post_init__(self) -> None:
        if not _CLASS.fullmatch(self.operator_class):
            raise ValueError(f"{self.operator_class!r} is not a name of a class: small letters, digits and _")
        if not self.words:
            raise ValueError(f"{self.name}: no words")
        for text in self.words:
            pattern(text.removeprefix(WITHOUT))


@dataclass(frozen=True)
class _Entry:
    operator_class: str
    having: frozenset[str]
    without: frozenset[str]

    def has(self, found: frozenset[str]) -> bool:
        return not found.isdisjoint(self.having) and found.isdisjoint(self.without)


def _entry(operator_class: str, words: Iterable[str]) -> _Entry:
    texts = tuple(words)
    return _Entry(
        operator_class,
        frozenset(pattern(text) for text in texts if not text.startswith(WITHOUT)),
        frozenset(pattern(text.removeprefix(WITHOUT)) for text in texts if text.startswith(WITHOUT)),
    )


@dataclass(frozen=True)
class OperatorClasses:
    """``names``: all classes, in the order in which they take time that several kernels share; AI CPU and other are the
    last."""

    names: tuple[str, ...] = (AI_CPU, OTHER)
    entries: tuple[_Entry, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, words: Mapping[str, Iterable[str]]) -> OperatorClasses:
        """From classes and their words. Raises `ValueError` for what are no words."""
        return cls((*words, AI_CPU, OTHER), tuple(_entry(name, texts) for name, texts in words.items()))

    def adding(self, own: Iterable[OperatorWords]) -> OperatorClasses:
        """With the words of plugins before these, and their new classes after them."""
        own = tuple(own)
        new = dict.fromkeys(words.operator_class for words in own if words.operator_class not in self.names)
        entries = tuple(_entry(words.operator_class, words.words) for words in own)
        return OperatorClasses((*self.names[:-2], *new, AI_CPU, OTHER), (*entries, *self.entries))

    def class_of(self, operator: str) -> str:
        """The class of an operator type or, where no type is recorded, of a kernel name.

        >>> classes = OperatorClasses.of({"attention": ["flash attention"], "matmul": ["matmul"]})
        >>> classes.class_of("FlashAttentionScoreGrad"), classes.class_of("MatMulV3"), classes.class_of("Nonsense")
        ('attention', 'matmul', 'other')
        """
        return _class_of(self.entries, operator)


@cache
def _class_of(entries: tuple[_Entry, ...], operator: str) -> str:
    found = runs(operator, _longest(entries))
    return next((entry.operator_class for entry in entries if entry.has(found)), OTHER)


@cache
def _longest(entries: tuple[_Entry, ...]) -> int:
    return max((len(word) for entry in entries for word in entry.having | entry.without), default=0)


_NAME: Final = re.compile(r"^(?:trans_)?([A-Za-z][A-Za-z0-9]*?(?:V[1-9])?)(?:_?\d+)?$")
"""The number of a node stands behind the type, also behind that of a version: ``LpNormUpdateV2159`` is the node 159."""


def kernel_type(name: str) -> str:
    """The operator type that a kernel's name ends in, for exports that record no type.

    >>> kernel_type("trans_TransData_0"), kernel_type("aclnnMuls_MulAiCore_Mul"), kernel_type("Conv2D1")
    ('TransData', 'Mul', 'Conv2D')
    >>> kernel_type("LpNormUpdateV2159"), kernel_type("Conv2DBackpropFilter6_MemSet")
    ('LpNormUpdateV2', 'MemSet')
    """
    if name.startswith("aclnn"):
        return name.rsplit("_", 1)[-1] or name
    if name.endswith("_MemSet") or name.startswith("atomic_memset"):  # what an operator clears before it adds to it
        return "MemSet"
    match = _NAME.match(name)
    return match.group(1) if match else name
