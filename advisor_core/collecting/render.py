"""Render a plan as the configuration of a profiler, with comments that say what each line is for."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, partial

from jinja2 import Environment, PackageLoader, StrictUndefined

from advisor_core.collecting.plan import Choice, Plan
from advisor_core.collecting.tool import Tool, tools
from advisor_core.collecting.windows import recording
from advisor_core.text.messages import message
from advisor_core.text.units import format_quantity

_WIDTH = 110
_SHOWN = 8
_PIECE = re.compile(r"[（《“]*(?:[^\s\u2e80-\uffef]+|[\u2e80-\uffef])[，。；：、！？）》”]*|\s+")
"""A word, or a character of a script without spaces, with the punctuation that must not be parted from it."""


def render(plan: Plan, lang: str) -> str:
    """Comments and code, both as ``#`` lines and statements of the tool's language (Python or shell)."""
    template = _environment().get_template(plan.tool.template)
    code = template.render(plan=plan, comment=partial(_comment, plan.tool, lang), commented=_commented, json=json.dumps)
    return "\n".join([*(f"# {line}".rstrip() for line in _explained(plan, lang)), "", code.strip()])


def _explained(plan: Plan, lang: str) -> Iterator[str]:
    yield from _filled("collect.heading", lang, tool=plan.tool.title.of(lang))
    rules = plan.answered()
    if rules:
        yield from _filled("collect.answers", lang, count=len(rules), rules=", ".join(rules))
    yield ""
    before = ""
    for choice in plan.choices:
        setting = choice.option.settings[plan.tool.name]
        if setting != before:
            yield setting
        before = setting
        yield from _indented(_why(choice, lang))
        yield from _indented(message("collect.cost", cost=choice.option.cost.of(lang)).of(lang))
        if plan.tool.name in choice.option.notes:
            yield from _indented(message("collect.but", note=choice.option.notes[plan.tool.name].of(lang)).of(lang))
    yield ""
    yield from _cost(plan, lang)
    for choice in plan.beyond:
        provides = choice.option.provides.of(lang)
        yield from _filled("collect.beyond", lang, provides=provides)
        if choice.rules:
            told = message("collect.beyond.rules", tool=_recorder(choice, lang), rules=_listed(choice.rules))
            yield from _indented(told.of(lang))
    for rule, reason in plan.open:
        yield from _filled("collect.open", lang, rule=rule, reason=reason.of(lang) if reason else "")
    yield ""
    for note in plan.tool.notes_for(plan.roles, space=recording().space, window=plan.tokens):
        yield from wrapped(note.of(lang), "- ", "  ")


def _why(choice: Choice, lang: str) -> str:
    provides = choice.option.provides.of(lang)
    if choice.rules:
        return message("collect.why.rules", provides=provides, rules=_listed(choice.rules)).of(lang)
    return message("collect.why.noticed" if choice.noticed else "collect.why.keeps", provides=provides).of(lang)


def _recorder(choice: Choice, lang: str) -> str:
    """The profiler that records the option, the first of several."""
    return tools()[next(iter(choice.option.settings))].title.of(lang)


def _listed(rules: tuple[str, ...]) -> str:
    """The rules by id, the first few of many."""
    shown = ", ".join(rules[:_SHOWN])
    return f"{shown} + {len(rules) - _SHOWN}" if len(rules) > _SHOWN else shown


def _cost(plan: Plan, lang: str) -> Iterator[str]:
    estimate = plan.estimate
    ranks = message("collect.all_ranks").of(lang) if plan.ranks is None else str(len(plan.ranks))
    if estimate is None and plan.tool.window == "seconds":
        yield from _filled("collect.cost.seconds", lang, seconds=plan.seconds.duration)
    elif estimate is None:
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
    if plan.decode or "rollout" in plan.roles:
        yield from _filled("collect.window", lang)


def _filled(name: str, lang: str, /, **values: object) -> list[str]:
    return wrapped(message(name, **values).of(lang))


def _indented(text: str) -> list[str]:
    return wrapped(text, "    ", "    ")


def wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most ``_WIDTH`` columns, the first after ``first`` and the others after ``rest``. Chinese is broken
    between any two characters, and they are two columns wide."""
    lines, line, used, gap = [], first, len(first), False
    for found in _PIECE.finditer(text):
        piece = found[0]
        if piece.isspace():
            gap = True
            continue
        wide = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in piece)
        if used + gap + wide > _WIDTH and line.strip() and line != rest:
            lines.append(line)
            line, used, gap = rest, len(rest), False
        gap = gap and line not in (first, rest)
        line, used, gap = line + " " * gap + piece, used + gap + wide, False
    return [*lines, line]


def _comment(tool: Tool, lang: str, name: str, /, **values: object) -> str:
    """A comment of the tool as comment lines, for its template."""
    return "\n".join(f"# {line}" for line in wrapped(tool.comment(name, **values).of(lang)))


def _json(value: object) -> str:
    """Indented, but for lists, which are short."""
    return re.sub(r"\[\s+([^]]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", json.dumps(value, indent=4))


def _commented(value: object) -> str:
    """JSON as comment lines, for a template: the contents of a file."""
    return "\n".join(f"#     {line}" for line in _json(value).splitlines())


@cache
def _environment() -> Environment:
    # a configuration is not HTML; nothing of a profile but numbers goes into the code
    return Environment(
        loader=PackageLoader("advisor_core.collecting", "tools"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
