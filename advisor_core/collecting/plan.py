"""Plan of the next recording: from the rules that a result could not answer, or the recommended default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from advisor_core.collecting import TOOLS
from advisor_core.collecting.tool import Tool, tools
from advisor_core.collecting.windows import Seconds, Window, recording
from advisor_core.contracts.capturing import CaptureOption
from advisor_core.result.run import RuleOutcome, RunResult
from advisor_core.text.base import Text

_STRETCHING = ("with_stack", "with_modules", "record_shapes", "profile_memory")


class ToolError(ValueError):
    """A tool does not record the devices that a result is of; the message names both."""


@dataclass(frozen=True)
class Choice:
    """One option of a plan. ``rules``: those that could not answer without it. ``noticed``: the profile shows the lack
    itself (one step only, ranks that are not there)."""

    id: str
    option: CaptureOption
    rules: tuple[str, ...] = ()
    noticed: bool = False


@dataclass(frozen=True)
class Estimate:
    """``bytes`` of the files that an analysis reads, ``ranks`` ranks together; ``seconds`` are recorded.
    ``measured``: bytes per step and rank of the profile at hand, taken at ``level``. ``growth``: the factor from
    that level, which is counted in; ``None`` where it is not known."""

    bytes: int
    ranks: int
    seconds: float
    measured: int
    level: str
    growth: float | None


@dataclass(frozen=True)
class Plan:
    """``roles``: those of the tool that are recorded, each by itself or, ``end_to_end``, in one profile of all phases
    that the training workers run. ``tokens``: the window of a rollout, as decode steps. ``seconds``: the window of a
    tool that knows no steps. ``ranks``: which to record; ``None`` for all. ``steps``: how many are recorded.
    ``beyond``: options that the tool cannot record. ``open``: rules that could not answer for a reason that no option
    changes, with what else to do or that reason. ``stretched``: options of the profile at hand that make host times
    longer."""

    tool: Tool
    roles: tuple[str, ...]
    end_to_end: bool
    choices: tuple[Choice, ...]
    beyond: tuple[Choice, ...]
    window: Window
    tokens: Window
    seconds: Seconds
    decode: bool
    rl_steps: tuple[int, ...]
    ranks: tuple[int, ...] | None
    steps: int
    open: tuple[tuple[str, Text | None], ...]
    estimate: Estimate | None
    stretched: tuple[str, ...]

    def has(self, option: str) -> bool:
        return any(choice.id == option for choice in self.choices)

    def answered(self) -> tuple[str, ...]:
        """The rules that the configuration lets answer."""
        return tuple(sorted({rule for choice in self.choices for rule in choice.rules}))


def records(tool: str, options: Iterable[CaptureOption]) -> set[str]:
    """The vendors whose devices the tool records."""
    return {option.vendor for option in options if option.vendor and tool in option.settings}


def default_tool(options: Iterable[CaptureOption], result: RunResult | None) -> str:
    """The profiler of the framework that was recorded, where it is of that alone; else the one that is named first
    among the options of the devices that were recorded; without a result, or for devices that no option is about, of
    the first devices that there are options of."""
    recorded = {source.vendor for source in result.inputs} if result else set()
    frameworks = {source.framework for source in result.inputs} if result else set()
    if of_framework := [name for name, tool in tools().items() if {tool.framework} == frameworks]:
        return of_framework[0]
    of_vendors = [option for option in options if option.vendor]
    chosen = next((option for option in of_vendors if option.vendor in recorded), of_vendors[0])
    return next(tool for tool in chosen.settings if tool in TOOLS)


def tool_for(asked: str | None, options: Iterable[CaptureOption], result: RunResult | None) -> str:
    """The tool that is asked for, or `default_tool`. Raises `ToolError` for one that does not record the devices of the
    result."""
    known = list(options)
    chosen = asked or default_tool(known, result)
    vendors = {source.vendor for source in result.inputs} - {""} if result else set()
    if vendors and not vendors & records(chosen, known):
        raise ToolError(f"{chosen} does not record the devices of this result ({', '.join(sorted(vendors))})")
    return chosen


def plan(name: str, every_option: Mapping[str, CaptureOption], result: RunResult | None = None) -> Plan:
    """The configuration for the tool ``name`` out of the known options. What the profile has stays: a new one that
    answers the open questions must not lose the answers of this one."""
    known, tool = recording(), tools()[name]
    vendors = {"", *records(name, every_option.values())}
    options = {option.id: option for option in every_option.values() if option.vendor in vendors}
    unanswered = [outcome for outcome in result.rules if outcome.state == "cannot_answer"] if result else []
    rules = _rules_by_option(unanswered)
    noticed = _noticed(result) if result else set()
    chosen = [
        Choice(name, option, rules.get(name, ()), name in noticed)
        for name, option in options.items()
        if option.default or name in rules or name in noticed
    ]
    decode = tool.service or (result is not None and result.profile.kind == "decode")
    window = known.windows.decode if decode else known.windows.training
    rl_steps = tuple(known.windows.rl)
    steps = len(rl_steps) if tool.window == "training_steps" else window.active
    if tool.window == "seconds":
        steps = _steps_within(result, known.windows.seconds)
    all_ranks = tool.service or "all_ranks" in noticed or "all_ranks" in rules
    ranks = _ranks(result, all_ranks=all_ranks)
    return Plan(
        tool=tool,
        roles=_roles(tool, result, decode=decode),
        end_to_end=bool(result and result.phases and not result.profile.roles),
        choices=tuple(choice for choice in chosen if name in choice.option.settings),
        beyond=tuple(choice for choice in chosen if name not in choice.option.settings),
        window=window,
        tokens=known.windows.decode,
        seconds=known.windows.seconds,
        decode=decode,
        rl_steps=rl_steps,
        ranks=ranks,
        steps=steps,
        open=_open(unanswered, options),
        estimate=_estimate(result, steps, ranks) if result else None,
        stretched=_stretched(name, chosen, result),
    )


def _stretched(tool: str, chosen: Iterable[Choice], result: RunResult | None) -> tuple[str, ...]:
    """The options that make host times of the profile at hand longer, but for those that this configuration needs."""
    needed = {choice.option.settings.get(tool) for choice in chosen}
    settings = result.environment.profiler if result else {}
    return tuple(name for name in _STRETCHING if settings.get(name) is True and f"{name}=True" not in needed)


def _roles(tool: Tool, result: RunResult | None, *, decode: bool) -> tuple[str, ...]:
    """Those whose phases the profile has; without phases the rollout where it decodes, else what trains."""
    kinds = {phase.kind for phase in result.phases} if result else set()
    seen = tuple(name for name, role in tool.roles.items() if kinds & set(role.phases))
    usual = tuple(name for name, role in tool.roles.items() if (name == "rollout" if decode else role.usual))
    return seen or usual


def _open(outcomes: Iterable[RuleOutcome], known: Iterable[str]) -> tuple[tuple[str, Text | None], ...]:
    """Each rule once, though several roles may lack an answer of it."""
    options = set(known)
    first: dict[str, Text | None] = {}
    for outcome in outcomes:
        if not set(outcome.options) & options:
            first.setdefault(outcome.rule, outcome.collect or outcome.reason)
    return tuple(first.items())


def _rules_by_option(outcomes: Iterable[RuleOutcome]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        for option in outcome.options:
            found.setdefault(option, []).append(outcome.rule)
    return {option: tuple(dict.fromkeys(rules)) for option, rules in found.items()}


def _noticed(result: RunResult) -> set[str]:
    """The options whose lack the profile shows, whatever the rules say."""
    noticed = set()
    if 1 in Counter((step.role, step.rank) for step in result.profile.steps).values():
        noticed.add("steps")
    if _expected_ranks(result) > len(result.profile.ranks):
        noticed.add("all_ranks")
    settings = result.environment.profiler
    before = [settings.get(f"schedule.{name}") for name in ("skip_first", "wait", "warmup")]
    if any(count is not None for count in before) and not any(before):
        noticed.add("warm_up")
    if any(settings.get(name) is True for name in _STRETCHING):
        noticed.add("light")
    if any(source.level in ("level_none", "level0") for source in result.inputs):
        noticed.add("level1")
    return noticed


def _expected_ranks(result: RunResult) -> int:
    """The ranks that the job has at least: as recorded, else as a finding of missing ranks counted them by the groups
    and peers that the profiles name (the column ``expected`` beside ``missing``)."""
    counted = [finding.observation["expected"] for finding in result.findings if "missing" in finding.observation]
    return max(result.profile.world_size or 0, *(count for count in counted if isinstance(count, int)), 0)


def _steps_within(result: RunResult | None, seconds: Seconds) -> int:
    """The steps of the profile at hand that fit into the window, at least one."""
    steps = result.ledger if result else []
    mean = sum(step.wall_ns for step in steps) / len(steps) if steps else 0
    return max(1, round(seconds.duration * 1e9 / mean)) if mean > 0 else 1


def _ranks(result: RunResult | None, *, all_ranks: bool) -> tuple[int, ...] | None:
    if all_ranks:
        return None
    return tuple(result.profile.ranks) if result else (0,)


def _estimate(result: RunResult, steps: int, ranks: tuple[int, ...] | None) -> Estimate | None:
    """From the size and the step time of the profile at hand; ``None`` where it has no steps. Of roles that were
    profiled by themselves, all together are a step."""
    recorded = len(result.profile.steps) / max(1, len(result.profile.roles))
    size = sum(file.bytes for source in result.inputs for file in source.files)
    if not recorded or not size:
        return None
    level = next((source.level for source in result.inputs if source.level), "")
    growth = recording().growth.get(level)
    wall = sum(step.wall_ns for step in result.ledger) / recorded
    count = len(ranks) if ranks is not None else max(_expected_ranks(result), len(result.profile.ranks))
    return Estimate(
        bytes=round(size / recorded * (growth or 1.0) * steps * count),
        ranks=count,
        seconds=steps * wall / 1e9,
        measured=round(size / recorded),
        level=level,
        growth=growth,
    )
