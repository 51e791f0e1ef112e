"""Prefill and decode told apart in a sequence of kernels, kernel by kernel.

Attentions tell of which part a pass is, products where there is no attention. A single one that says other than those
around it is no pass of the other part: cross attention reads as many keys as a decode does, and the head of a prefill
has as few rows. Between the last kernel that tells of one part and the first that tells of the other lies the border:
behind the last product of many rows, where the device is idle for longest, as the next pass begins with work of the
host.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.facts.inference import Evidence, Sign, part_of_evidence
from advisor_core.facts.intervals import Bools, Ints
from advisor_core.vocabulary.parts import DECODE, MIXED, PREFILL, TRAINING

if TYPE_CHECKING:
    import numpy.typing as npt

Texts: TypeAlias = "npt.NDArray[np.object_]"

AT_LEAST = 2
"""Attentions in succession that tell of the same part, at least: a model with one layer has no more, and is none that
is served."""


def parts_of_inference(evidence: Evidence, starts: Ints, ends: Ints) -> Texts:
    """The part of each kernel, in order of start: ``prefill``, ``decode`` or ``unknown``."""
    overall = part_of_evidence(evidence, ends - starts)
    signs = evidence.signs
    told = np.full(len(signs), "", dtype=object)
    told[(signs == Sign.WHOLE) | (signs == Sign.LONG)] = PREFILL
    told[signs == Sign.TOKEN] = DECODE
    # Few rows are single tokens where there are long sequences to compare with, or tokens that attend a cache.
    if (signs == Sign.LONG).any() or (signs == Sign.TOKEN).any():
        told[signs == Sign.SHORT] = DECODE
    anchors = _settled(told, np.flatnonzero((told != "") & evidence.attends))
    if not len(anchors) and overall == MIXED:
        anchors = _settled(told, np.flatnonzero(told != ""))
    if not len(anchors) or len(set(told[anchors].tolist())) == 1:
        single = told[anchors[0]] if len(anchors) else overall
        return np.full(len(signs), overall if overall != MIXED else single, dtype=object)
    return _filled(told, anchors, signs, starts, ends)


def parts_of_training(evidence: Evidence, trains: Bools, starts: Ints, ends: Ints) -> Texts:
    """The part of each kernel of a recording that trains, in order of start: ``decode`` where attentions read a cache,
    ``prefill`` for the whole passes between the last kernel that trains and such a decode, ``training`` elsewhere.
    ``trains``: kernels that only training has."""
    signs = evidence.signs
    attentions = np.flatnonzero(evidence.attends & (signs != Sign.NOTHING))
    is_token = np.append(signs[attentions] == Sign.TOKEN, False)
    borders = np.flatnonzero(np.diff(np.concatenate([[False], is_token]).astype(np.int8)))
    last_training = np.maximum.accumulate(np.where(trains, np.arange(len(trains)), -1))
    told = np.full(len(signs), "", dtype=object)
    told[trains], told[attentions] = TRAINING, TRAINING
    for begin, end in borders.reshape(-1, 2).tolist():  # runs of attentions
        first, last = int(attentions[begin]), int(attentions[end - 1])
        if end - begin < AT_LEAST or last_training[last] > first:
            continue
        told[attentions[begin:end]] = DECODE
        before = attentions[(attentions > last_training[first]) & (attentions < first)]
        told[before[told[before] == TRAINING]] = PREFILL
    return _filled(told, np.flatnonzero(told != ""), signs, starts, ends)


def _settled(told: Texts, rows: Ints) -> Ints:
    """Those of the rows that tell the same as the one before or behind."""
    if len(rows) < AT_LEAST:
        return rows[:0]
    same = told[rows[1:]] == told[rows[:-1]]
    return np.asarray(rows[np.append(same, False) | np.append(False, same)], dtype=np.int64)


def _filled(told: Texts, anchors: Ints, signs: Ints, starts: Ints, ends: Ints) -> Texts:
    parts = np.full(len(told), told[anchors[0]], dtype=object)
    reached = np.maximum.accumulate(ends)
    changes = np.flatnonzero(told[anchors[1:]] != told[anchors[:-1]])
    cuts = [0]
    for last, first in zip(anchors[changes].tolist(), anchors[changes + 1].tolist(), strict=True):
        products = np.flatnonzero(signs[last:first] == Sign.LONG) + last
        if told[last] != DECODE:
            begin, end = int(products[-1]) + 1 if len(products) else last + 1, first
        else:
            begin, end = last + 1, int(products[0]) if len(products) else first
        idle = starts[begin : end + 1] - reached[begin - 1 : end]
        cuts.append(begin + int(idle.argmax()))
    labels = [told[anchors[0]], *told[anchors[changes + 1]].tolist()]
    for label, (begin, end) in zip(labels, pairwise([*cuts, len(told)]), strict=True):
        parts[begin:end] = label
    return parts
