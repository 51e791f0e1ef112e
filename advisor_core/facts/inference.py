"""The part of inference that a profile is of: whole sequences at once, single tokens that follow them, or both.

Attention tells: over a whole sequence it has as many queries as keys, and a token that follows has the keys of all
before it, from a cache. Where no attention tells, the rows of the matrix products do: those of single tokens are as few
as the sequences of a batch. Few rows alone are no decode: an encoder of short texts has them as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pandas as pd

from advisor_core.facts.device.shapes import Shape, elements, per_text, shapes_of
from advisor_core.facts.intervals import Bools, Ints
from advisor_core.facts.matching import matching
from advisor_core.vocabulary.parts import DECODE, LEAST, MIXED, PREFILL, UNKNOWN
from advisor_core.vocabulary.vocabulary import Vocabulary

BOTH_SHARE = LEAST
"""Both parts are in a profile where the lesser one has this share of the time that tells. The head of a model,
whose product has few rows in a prefill too, has less."""


WIDEST_HEAD = 256
"""Widest axis of a single head: no model that is published has wider ones."""


class Sign(IntEnum):
    """The evidence of a kernel. ``WHOLE``: as many queries as keys; ``TOKEN``: fewer queries than keys; ``LONG``: many
    rows; ``SHORT``: few rows, of single tokens or of short sequences."""

    NOTHING = 0
    WHOLE = 1
    TOKEN = 2
    LONG = 3
    SHORT = 4


@dataclass(frozen=True)
class Evidence:
    """By row of the table of kernels: its ``signs``, and whether it is of an attention (``attends``), so that it tells
    of whole passes, where a product tells of one."""

    signs: Ints
    attends: Bools

    def part(self, rows: Ints) -> Evidence:
        """Of these rows."""
        return Evidence(self.signs[rows], self.attends[rows])


def evidence_of(kernels: pd.DataFrame, classes: pd.Series, words: Vocabulary) -> Evidence:
    """``kernels``: the table; ``classes``: of its rows, in the ledger."""
    signs = np.zeros(len(kernels), dtype=np.int64)
    shapes = kernels["input_shapes"]
    is_softmax = matching(kernels["type"], words.softmax)
    attends = (classes == "attention").to_numpy()

    def told(rows: Bools, sign_of: Callable[[str], int]) -> None:
        signs[rows] = per_text(shapes[rows], sign_of).to_numpy(dtype=np.int64)

    told(matching(kernels["type"], words.products), lambda text: _of_product(text, words.decode_rows))
    told(attends, lambda text: _of_attention(text, words.decode_rows))
    told(is_softmax, _of_softmax)
    decodes, prefills = matching(kernels["type"], words.decode), matching(kernels["type"], words.prefill)
    signs[decodes], signs[prefills] = Sign.TOKEN, Sign.WHOLE
    return Evidence(signs, attends | is_softmax | decodes | prefills)


def part_of_inference(kernels: pd.DataFrame, classes: pd.Series, words: Vocabulary) -> str:
    """``prefill``, ``decode``, ``mixed`` or ``unknown``; arguments as of `evidence_of`. An encoder is ``prefill``: it
    has whole sequences."""
    return part_of_evidence(evidence_of(kernels, classes, words), kernels["duration_ns"].to_numpy())


def part_of_evidence(evidence: Evidence, durations: Ints) -> str:
    """As `part_of_inference`, from the evidence of kernels that took ``durations``."""
    took = np.bincount(evidence.signs, weights=durations.astype(np.float64), minlength=len(Sign))
    whole, token, long, short = (float(took[sign]) for sign in (Sign.WHOLE, Sign.TOKEN, Sign.LONG, Sign.SHORT))
    if token and not whole:
        return DECODE
    if whole and not long:
        return _either(whole, token)
    if not long and not evidence.attends.any():
        return UNKNOWN
    return _either(whole + long, token + short) if long or short else UNKNOWN


def _either(prefill: float, decode: float) -> str:
    if min(prefill, decode) >= BOTH_SHARE * (prefill + decode):
        return MIXED
    return PREFILL if prefill > decode else DECODE


def _of_product(text: str, few: int) -> Sign:
    shapes = shapes_of(text)
    if not shapes or len(shapes[0]) < 2:
        return Sign.NOTHING
    return Sign.SHORT if shapes[0][-2] <= few else Sign.LONG


def _of_attention(text: str, few: int) -> Sign:
    """From queries and keys with an axis each for sequences, tokens and heads, in whatever order; of queries without
    one for sequences (``[tokens, heads, width]``) or for heads only the tokens of all sequences are known."""
    shapes = shapes_of(text)
    if len(shapes) < 2 or not elements(shapes[0]):
        return Sign.NOTHING
    query, key = shapes[0], shapes[1]
    if len(query) == 3:
        tokens = query[0] if query[-1] <= WIDEST_HEAD else query[0] * query[1]
        return Sign.SHORT if tokens <= few else Sign.LONG
    if len(query) != 4 or len(key) != 4 or query[0] != key[0]:
        return Sign.NOTHING
    return _of_lengths(query, key, few)


def _of_lengths(query: Shape, key: Shape, few: int) -> Sign:
    longer = [axis for axis in (1, 2) if key[axis] > query[axis]]
    unlike = [axis for axis in (1, 2) if key[axis] != query[axis]]
    if not longer and len(unlike) <= 1 and min(query[1:3]) > 1:
        return Sign.WHOLE
    if len(longer) == 1:
        return Sign.TOKEN if query[0] * query[longer[0]] <= few else Sign.WHOLE
    return Sign.NOTHING


def _of_softmax(text: str) -> Sign:
    """From scores ``[..., queries, keys]`` of several heads; logits of last tokens are ``[sequences, 1, words]``."""
    scores = next(iter(shapes_of(text)), ())
    if len(scores) < 3 or elements(scores[:-2]) < 2 or scores[-1] < 2:
        return Sign.NOTHING
    if scores[-2] == scores[-1]:
        return Sign.WHOLE
    return Sign.TOKEN if scores[-2] == 1 and len(scores) > 3 else Sign.NOTHING
