"""Page of published guides and of the vendor's checks: what each asks for, and what here answers it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from advisor_core.cli.main import cli
from advisor_core.contracts import tables
from reference_pages.catalogue import Catalogue
from reference_pages.command_line import commands
from reference_pages.kinds import Sentence, Url
from reference_pages.markdown import ROOT, TARGET, join, slug, source_link, table, to

FILE = ROOT / "docs" / "guides.yaml"
PAGE = "guides.md"

STATES = {
    "yes": "a rule, a drawing or a command answers it on a recording that has the data",
    "part": "something answers a part of it, or only on some recordings; the page says what is missing",
    "no": "nothing answers it",
}


class Item(BaseModel):
    """What a source asks for. ``by``: what answers it; ``missing``: what does not, in one clause; ``closed``: why that
    stays so, where it does."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    asks: Sentence
    state: Literal["yes", "part", "no"]
    by: tuple[Sentence, ...] = ()
    missing: Sentence | None = None
    closed: Sentence | None = None

    @model_validator(mode="after")
    def _state_has_its_reasons(self) -> Self:
        if (self.state == "no") == bool(self.by):
            raise ValueError(f"{self.asks}: the state {self.state} does not go with the answers {list(self.by)}")
        if (self.state == "yes") != (self.missing is None):
            raise ValueError(f"{self.asks}: say what is missing unless the state is yes")
        if self.closed is not None and self.missing is None:
            raise ValueError(f"{self.asks}: nothing is missing that could stay so")
        if len(set(self.by)) < len(self.by):
            raise ValueError(f"{self.asks}: an answer is named twice")
        return self


class Source(BaseModel):
    """A guide or a group of checks. ``url``: where it is published, if it says so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Sentence
    about: Sentence
    url: Url | None = None
    items: Annotated[tuple[Item, ...], Field(min_length=1)]


class Guides(BaseModel):
    """What docs/guides.yaml holds. ``views``: the drawings that items name, by the part of their id that stays."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    views: dict[str, Sentence]
    guides: tuple[Source, ...]
    checks: tuple[Source, ...]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        titles = [source.title for source in chain(self.guides, self.checks)]
        if len(set(titles)) < len(titles):
            raise ValueError(f"sources with the same title: {titles}")
        return self


def read_guides(file: Path = FILE) -> Guides:
    """Raises pydantic.ValidationError where the file is not complete."""
    return Guides.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))


def guides_page(catalogue: Catalogue) -> str:
    found = read_guides()
    return join(
        "# Guides and checks",
        "What five published guides to profiles of Ascend NPUs and GPUs ask of a tool, what the vendor's own tools "
        f"check, and what answers here. Collected in {source_link('docs/guides.yaml', PAGE)}. "
        "[Real cases](cases.md) holds the rules against published cases. Where no public recording has the data "
        "(several steps of one rank on NPUs, phases of reinforcement learning, experts, whole pipelines, decode with "
        "the cores of the chip), a line is judged by simulated ones and the cases of its rules.",
        "## Counts",
        table(("State", "Means"), STATES.items()),
        "*Closed* says why what is missing stays so: no export has it, no public source says what it means, or it is "
        "left out on purpose. What is missing without such a reason is still to be built.",
        _counts((*found.guides, *found.checks)),
        "## Guides",
        *chain.from_iterable(_source(source, found.views, catalogue) for source in found.guides),
        "## Checks of the vendor",
        "The checks of msprof-analyze 26.2.0 (`advisor`, `cluster`, `compare`). What they ask is said in our words; "
        "where a threshold of ours differs, the rule says why.",
        *chain.from_iterable(_source(source, found.views, catalogue) for source in found.checks),
        "## Drawings",
        "The drawings that the lines above name, by the part of their id in report.json that all ranks have.",
        table(("Drawing", "Shows"), ((f"`{name}`", shows) for name, shows in found.views.items())),
    )


def _counts(sources: Sequence[Source]) -> str:
    rows = [
        (to(PAGE, source.title, PAGE), len(source.items), *(_count([source], state) for state in STATES))
        for source in sources
    ]
    every = ("all", sum(len(source.items) for source in sources), *(_count(sources, state) for state in STATES))
    return table(("Source", "Items", *STATES), [*rows, every])


def _count(sources: Sequence[Source], state: str) -> int:
    return sum(item.state == state for source in sources for item in source.items)


def _source(source: Source, views: Mapping[str, str], catalogue: Catalogue) -> tuple[str, ...]:
    return (
        f"### {source.title}",
        f"{source.about} {f'[Published here]({source.url}).' if source.url else ''}".strip(),
        table(
            ("Asks for", "State", "Answered by", "Missing"),
            (
                (
                    item.asks,
                    item.state,
                    ", ".join(answer_link(name, views, catalogue) for name in item.by),
                    _missing(item),
                )
                for item in source.items
            ),
        ),
    )


def _missing(item: Item) -> str:
    return f"{item.missing or ''}{f'. *Closed*: {item.closed}' if item.closed else ''}"


def answer_link(name: str, views: Mapping[str, str], catalogue: Catalogue) -> str:
    """A link to what a name of ``by`` names: a rule, advisor, fact, table, command (``advisor run``), drawing
    (``view strip``) or page below docs/ (``comparing.md#the-verdict``). Raises ValueError where there is none."""
    if name in catalogue.rules:
        return catalogue.rule(name, PAGE)
    if name in catalogue.host.advisors:
        return catalogue.advisor(name, PAGE)
    if name in catalogue.host.facts or name in tables.SCHEMAS:
        return catalogue.link_to(name, PAGE)
    if name in {whole for whole, _ in commands(cli, "advisor")}:
        return to("command-line.md", name, PAGE)
    if name.startswith("view ") and name.removeprefix("view ") in views:
        return f"[`{name.removeprefix('view ')}`](#{slug('Drawings')})"
    path, _, anchor = name.partition("#")
    file = ROOT / "docs" / path
    if path.endswith(".md") and file.exists():
        shown = anchor.replace("-", " ") or file.stem.replace("-", " ")
        return f"[{shown}]({os.path.relpath(file, TARGET)}{'#' + anchor if anchor else ''})"
    raise ValueError(f"docs/guides.yaml: nothing here has the name {name!r}")
