"""Build columns of text: codes while reading, categoricals at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import numpy.typing as npt

Codes: TypeAlias = "npt.NDArray[np.int32]"


class Interner(dict[str, int]):
    """Gives every distinct text a number, in the order of first appearance."""

    def __missing__(self, text: str) -> int:
        code = self[text] = len(self)
        return code

    def codes(self, texts: Sequence[Any]) -> Codes:
        """Codes of texts; None is '', and what is no text is taken as it prints."""
        try:
            return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))
        except TypeError:  # a list or an object where a text should be
            return np.fromiter((self[_text(text)] for text in texts), np.int32, len(texts))

    def categorical(self, codes: Codes, clean: Callable[[str], str] = str) -> pd.Categorical:
        """The texts of ``codes``, each distinct one cleaned once; only categories that occur."""
        texts = list(self)
        used = np.flatnonzero(np.bincount(codes, minlength=len(texts)))
        cleaned = Interner()
        lookup = np.zeros(max(len(texts), 1), np.int32)
        lookup[used] = cleaned.codes([clean(_text(texts[code])) for code in used.tolist()])
        # plain objects, as `TableSchema.conform` wants categories
        return pd.Categorical.from_codes(lookup[codes], categories=pd.Index(list(cleaned), dtype=object))


def _text(value: Any) -> str:
    if value is None:
        return ""
    # a lone surrogate (legal in JSON as an escape) cannot be stored or written as UTF-8
    return str(value).encode("utf-8", "replace").decode("utf-8")
