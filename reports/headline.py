"""The head of a report: the verdict in one sentence, what ran, and how many rules could be answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advisor_core.api.renderers import RunResult
from reports.labels import Labels, one_line
from reports.ledgers import Ledger
from reports.outline import STATE_ORDER, Outline


def percents(values: Sequence[float]) -> list[int]:
    """Whole percentages of the sum of ``values`` that add up to 100 (largest remainder)."""
    total = sum(values)
    if total <= 0:
        return [0] * len(values)
    exact = [100 * value / total for value in values]
    whole = [int(value) for value in exact]
    by_rest = sorted(range(len(values)), key=lambda number: (whole[number] - exact[number], number))
    for number in by_rest[: 100 - sum(whole)]:
        whole[number] += 1
    return whole


def verdict(outline: Outline, labels: Labels) -> str:
    """One sentence, from the numbers alone: what the step consists of, largest part first."""
    if not outline.one_run:
        told = [(ledger, _parts(ledger, labels)) for ledger in outline.shown if ledger.wall_ns > 0]
        return " ".join(
            labels("verdict.of_rank", rank=ledger.rank, time=labels.wall(ledger.wall_ns), parts=parts)
            for ledger, parts in told
        )
    mean = outline.mean
    if not outline.by_rank or mean.wall_ns <= 0 or not mean.roots:
        return labels("verdict.no_ledger")
    ranks, steps = outline.ranks, mean.mean.steps
    time, listed = labels.wall(mean.wall_ns), _parts(mean, labels, outline.by_rank)
    if outline.has_roles:
        of = labels("verdict.roles", roles=len(outline.shown), ranks=ranks)
        return labels("verdict.of_roles", time=time, what=of, parts=listed)
    if ranks > 1 and steps > 1:
        of = labels("verdict.ranks_steps", ranks=ranks, steps=steps)
    elif ranks > 1:
        of = labels("verdict.ranks", count=ranks)
    elif steps > 1:
        of = labels("verdict.steps", count=steps)
    else:
        return labels("verdict.of", time=time, parts=listed)
    return labels("verdict.of_mean", time=time, what=of, parts=listed)


def _parts(mean: Ledger, labels: Labels, by_rank: Sequence[Ledger] = ()) -> str:
    """The parts of a mean step, the largest first. ``by_rank``: the ledgers that it is the mean of."""
    parts = sorted(
        zip(mean.roots, percents([node.ns for node in mean.roots]), strict=True), key=lambda pair: -pair[0].ns
    )
    clauses: list[str] = []
    for node, percent in parts:
        if node.ns == 0:
            continue
        key = f"verdict.{node.path}"
        what = labels(key) if key in labels else labels.path(node.path)
        leaf = max(node.leaves(), key=lambda leaf: leaf.ns)
        inner = round(100 * mean.share(leaf.ns))
        if percent >= 25 and leaf.path != node.path and leaf.ns * 2 >= node.ns:
            if leaf.path.endswith("/unknown"):
                known = sum(_knows_cause(ledger, node.path) for ledger in by_rank)
                key = "verdict.known_of" if known else "verdict.unknown"
                what = labels(key, what=what, known=known, ranks=len(by_rank))
            else:
                what = labels("verdict.within", what=what, percent=inner, inner=labels.trail(leaf.path))
        clauses.append(labels("verdict.next" if clauses else "verdict.part", percent=percent or "< 1", what=what))
    return labels("word.clause").join(clauses)


def _knows_cause(ledger: Ledger, path: str) -> bool:
    """Most of a part of a rank is booked under a cause."""
    leaves = [leaf for node in ledger.roots if node.path == path for leaf in node.leaves()]
    largest = max(leaves, key=lambda leaf: leaf.ns, default=None)
    return largest is not None and largest.ns > 0 and not largest.path.endswith("/unknown")


_NAMES = {"pytorch": "PyTorch", "mindspore": "MindSpore"} | {f"level{n}": f"Level{n}" for n in ("_none", 0, 1, 2)}
_NAMES |= {"vllm": "vLLM", "vllm-ascend": "vLLM Ascend", "sglang": "SGLang", "megatron": "Megatron-LM"}
_NAMES |= {"mindspeed": "MindSpeed", "mindspeed-llm": "MindSpeed LLM", "transformers": "Hugging Face transformers"}
"""How a reader writes what a profile calls its framework, its software and its level."""


@dataclass(frozen=True)
class Ran:
    """One fact about what ran."""

    key: str
    value: str


def what_ran(outline: Outline, labels: Labels) -> list[Ran]:
    """The facts the first line gives: enough to know whether this is the profile one thinks it is."""
    result = outline.result
    missing = labels("word.unknown")
    frameworks = _distinct(_NAMES.get(entry.framework or "", entry.framework) for entry in result.inputs)
    levels = _distinct(_NAMES.get(entry.level or "", entry.level) for entry in result.inputs)
    phase = f"phase.{result.profile.kind}"
    facts = [
        Ran("ran.step_time", _step_time(outline, labels) if outline.by_rank else missing),
        Ran("ran.framework", labels.join(frameworks) or missing),
        Ran("ran.level", labels.join(levels) or missing),
        Ran("ran.ranks", _ranks(result, labels)),
        Ran("ran.steps", _steps(result, labels)),
        Ran("ran.phase", labels(phase) if phase in labels else result.profile.kind),
        Ran("ran.chip", _chip(result, labels) or missing),
    ]
    if result.profile.software:
        facts.insert(2, Ran("ran.software", labels.join([_NAMES.get(name, name) for name in result.profile.software])))
    if result.profile.role is not None:
        facts.insert(1, Ran("ran.role", result.profile.role))
    if outline.has_roles:
        facts[0] = Ran("ran.iteration", facts[0].value)
        facts.insert(1, Ran("ran.roles", labels.join(list(result.profile.roles))))
    if sizes := [f"{name} {size}" for name, size in result.profile.parallel.items() if size > 1]:
        facts.append(Ran("ran.parallel", labels.join(sizes)))
    return facts


def _step_time(outline: Outline, labels: Labels) -> str:
    if outline.one_run:
        return labels.wall(outline.mean.wall_ns)
    times = [labels("ran.of_rank", time=labels.wall(ledger.wall_ns), rank=ledger.rank) for ledger in outline.shown]
    return labels.join(times)


def _distinct(values: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


def _ranks(result: RunResult, labels: Labels) -> str:
    ranks = result.profile.ranks
    listed = _numbers(ranks, labels)
    if in_depth := _in_depth(result):
        listed = labels("ran.in_depth", list=listed, ranks=_numbers(in_depth, labels))
    world = result.profile.world_size
    return labels("ran.ranks_of", list=listed, world=world) if world and world > len(ranks) else listed or "–"


def _numbers(ranks: Sequence[int], labels: Labels) -> str:
    listed = labels.join([str(rank) for rank in ranks[:8]])
    return labels("ran.more", list=listed, count=len(ranks) - 8) if len(ranks) > 8 else listed


def _in_depth(result: RunResult) -> list[int]:
    """The ranks that were read in depth; empty where that holds for all or for none."""
    deep = [entry.rank for entry in result.inputs if not entry.coarse]
    return deep if len(deep) < len(result.inputs) else []


def _steps(result: RunResult, labels: Labels) -> str:
    if not result.profile.steps:
        return labels("word.unknown")
    steps = list(dict.fromkeys(step.step for step in result.profile.steps))
    numbered = [step for step in steps if step is not None]
    if not numbered:
        return labels("ran.step_anonymous")
    if len(numbered) == 1:
        return labels("ran.step_one", step=numbered[0])
    return labels("ran.steps_many", count=len(numbered), first=min(numbered), last=max(numbered))


def _chip(result: RunResult, labels: Labels) -> str:
    chip = result.environment.chip
    if isinstance(fitting := chip.get("fitting_models"), str):
        return labels("ran.chip_fits", models=fitting)
    cores, clock = chip.get("cube_cores"), chip.get("mhz")
    if isinstance(cores, int) and isinstance(clock, int | float):
        return f"{cores} cube / {chip.get('vector_cores')} vector, {clock:.0f} MHz"
    for name in ("name", "chip", "soc", "soc_name", "soc_version", "model", "family", "type"):
        if isinstance(value := chip.get(name), str) and value:
            return value
    return next((value for value in chip.values() if isinstance(value, str) and value), "")


def coverage(outline: Outline, labels: Labels) -> list[str]:
    """How many rules are in which state; states without a rule are left out."""
    return [labels(f"states.{state}", n=len(outline.rules[state])) for state in STATE_ORDER if outline.rules[state]]


def for_others(outline: Outline, labels: Labels) -> list[str]:
    """A sentence for each rule set that is for other devices than those recorded."""
    return [
        labels("rules.for_others", count=rule_set.rules, ruleset=rule_set.ruleset, devices=labels.of(rule_set.devices))
        for rule_set in outline.for_others
    ]


def rank_name(ledger: Ledger, outline: Outline, labels: Labels) -> str:
    """What a bar or a column is called: its rank, and for a choice of many which of them it is."""
    if ledger.rank is None and ledger.role is not None:
        return one_line(ledger.role)
    if ledger.rank is None and outline.has_roles:
        return labels("word.iteration")
    if ledger.rank is None:
        return labels("word.mean", count=len(outline.by_rank))
    if len(outline.shown) < len(outline.by_rank) and ledger in outline.shown:
        role = ("slowest", "median", "fastest")[outline.shown.index(ledger)]
        return labels(f"word.{role}", rank=ledger.rank)
    return labels("word.rank", rank=ledger.rank)
