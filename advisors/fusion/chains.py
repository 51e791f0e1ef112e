"""Chains of small kernels that one fused kernel replaces.

Operator types become characters, the kernels of a rank in order of stream and time one string, and every pattern of
``patterns.yaml`` a regular expression over it; where a chain cannot go on (another stream or step, a collective
in between) the string has a border. So the search is linear in kernels. Names alone never match: the chain is walked,
and every kernel must read what an earlier kernel of the chain wrote, or what an earlier one read. What does not is cut
off at the ends where the pattern allows. Layers repeat: a chain of the same kernels on the same shapes is walked once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.facts import Facts, elements, fact
from advisors.fusion.patterns import Pattern, expression, matches, patterns
from advisors.fusion.tensors import Tensors, connected, tensors_of, traffic
from advisors.step_kernels import StepKernels, step_kernels

Ints = npt.NDArray[np.int64]

TRANSPARENT = re.compile(r"MemSet.*|Fill", re.I)
"""Kernels that only prepare an output for the next one; a chain reads over them."""

_BORDER = "\n"

_FIRST_CHARACTER = 0x4E00
"""Characters that have no meaning in regular expressions, more of them than there are operator types."""


@dataclass(frozen=True)
class Chains:
    """``frame``: one row per chain: ``pattern``, ``backward``, ``kernels`` (how many), ``chain_ns``, ``kept_ns``,
    ``fused_bytes`` (-1 unknown), ``best_bandwidth`` (B/s that its best kernel reaches), ``types``, ``shape`` (of its
    largest tensor). ``members``: rows of the frame of `StepKernels`; ``chain_of``: the chain of each."""

    frame: pd.DataFrame
    members: Ints
    chain_of: Ints

    def of(self, chains: Ints) -> Ints:
        """The kernels of the chains with these numbers."""
        return self.members[np.isin(self.chain_of, chains)]


@fact("fusion_chains", needs=(step_kernels,))
def fusion_chains(facts: Facts) -> Chains:
    """The chains of kernels that a fused kernel would replace."""
    return find_chains(facts[step_kernels])


def find_chains(own: StepKernels) -> Chains:
    """All chains of all patterns; a kernel belongs to one chain at most. None where no shapes are recorded."""
    frame = own.frame
    if not own.shaped:
        return _summary(frame, np.zeros(0, dtype=np.int64), [])
    categories = [str(name) for name in frame["type"].cat.categories]
    passed_over = np.array([bool(TRANSPARENT.fullmatch(name)) for name in categories], dtype=np.bool_)
    codes = frame["type"].cat.codes.to_numpy()
    visible = np.flatnonzero(~passed_over[codes])
    characters = {name: chr(_FIRST_CHARACTER + code) for code, name in enumerate(categories)}
    # A border that stands before a kernel that is passed over moves to the next one.
    upto = own.breaks[: visible[-1] + 1].astype(np.int64) if len(visible) else visible
    borders = np.add.reduceat(upto, _group_starts(visible)) if len(visible) else visible
    text, position = _text(codes[visible], borders > 0)
    walker = _Walker(frame, visible)
    taken = np.zeros(len(visible), dtype=np.bool_)
    found: list[tuple[Pattern, Ints]] = []
    for pattern in patterns():
        regex = expression(pattern, characters)
        if regex is None:
            continue
        for chain in _search(regex, text, position, walker, taken):
            taken[chain] = True
            found.append((pattern, chain))
    return _summary(frame, visible, found)


def _group_starts(visible: Ints) -> Ints:
    """Where the stretch of kernels begins that ends with each visible one."""
    return np.concatenate([[0], visible[:-1] + 1]) if len(visible) else visible


def _text(codes: npt.NDArray[np.integer[Any]], borders: npt.NDArray[np.bool_]) -> tuple[str, Ints]:
    """The string, and the number of the visible kernel at each place of it (-1 at borders)."""
    where = np.arange(len(codes)) + np.cumsum(borders)
    letters = np.full(len(codes) + int(borders.sum()), ord(_BORDER), dtype=np.uint32)
    letters[where] = codes.astype(np.uint32) + _FIRST_CHARACTER
    position = np.full(len(letters), -1, dtype=np.int64)
    position[where] = np.arange(len(codes))
    return letters.astype("<u4").tobytes().decode("utf-32-le"), position


def _search(
    regex: re.Pattern[str], text: str, position: Ints, walker: _Walker, taken: npt.NDArray[np.bool_]
) -> Iterator[Ints]:
    place = 0
    while (hit := regex.search(text, place)) is not None:
        start = int(position[hit.start()])
        chain = walker.settle(regex, hit.group(), start)
        if chain is None or taken[chain].any():
            place = hit.start() + 1
            continue
        yield chain
        place = hit.start() + int(chain[-1] - start) + 1


class _Walker:
    """Follows the data through chains; each distinct chain once."""

    def __init__(self, frame: pd.DataFrame, visible: Ints) -> None:
        self.signatures = frame["signature"].to_numpy()[visible]
        firsts = frame.drop_duplicates("signature").set_index("signature")
        self._rows = firsts[["type", "input_shapes", "input_dtypes", "output_shapes", "output_dtypes"]]
        self._tensors: dict[int, Tensors] = {}
        self._settled: dict[tuple[re.Pattern[str], bytes], Ints | None] = {}

    def tensors(self, signature: int) -> Tensors:
        if signature not in self._tensors:
            self._tensors[signature] = tensors_of(self._rows.loc[signature].to_dict())
        return self._tensors[signature]

    def settle(self, regex: re.Pattern[str], word: str, start: int) -> Ints | None:
        """The kernels of the match through which data flow and which still are the pattern, ``None`` if there are
        none. ``start``: number of the first visible kernel of the match."""
        chain = self.signatures[start : start + len(word)]
        key = (regex, chain.tobytes())
        if key not in self._settled:
            self._settled[key] = self._walk(regex, word, [self.tensors(int(one)) for one in chain])
        kept = self._settled[key]
        return None if kept is None else start + kept

    @staticmethod
    def _walk(regex: re.Pattern[str], word: str, chain: Sequence[Tensors]) -> Ints | None:
        start, end = 0, len(chain)
        while end - start > 1:
            whole = regex.fullmatch(word[start:end])
            own = [n for n in range(start, end) if whole is None or n - start not in _foreign(whole)]
            apart = next(
                (n for place, n in enumerate(own[1:], 1) if not connected([chain[m] for m in own[:place]], chain[n])),
                None,
            )
            if apart is None:
                return np.array(own, dtype=np.int64) if whole else None
            if regex.fullmatch(word[start:apart]):
                end = apart
            else:
                start = apart if apart == start + 1 else start + 1
        return None


def _foreign(match: re.Match[str]) -> set[int]:
    """Places of a match that are no part of the chain."""
    return {match.start(group) for group in range(1, match.re.groups + 1) if match.start(group) >= 0}


def _summary(frame: pd.DataFrame, visible: Ints, found: Sequence[tuple[Pattern, Ints]]) -> Chains:
    lengths = np.array([len(chain) for _, chain in found], dtype=np.int64)
    members = visible[np.concatenate([chain for _, chain in found])] if found else np.zeros(0, dtype=np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    number = np.repeat(np.arange(len(found)), lengths)
    part = frame.iloc[members]
    durations = part["duration_ns"].to_numpy()
    matched = [pattern for pattern, _ in found]
    signatures = part["signature"].to_numpy()
    walker = _Walker(frame, visible)
    types = part["type"].astype(str).to_numpy()
    known: dict[tuple[Pattern, bytes], tuple[int, str, str]] = {}
    told = []
    for pattern, first, last in zip(matched, starts, ends, strict=True):
        key = (pattern, signatures[first:last].tobytes())
        if key not in known:
            chain = [walker.tensors(int(one)) for one in signatures[first:last]]
            known[key] = _described(pattern, types[first:last], chain)
        told.append(known[key])
    kept = np.array([matches(t, matched[n].keeps) for t, n in zip(types, number, strict=True)], dtype=np.bool_)
    speed = np.where(part["bytes"] > 0, part["bytes"] / np.maximum(durations, 1) * 1e9, np.nan)
    sums = pd.DataFrame(
        {"number": number, "chain_ns": durations, "kept_ns": np.where(kept, durations, 0), "speed": speed}
    )
    grouped = sums.groupby("number").agg(
        chain_ns=("chain_ns", "sum"), kept_ns=("kept_ns", "sum"), best_bandwidth=("speed", "max")
    )
    summary = pd.DataFrame(
        {
            "pattern": pd.Series([pattern.name for pattern in matched], dtype="str"),
            "backward": pd.Series([pattern.backward for pattern in matched], dtype="bool"),
            "kernels": lengths,
            "chain_ns": grouped["chain_ns"].to_numpy(),
            "kept_ns": grouped["kept_ns"].to_numpy(),
            "best_bandwidth": grouped["best_bandwidth"].to_numpy(dtype=np.float64),
            "fused_bytes": pd.Series([one[0] for one in told], dtype="int64"),
            "types": pd.Series([one[1] for one in told], dtype="str"),
            "shape": pd.Series([one[2] for one in told], dtype="str"),
        }
    )
    return Chains(summary, members.astype(np.int64), number)


def _described(pattern: Pattern, types: Iterable[str], chain: Sequence[Tensors]) -> tuple[int, str, str]:
    everything = [shape for kernel in chain for shape, _ in (*kernel.inputs, *kernel.outputs)]
    main = max(everything, key=elements, default=())
    return traffic(chain, pattern.passes, wide=pattern.wide), " + ".join(types), ",".join(map(str, main))


FACTS = (fusion_chains,)
