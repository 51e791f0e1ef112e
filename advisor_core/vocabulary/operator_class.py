"""Which class of work a kernel belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from advisor_core.text.packaged import packaged_yaml
from advisor_core.vocabulary.words import pattern, runs

OTHER = "other"
AI_CPU = "aicpu"


@dataclass(frozen=True)
class _Class:
    """``having``: words that make a type one of the class; ``without``: words that keep it from being one."""

    name: str
    having: frozenset[str]
    without: frozenset[str]

    def has(self, operator: str) -> bool:
        found = runs(operator)
        return not found.isdisjoint(self.having) and found.isdisjoint(self.without)


@cache
def _classes() -> tuple[_Class, ...]:
    loaded: dict[str, list[str]] = packaged_yaml("advisor_core.vocabulary", "operator_classes.yaml")
    return tuple(
        _Class(
            name,
            frozenset(pattern(text) for text in texts if not text.startswith("!")),
            frozenset(pattern(text[1:]) for text in texts if text.startswith("!")),
        )
        for name, texts in loaded.items()
    )


@cache
def classes() -> tuple[str, ...]:
    """All classes, in the order in which they take shared time: those of the file, then AI CPU, then other."""
    return (*(known.name for known in _classes()), AI_CPU, OTHER)


@cache
def class_of(operator: str) -> str:
    """The class of an operator type or, where no type is recorded, of a kernel name.

    >>> class_of("FlashAttentionScoreGrad"), class_of("MatMulV3"), class_of("TransData"), class_of("Nonsense")
    ('attention', 'matmul', 'format_conversion', 'other')
    """
    return next((known.name for known in _classes() if known.has(operator)), OTHER)


def classify(types: pd.Series, names: pd.Series, cores: pd.Series) -> pd.Series:
    """Class per kernel (categorical, categories = `classes`). Every distinct name is looked up once."""
    by_type = types.cat.codes.to_numpy()
    type_class = np.array([_index(class_of(str(t))) if t else -1 for t in types.cat.categories], dtype=np.int64)
    name_class = np.array([_index(class_of(kernel_type(str(n)))) for n in names.cat.categories], dtype=np.int64)
    chosen = type_class[by_type] if len(type_class) else np.full(len(types), -1)
    chosen = np.where((by_type < 0) | (chosen < 0), name_class[names.cat.codes.to_numpy()], chosen)
    chosen = np.where(cores.to_numpy() == "AI_CPU", _index(AI_CPU), chosen)
    return pd.Series(pd.Categorical.from_codes(chosen, categories=pd.Index(classes())), index=types.index)


def _index(name: str) -> int:
    return classes().index(name)


_NAME = re.compile(r"^(?:aclnn\w+?_)?(?:trans_)?([A-Za-z][A-Za-z0-9]*?)(?:_?\d+)?$")


def kernel_type(name: str) -> str:
    """The operator type that a kernel's name ends in, for exports that record no type.

    >>> kernel_type("trans_TransData_0"), kernel_type("aclnnMuls_MulAiCore_Mul"), kernel_type("Conv2D1")
    ('TransData', 'Mul', 'Conv2D')
    """
    if name.startswith("aclnn"):
        return name.rsplit("_", 1)[-1] or name
    match = _NAME.match(name)
    return match.group(1) if match else name
