"""The generated reference has everything, is the same every time, and all links of the documentation lead somewhere."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from advisor_core.cli.console import EXIT_CODES
from advisor_core.cli.main import cli
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.plugins.host import load_host
from advisor_core.run.prepared import RunOptions, rule_book
from tests.conftest import ROOT

REFERENCE = ROOT / "docs" / "reference"
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = re.compile(r"^```.*?^```$|^    [^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)>\s]+)>?\)")


def generate(*arguments: str | Path, seed: str = "0") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), *map(str, arguments)]
    env = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference as the code is now, whatever is committed."""
    target = tmp_path_factory.mktemp("docs") / "reference"
    done = generate("--target", target)
    assert done.returncode == 0, done.stderr
    return target


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}


@pytest.mark.search  # `make lint` compares what is committed with what the code says, each time with other hashes
def test_it_is_the_same_every_time(reference: Path, tmp_path: Path) -> None:
    assert generate("--target", tmp_path, seed="12345").returncode == 0
    assert contents(tmp_path) == contents(reference)


def test_the_check_notices_a_page_that_differs_is_missing_or_left_over(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "reference"
    for name, text in contents(reference).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(ROOT / "docs")  # the generator is a script that imports from its own folder
    generator = importlib.import_module("generate")
    monkeypatch.setattr(generator, "pages", lambda: contents(reference))
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check", "--target", str(target)])
    generator.main()
    (target / "facts.md").write_text("# Facts\n", encoding="utf-8")
    (target / "tables.md").unlink()
    (target / "old.md").write_text("# Old\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"run `make docs`: facts\.md, old\.md, tables\.md"):
        generator.main()


def test_everything_has_its_place(reference: Path) -> None:
    host = load_host()
    book = rule_book(host, RunOptions())
    pages = contents(reference)
    rules = "".join(text for name, text in pages.items() if name.startswith("rules/"))
    advisors = "".join(text for name, text in pages.items() if name.startswith("advisors/"))
    for compiled in book:
        assert f"## {compiled.id} {compiled.rule.name}\n" in rules
        assert all(f"| `{name}` |" in rules for name in compiled.rule.params)
    for name, advisor in host.advisors.items():
        if host.advisors.owner(name).builtin:
            assert f"## {name}\n" in advisors
            assert all(f"| `{column}` |" in advisors for column in advisor.declared())
    for name in host.facts:
        if host.facts.owner(name).builtin:
            assert f"## {name}\n" in pages["facts.md"]
    for name, schema in SCHEMAS.items():
        section = pages["tables.md"].partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert all(f"| `{field.name}` | {field.dtype} | {field.unit} |" in section for field in schema.columns)
    for code in (0, 1, 2, 3, 4):
        assert f"| {code} | {EXIT_CODES[code]} |" in pages["command-line.md"]
    for words, command in commands(cli, ("advisor",)):
        section = pages["command-line.md"].partition(f"## {' '.join(words)}\n")[2].partition("\n## ")[0]
        for option in command.params:
            assert not isinstance(option, click.Option) or f"`{option.opts[-1]}`" in section


def commands(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


# --- links


@cache
def anchors(text: str) -> set[str]:
    """The anchors of a page, by GitHub's rules."""
    found: dict[str, int] = {}
    result = set()
    for heading in re.findall(r"^#+ (.+?) *$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.MULTILINE):
        name = "".join(c for c in heading.lower() if c.isalnum() or c in " -_").replace(" ", "-")
        result.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return result


def broken(page: Path, text: str, read: Callable[[Path], str | None]) -> list[str]:
    """Relative links of a page that lead nowhere; ``read`` gives the text of a file, '' for a folder."""
    wrong = []
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        there = text if target == page else read(target)
        if there is None or (anchor and anchor not in anchors(there)):
            wrong.append(link)
    return wrong


def test_every_link_leads_somewhere(reference: Path) -> None:
    def read(path: Path) -> str | None:
        if path.is_relative_to(REFERENCE):
            path = reference / path.relative_to(REFERENCE)
        if path.is_dir():
            return ""
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None

    pages = {path: path.read_text(encoding="utf-8") for path in WRITTEN}
    pages |= {REFERENCE / name: text for name, text in contents(reference).items()}
    assert len(pages) > 15
    wrong = {str(page.relative_to(ROOT)): found for page, text in pages.items() if (found := broken(page, text, read))}
    assert wrong == {}


def test_the_link_check_would_notice() -> None:
    here = ROOT / "docs" / "index.md"
    text = "# Top\n[a](#top) [b](#nowhere) [c](missing.md) [d](https://example.org) `[e](missing.md)` ![f](no.png)"
    assert broken(here, text, lambda path: None) == ["#nowhere", "missing.md", "no.png"]
    assert broken(here, "[a](b.md#x-y_z1)", lambda path: "## X y_z.1!") == []
    assert anchors("# A\n## A\n```\n# no\n```") == {"a", "a-1"}


# --- what the written pages say of commands and rules


def test_commands_and_options_that_are_named_exist() -> None:
    known = {words: {name for option in command.params for name in option.opts} for words, command in every_command()}
    named = 0
    for page in WRITTEN:
        for call in re.findall(r"\badvisor ((?:[a-z][a-z-]*)(?: [^`|\n#]*)?)", page.read_text(encoding="utf-8")):
            words = call.split()
            path = next((p for p in known if list(p[1:]) == words[: len(p) - 1]), None)
            options = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-"]
            if path is None and not options and words[0] not in {p[1] for p in known}:
                continue  # prose: "an advisor measures"
            assert path is not None, f"{page.name}: advisor {call}"
            assert set(options) <= known[path], f"{page.name}: advisor {call}"
            named += 1
    assert named > 10


def every_command() -> list[tuple[tuple[str, ...], click.Command]]:
    return list(commands(cli, ("advisor",)))


def test_rules_that_are_named_exist() -> None:
    ids = {rule.id for rule in rule_book(load_host(), RunOptions())}
    named = {id_ for page in WRITTEN for id_ in re.findall(r"\b[A-Z]{2}\d{3}\b", page.read_text(encoding="utf-8"))}
    assert "HD001" in named
    assert named - {"MY001"} <= ids
