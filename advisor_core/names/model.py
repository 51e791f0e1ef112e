"""The registry of names: every API, variable, option, flag and command that a text of a rule may name."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from advisor_core.text.base import Model, Text

Generation = Literal["910A", "310P", "A2", "A3", "950"]
"""Generations of chips. A2: Atlas A2 (Ascend 910B); A3: Atlas A3; 950: Ascend 950."""

NameKind = Literal["variable", "api", "option", "flag", "command", "value", "file", "feature"]
Framework = Literal["pytorch", "mindspore"]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]


class Source(Model):
    """The source of the facts about a name. ``date``: of the state that was read."""

    title: Word
    url: Annotated[str, StringConstraints(pattern=r"^https://")] | None = None
    date: datetime.date


class Name(Model):
    """One name, spelt as it must be.

    ``values``: all that a setting takes, or words that describe them. ``list``: what separates the options of a
    variable that holds several. ``excludes``: value to names, features or ``NAME=VALUE`` that it must not be combined
    with; ``*`` stands for any value. ``signature``: parameters of a callable, as Python writes them. ``page``: place
    within the source. ``title``: what reports call a feature. ``unverified``: not found in a source that can be read.
    """

    name: Word
    kind: NameKind
    meaning: Annotated[str, StringConstraints(min_length=3, max_length=500, strip_whitespace=True)]
    title: Text | None = None
    aliases: list[Word] = Field(default_factory=list)
    values: list[str] | str | None = None
    list_: str | None = Field(None, alias="list")
    default: str | None = None
    signature: str | None = None
    returns: str | None = None
    since: str | None = None
    until: str | None = None
    chips: list[Generation] = Field(default_factory=list)
    excludes: dict[str, list[Word]] = Field(default_factory=dict)
    page: str | None = None
    source: Source | None = None
    unverified: bool = False


class Software(Model):
    """The names of one software: a file of the registry. ``package``: its distribution on PyPI, whose code has them.
    ``framework``: the one whose programs call its APIs: advice that names one holds for that framework. ``source``: of
    all names that do not give their own."""

    software: Word
    title: Word
    package: str | None = None
    framework: Framework | None = None
    source: Source
    names: list[Name]
