"""Words about a problem that several sections use: its title in short, the way to it, its time at stake, and what an
advice sets."""

from __future__ import annotations

from collections.abc import Iterable

from advisor_core.api.renderers import Advice, Finding
from reports.blocks import Code, Line, Link, Stake, Words, line
from reports.labels import Labels, shorten
from reports.outline import Outline
from reports.problems import Item
from reports.prose import plain

TITLE = 140
"""Longest title outside of its own finding."""


def brief_title(text: str) -> str:
    """A title outside of its own finding: without markup, and not too long."""
    return shorten(plain(text), TITLE)


def linked(numbers: Iterable[str], outline: Outline, between: str = " ") -> Line:
    """The numbers of problems, each with the way to it."""
    pieces = [
        piece
        for number in numbers
        for piece in (between, Link(outline.item(number).anchor, line(Words(number, "number"))))
    ]
    return line(*pieces[1:])


def stake(item: Item, t: Labels) -> Stake:
    """The time that a problem and its causes hold together."""
    problem = item.problem
    if item.no_time:
        return Stake(why_none=t(item.no_time))
    return Stake(
        time=t.time(problem.stake_ns),
        share=t(item.of_step, share=t.share(problem.share_of_step)),
        basis=t(f"basis.{problem.basis}"),
    )


def shared(item: Item, t: Labels) -> str:
    """The time of a problem that stands under others, and under which; '' where there is none."""
    told = [t("first.shared", time=t.time(one.ns), number=one.number) for one in item.problem.shared]
    return t("first.shared_all", list=t.join(told)) if told else ""


def call_site(finding: Finding) -> str | None:
    """The place in the code that asks for what costs the time: that of the first call stack in the evidence."""
    return next((exhibit.place for exhibit in finding.evidence if exhibit.kind == "stack" and exhibit.place), None)


def settings(advice: Advice) -> tuple[Code, ...]:
    """What an advice sets, as it is written into a launch script."""
    return tuple(Code(f"{name}={value}", "chip") for name, value in advice.set.items())


def changes(advice: Advice) -> bool:
    """Whether an advice changes the job, rather than to look or to record."""
    return advice.kind not in ("investigate", "collect")


def conditions(advice: Advice, item: Item, t: Labels) -> Link | None:
    """Where an advice holds on conditions only, the way to them: the finding that has it."""
    if not (advice.only_if or advice.unless):
        return None
    return Link(item.anchor, line(t("first.conditions", number=item.number)), "small")
