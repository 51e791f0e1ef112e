"""Chains of small kernels that one fused kernel replaces.

Operator types become characters, the kernels of a rank in order of stream and time one string, and every pattern of
``fusion_patterns.yaml`` a regular expression over it; where a chain cannot go on (another stream or step, a collective
in between) the string has a border. So the search is linear in kernels. Names alone never match: the chain is walked,
and every kernel must read what an earlier kernel of the chain wrote, or what an earlier one read. What does not is cut
off at the ends where the pattern allows. Layers repeat: a chain of the same kernels on the same shapes is walked once.

What fusing saves is more than the time of the kernels where the host is slow: see `advisors.fewer_kernels`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api import packaged_yaml
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import DTYPE_BYTES, HOST_EVENTS, KERNELS, Facts, Shape, elements, fact, launches, shapes_of
from advisors.fewer_kernels import Merging, StepReplay, step_replay
from advisors.messages import message
from advisors.step_kernels import EVIDENCE_COLUMNS, StepKernels, call_stack, kernel_rows, records, step_kernels

Ints = npt.NDArray[np.int64]

TRANSPARENT = re.compile(r"MemSet.*|Fill", re.I)
"""Kernels that only prepare an output for the next one; a chain reads over them."""

CREATING = re.compile(r"ZerosLike|OnesLike|Fill", re.I)
"""Kernels that read nothing: what the export lists as input only gives the shape."""

_BORDER = "\n"
_FIRST_CHARACTER = 0x4E00
"""Characters that have no meaning in regular expressions, more of them than there are operator types."""


@dataclass(frozen=True)
class Step:
    """A step of a chain: globs of operator types; ``optional``: may be missing; ``foreign``: may stand there and is no
    part of the chain."""

    globs: tuple[str, ...]
    optional: bool
    foreign: bool


@dataclass(frozen=True)
class Pattern:
    """An entry of the file, of one direction; see there. ``passes`` is 0 where the fused kernel moves the inputs of the
    chain and its last output."""

    name: str
    backward: bool
    api: str
    chains: tuple[tuple[Step, ...], ...]
    fused: tuple[str, ...]
    keeps: tuple[str, ...]
    passes: float
    wide: bool


@cache
def patterns() -> tuple[Pattern, ...]:
    """The patterns of the file, in its order."""
    return tuple(
        Pattern(
            name,
            backward,
            entry["api"],
            tuple(tuple(_step(word) for word in chain.split()) for chain in entry[key]),
            tuple(entry["fused"]),
            tuple(entry.get("keeps", ())),
            float(entry.get("backward_passes" if backward else "passes", 0)),
            bool(entry.get("wide", False)),
        )
        for name, entry in packaged_yaml("advisors", "fusion_patterns.yaml").items()
        for key, backward in (("chains", False), ("backward", True))
        if key in entry
    )


def _step(word: str) -> Step:
    foreign = word.endswith("~")
    return Step(tuple(word.rstrip("?~").split("|")), foreign or word.endswith("?"), foreign)


def matches(operator: str, globs: Iterable[str]) -> bool:
    """Whether an operator type fits one of the globs."""
    return any(_glob(pattern).fullmatch(operator) for pattern in globs)


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.I)


def expression(pattern: Pattern, characters: Mapping[str, str]) -> re.Pattern[str] | None:
    """The pattern over the characters of the types that occur, ``None`` if it cannot occur. Groups of the expression
    hold what is no part of the chain."""
    chains = []
    for chain in pattern.chains:
        parts = []
        for step in chain:
            found = "".join(char for operator, char in characters.items() if matches(operator, step.globs))
            if found:
                one = f"([{found}])" if step.foreign else f"[{found}]"
                parts.append(f"{one}{'?' if step.optional else ''}")
            elif not step.optional:
                break
        else:
            chains.append("".join(parts))
    return re.compile("|".join(f"(?:{chain})" for chain in chains)) if chains else None


@dataclass(frozen=True)
class Tensors:
    """Shape and bytes of each tensor that a kernel reads and writes; -1 bytes where the dtype has no known size."""

    inputs: tuple[tuple[Shape, int], ...]
    outputs: tuple[tuple[Shape, int], ...]


def tensors_of(kernel: Mapping[Any, object]) -> Tensors:
    """The tensors of a row of ``kernels``."""
    read, written = (
        _side(str(kernel[f"{side}_shapes"]), str(kernel[f"{side}_dtypes"])) for side in ("input", "output")
    )
    return Tensors(() if CREATING.fullmatch(str(kernel["type"])) else read, written)


def _side(shapes: str, dtypes: str) -> tuple[tuple[Shape, int], ...]:
    parts, types = shapes_of(shapes), dtypes.split(";")
    sizes = [DTYPE_BYTES.get(name, -1) for name in types] if len(types) == len(parts) else [-1] * len(parts)
    return tuple((shape, _bytes(shape, size)) for shape, size in zip(parts, sizes, strict=True))


def _bytes(shape: Shape, size: int) -> int:
    if size > 0:
        return elements(shape) * size
    # A scalar, or an optional input that was not given (recorded as an empty shape of undefined type).
    return 0 if elements(shape) == 1 else -1


def connected(earlier: Sequence[Tensors], kernel: Tensors) -> bool:
    """Whether the kernel reads what one of the earlier kernels wrote or read. Tensors are the same if they have equally
    many elements (what was read: the same shape); a kernel without recorded inputs, such as one that draws random
    numbers, is not known to be apart."""
    if not kernel.inputs or not any(known.inputs or known.outputs for known in earlier):
        return True
    written = {elements(shape) for known in earlier for shape, _ in known.outputs}
    read = {shape for known in earlier for shape, _ in known.inputs if elements(shape) > 1}
    return any(shape in read or (elements(shape) in written and elements(shape) > 1) for shape, _ in kernel.inputs)


def traffic(chain: Sequence[Tensors], passes: float, *, wide: bool) -> int:
    """Bytes that a fused kernel moves for the chain; -1 where not known. ``passes``: multiples of the largest tensor of
    the chain; as it stands outside of the chain, that is in its narrowest dtype, unless it is ``wide``. 0: the inputs
    of the chain and its last output, each once."""
    last = chain[-1].outputs
    if any(size < 0 for _, size in last) or not last:
        return -1
    if passes:
        return int(passes * _largest(chain, wide=wide))
    total, inside, seen = sum(size for _, size in last), set[int](), set[Shape]()
    for kernel in chain:
        for shape, size in kernel.inputs:
            if shape in seen or (elements(shape) in inside and elements(shape) > 1):
                continue
            if size < 0:
                return -1
            seen.add(shape)
            total += size
        inside |= {elements(shape) for shape, _ in kernel.outputs}
    return total


def _largest(chain: Sequence[Tensors], *, wide: bool) -> int:
    """Bytes of the largest tensor that the chain writes (of a list of tensors, all of them)."""
    if wide:
        return max(sum(max(size, 0) for _, size in kernel.outputs) for kernel in chain)
    sizes = [tensor for kernel in chain for tensor in (*kernel.inputs, *kernel.outputs) if tensor[1] > 0]
    most = max((elements(shape) for kernel in chain for shape, size in kernel.outputs if size > 0), default=0)
    return min((size for shape, size in sizes if elements(shape) == most), default=0)


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
            known[key] = _told(pattern, types[first:last], chain)
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


def _told(pattern: Pattern, types: Iterable[str], chain: Sequence[Tensors]) -> tuple[int, str, str]:
    everything = [shape for kernel in chain for shape, _ in (*kernel.inputs, *kernel.outputs)]
    main = max(everything, key=elements, default=())
    return traffic(chain, pattern.passes, wide=pattern.wide), " + ".join(types), ",".join(map(str, main))


@advisor(
    "network_structure.fusion",
    needs=(step_kernels, fusion_chains),
    wants=(step_replay, launches, HOST_EVENTS),
    about=(Column("pattern", "text", "", "which pattern of fusion_patterns.yaml"),),
    columns=(
        Column("api", "text", "", "what replaces the chain"),
        Column("chain", "text", "", "the operator types of the chain on which most time is spent"),
        Column("shape", "text", "", "the largest tensor of that chain"),
        Column("chains", "float", "count", "chains of the forward pass per step"),
        Column("kernels", "float", "count", "kernels in them, per step"),
        Column("saved_launches", "float", "count", "kernels that need not be launched any more, per step"),
        Column("chain_ns", "float", "ns", "time of the chains per step"),
        Column("backward_ns", "float", "ns", "part of chain_ns in the chains that autograd runs for them"),
        Column(
            "fused_ns",
            "float",
            "ns",
            "time of the fused kernels per step: bytes moved once at the bandwidth reached, and what the shortest "
            "kernels take; of a chain whose bytes are not known, the chain itself",
        ),
        Column("kept_ns", "float", "ns", "part of fused_ns in kernels whose work stays: the products of attention"),
        Column("kernel_saving_ns", "float", "ns", "chain_ns less fused_ns"),
        Column(
            "saving_ns",
            "float",
            "ns",
            "how much shorter a step is with the fused kernels, from a replay of launches and kernels; without "
            "launches, kernel_saving_ns",
        ),
        Column(
            "launch_saving_ns",
            "float",
            "ns",
            "part of saving_ns beyond kernel_saving_ns: the device no longer waits for the launches that go away",
        ),
        Column(
            "bandwidth",
            "float",
            "B/s",
            "what large elementwise kernels of this profile reach; without such kernels, the best kernel of each chain",
        ),
        Column("fused_kernels", "float", "count", "fused kernels of this kind that run already, per step"),
        Column("share_of_step", "float", "ratio", "saving_ns over the step"),
        Column("share_of_computing", "float", "ratio", "kernel_saving_ns over the kernel time of the step"),
    ),
)
def fusion(facts: Facts, params: Params) -> Observations:
    """Chains of small kernels for which there is a fused one, by pattern: their time and what fusing would save."""
    own = facts[step_kernels]
    own.require_shapes()
    chains = facts[fusion_chains]
    found = chains.frame
    # What the best kernel of a chain reaches counts its start and end; what large kernels reach hides them.
    large = np.isfinite(own.bandwidth)
    speed, begin = (own.bandwidth, own.least_ns) if large else (found["best_bandwidth"], 0.0)
    moved = np.where(found["fused_bytes"] >= 0, found["fused_bytes"], np.nan) / speed * 1e9
    fused = np.minimum(found["kept_ns"] + np.where(found["kept_ns"] > 0, 0, moved + begin), found["chain_ns"])
    found = found.assign(fused_ns=fused, moved_ns=np.where(found["kept_ns"] > 0, np.nan, moved))
    # What autograd runs counts only where the forward chain was seen: the same backward runs for other forms too, such
    # as SwiGLU of two separate projections, which the fused kernel cannot take as they are.
    forwards = found.loc[~found["backward"], "pattern"]
    found = found[found["pattern"].isin(forwards)]
    forward = [pattern for pattern in patterns() if not pattern.backward]
    replay = facts.get(step_replay)
    rows = []
    for pattern in forward:
        mine = found[found["pattern"] == pattern.name]
        rows.append(_row(pattern, mine, own) | _savings(mine, chains, own, replay))
    frame = pd.DataFrame(rows)
    frame = frame.astype({"chain": object, "shape": object}).replace({"chain": np.nan, "shape": np.nan}, None)
    frame["share_of_step"] = frame["saving_ns"] / own.wall_ns
    frame["share_of_computing"] = frame["kernel_saving_ns"] / own.kernel_ns

    def evidence(row: int) -> list[Reference]:
        mine = found[found["pattern"] == frame["pattern"][row]]
        part = own.frame.iloc[chains.of(mine.index.to_numpy())]
        # The chain that the text names; what autograd runs for it is in the table of shapes.
        best = own.frame.iloc[chains.of(np.array([mine.loc[~mine["backward"], "chain_ns"].idxmax()]))]
        by_shape = mine.groupby(["types", "shape"], sort=False).agg(
            chains=("kernels", "size"), chain_ns=("chain_ns", "sum"), fused_ns=("fused_ns", "sum")
        )
        top = by_shape.sort_values("chain_ns", ascending=False, kind="stable").head(8).reset_index()
        units = {"chains": "count", "chain_ns": "ns", "fused_ns": "ns"}
        return [
            Rows(message("fusion.example"), KERNELS, best["row"].to_numpy(dtype=np.int64), EVIDENCE_COLUMNS),
            Metric(message("fusion.by_shape"), records(top), units),
            kernel_rows(message("fusion.kernels"), part),
            *call_stack(facts, part),
        ]

    return Observations(frame, evidence)


def _row(pattern: Pattern, mine: pd.DataFrame, own: StepKernels) -> dict[str, object]:
    top = mine[~mine["backward"]].groupby(["types", "shape"], sort=False)["chain_ns"].sum()
    largest: Any = top.idxmax() if len(top) else (None, None)
    back = mine[mine["backward"]]
    moving = mine["moved_ns"] > 0
    types = own.frame["type"]
    running = types.isin([name for name in types.cat.categories if matches(str(name), pattern.fused)])
    return {
        "pattern": pattern.name,
        "api": pattern.api,
        "chain": largest[0],
        "shape": largest[1],
        "chains": float(len(mine) - len(back)) / own.steps,
        "kernels": float(mine["kernels"].sum()) / own.steps,
        "saved_launches": float(mine["kernels"].sum() - len(mine)) / own.steps,
        "chain_ns": float(mine["chain_ns"].sum()) / own.steps,
        "backward_ns": float(back["chain_ns"].sum()) / own.steps,
        "kept_ns": float(mine["kept_ns"].sum()) / own.steps,
        "bandwidth": float(mine.loc[moving, "fused_bytes"].sum() / mine.loc[moving, "moved_ns"].sum() * 1e9)
        if moving.any()
        else own.bandwidth,
        "fused_kernels": float(running.sum()) / own.steps,
    }


def _savings(mine: pd.DataFrame, chains: Chains, own: StepKernels, replay: StepReplay | None) -> dict[str, float]:
    """What fusing the chains of a pattern saves per step; unknown where the bytes of no chain are known."""
    unknown = mine["fused_ns"].isna()
    if len(mine) and unknown.all():
        return dict.fromkeys(("fused_ns", "kernel_saving_ns", "saving_ns", "launch_saving_ns"), np.nan)
    before = mine["chain_ns"].to_numpy(dtype=np.float64)
    after = mine["fused_ns"].where(~unknown, mine["chain_ns"]).to_numpy(dtype=np.float64)
    kernels = total = float(before.sum() - after.sum())
    if replay is not None and len(mine):
        # The numbers of chains are those of the whole frame, ascending.
        inside = np.isin(chains.chain_of, mine.index.to_numpy())
        number = np.searchsorted(mine.index.to_numpy(), chains.chain_of[inside])
        tasks = own.frame["work"].to_numpy()[chains.members[inside]]
        total = float(replay.saved_ns(Merging(tasks, number, before, after)))
    return {
        "fused_ns": float(after.sum()) / own.steps,
        "kernel_saving_ns": kernels / own.steps,
        "saving_ns": total / own.steps,
        "launch_saving_ns": max(total - kernels, 0.0) / own.steps,
    }


ADVISORS = (fusion,)
FACTS = (fusion_chains,)
