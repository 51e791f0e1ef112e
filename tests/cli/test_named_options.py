"""Commands and options that texts name exist: in messages, help pages, rule sets and reports.

``tests/docs/test_reference.py`` looks at the written pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from advisor_core.cli.main import cli
from advisor_core.plugins.host import load_host
from tests.conftest import ROOT

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
CALL = re.compile(r"(?<![\w./-])advisor ((?:--[a-z-]+ )*[a-z][^\n`|#]*)")
PACKAGES = ("advisor_core", "advisors", "reports")


def commands(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    for key, command in group.commands.items():
        yield f"{name}{key}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name}{key} ")


COMMANDS = dict(commands(cli))


def options(*of: click.Command) -> set[str]:
    return {name for command in of for option in command.params for name in (*option.opts, *option.secondary_opts)}


OURS = options(cli, *COMMANDS.values()) | {"--help"}


@cache
def of_others() -> frozenset[str]:
    """Options of other software that the registry of names has, and those that its collecting commands take."""
    registered = set(load_host().name_book().names)
    templates = (ROOT / "advisor_core" / "collecting" / "tools").iterdir()
    told = {option for file in templates if file.is_file() for option in OPTION.findall(file.read_text("utf-8"))}
    return frozenset((registered | told) - OURS)


def texts_of_code() -> Iterator[tuple[Path, str]]:
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield file, node.value


def texts_of_data() -> Iterator[tuple[Path, str]]:
    for folder in (*PACKAGES, "rulesets"):
        for file in (ROOT / folder).rglob("*.yaml"):
            if "names" not in file.parts and "tools" not in file.parts:
                yield file, file.read_text("utf-8")


def wrong_calls(text: str) -> Iterator[str]:
    """The calls of ``advisor`` in a text that name no command, or an option that the command does not have."""
    for found in CALL.finditer(text):
        words = found[1].split()
        names = [word for word in words if re.fullmatch(r"[a-z]+(-[a-z]+)*", word)]
        known = next((name for name in (" ".join(names[:2]), *names[:1]) if name in COMMANDS), "")
        wanted = {word.partition("=")[0] for word in re.findall(r"--[a-z][a-z-]*", found[1])}
        allowed = options(cli, COMMANDS[known]) | {"--help"} if known else set()
        is_group = isinstance(COMMANDS.get(known), click.Group) and len(names) > 1
        if wanted - allowed - of_others() or (is_group and f"{known} {names[1]}" not in COMMANDS):
            yield found[0]


@pytest.mark.parametrize("texts", [texts_of_code, texts_of_data], ids=["code", "data"])
def test_every_option_in_a_text_exists(texts: object) -> None:
    assert callable(texts)
    seen = {(file.name, option) for file, text in texts() for option in OPTION.findall(text)}
    assert {option for _, option in seen} & OURS
    known = OURS | of_others() | {"--type"}  # that is of `msprof --export`
    assert {(file, option) for file, option in seen if option not in known} == set()


@pytest.mark.parametrize("texts", [texts_of_code, texts_of_data], ids=["code", "data"])
def test_every_call_in_a_text_is_one_that_works(texts: object) -> None:
    assert callable(texts)
    assert [(file.name, call) for file, text in texts() for call in wrong_calls(text)] == []


@pytest.mark.parametrize(
    "text",
    ["use `advisor run PATH --nonsense`", "`advisor rules nonsense`", "advisor compare A B --set HD001.x=1"],
)
def test_a_wrong_call_is_found(text: str) -> None:
    assert list(wrong_calls(text))
