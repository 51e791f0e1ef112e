"""A plan as the configuration of a profiler, ready to copy: what each line is for stands above it as comments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from advisor_core.collecting.options import Tool
from advisor_core.collecting.plan import Choice, Plan
from advisor_core.locale import message
from advisor_core.units import format_quantity

_TEMPLATES: dict[Tool, str] = {
    "torch_npu": "torch_npu.py.j2",
    "verl": "verl.sh.j2",
    "vllm": "vllm.py.j2",
    "mindie": "mindie.sh.j2",
    "msprof": "msprof.sh.j2",
}
_WIDTH = 110
_SHOWN = 8


def render(plan: Plan, lang: str) -> str:
    """Comments and code, both as ``#`` lines and statements of the tool's language (Python or shell)."""
    code = _environment().get_template(_TEMPLATES[plan.tool]).render(plan=plan, lang=lang)
    return "\n".join([*(f"# {line}".rstrip() for line in _explained(plan, lang)), "", code.strip()])


def _explained(plan: Plan, lang: str) -> Iterator[str]:
    yield from _filled("collect.heading", lang, tool=message(f"collect.tool.{plan.tool}").of(lang))
    rules = plan.answered()
    if rules:
        yield from _filled("collect.answers", lang, count=len(rules), rules=", ".join(rules))
    yield ""
    for choice in plan.choices:
        yield f"{choice.option.settings[plan.tool]}"
        yield from _indented(_why(choice, lang))
        yield from _indented(message("collect.cost", cost=choice.option.cost.of(lang)).of(lang))
    yield ""
    yield from _cost(plan, lang)
    for choice in plan.beyond:
        provides = choice.option.provides.of(lang)
        yield from _filled("collect.beyond", lang, provides=provides)
        if choice.rules:
            yield from _indented(message("collect.beyond.rules", rules=_listed(choice.rules)).of(lang))
    for rule, reason in plan.open:
        yield from _filled("collect.open", lang, rule=rule, reason=reason.of(lang) if reason else "")
    yield from _filled(f"collect.note.{plan.tool}", lang)


def _why(choice: Choice, lang: str) -> str:
    provides = choice.option.provides.of(lang)
    if choice.rules:
        return message("collect.why.rules", provides=provides, rules=_listed(choice.rules)).of(lang)
    return message("collect.why.noticed" if choice.noticed else "collect.why.keeps", provides=provides).of(lang)


def _listed(rules: tuple[str, ...]) -> str:
    """The rules by id, the first few of many."""
    shown = ", ".join(rules[:_SHOWN])
    return f"{shown} + {len(rules) - _SHOWN}" if len(rules) > _SHOWN else shown


def _cost(plan: Plan, lang: str) -> Iterator[str]:
    estimate = plan.estimate
    ranks = message("collect.all_ranks").of(lang) if plan.ranks is None else str(len(plan.ranks))
    if estimate is None:
        yield from _filled("collect.cost.unknown", lang, steps=plan.steps, ranks=ranks)
    else:
        yield from _filled(
            "collect.cost.estimate",
            lang,
            total=format_quantity(estimate.bytes, "B", lang),
            each=format_quantity(estimate.measured, "B", lang),
            level=estimate.level or "?",
            steps=plan.steps,
            ranks=estimate.ranks,
            recorded=format_quantity(round(estimate.seconds * 1e9), "ns", lang),
        )
        if plan.ranks is None:
            each = format_quantity(estimate.bytes // estimate.ranks, "B", lang)
            yield from _filled("collect.cost.each_rank", lang, each=each)
        if estimate.growth is None:
            yield from _filled("collect.cost.not_grown", lang)
        elif estimate.growth != 1:
            yield from _filled("collect.cost.grown", lang, factor=f"{estimate.growth:g}")
    if plan.stretched:
        yield from _filled("collect.stretched", lang, options=", ".join(plan.stretched))
    if plan.decode or plan.tool == "verl":
        yield from _filled("collect.window", lang)


def _filled(name: str, lang: str, /, **values: object) -> list[str]:
    return textwrap.wrap(message(name, **values).of(lang), _WIDTH, break_on_hyphens=False)


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


@cache
def _environment() -> Environment:
    # a configuration is not HTML; nothing of a profile but numbers goes into the code
    return Environment(
        loader=PackageLoader("advisor_core.collecting"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
