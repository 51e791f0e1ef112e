from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from advisor_core.contracts.problems import Problem, RuleFileError
from advisor_core.rules.files import yaml_file
from advisor_core.rules.files.yaml_file import parse_yaml, read_yaml


@pytest.fixture(params=["c", "python"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """libyaml and PyYAML's own parser must agree: not every machine has the first."""
    name: str = request.param
    if name == "c" and not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML without libyaml")
    monkeypatch.setattr(yaml_file, "_loader", lambda: yaml.CSafeLoader if name == "c" else yaml.SafeLoader)
    return name


def problems(text: str) -> list[str]:
    with pytest.raises(RuleFileError) as caught:
        parse_yaml(text, "f.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_plain_data_of_several_documents() -> None:
    first = "a: 1.10\nb: [1, -2, 1e3, .5]\n"
    second = "c: {d: true, e: 'on', f: null, g: ~}\nh: 中 文\ni: v1.0\n"
    text = f"{first}---\n---\n# nothing\n---\n{second}"
    one, two = parse_yaml(text, "f.yaml")
    assert one.data == {"a": 1.1, "b": [1, -2, 1000.0, 0.5]}
    assert [type(item) for item in one.data["b"]] == [int, int, float, float]
    assert two.data == {"c": {"d": True, "e": "on", "f": None, "g": None}, "h": "中 文", "i": "v1.0"}
    assert (one.line, two.line) == (1, 7)


@pytest.mark.parametrize(
    "value",
    [
        "on",
        "Off",
        "YES",
        "no",
        "y",
        "N",
        "True",
        "FALSE",
        "1:30",
        "010",
        "0x1F",
        "0b1",
        "1_000",
        ".inf",
        ".NaN",
        "2020-01-01",
        "=",
    ],
)
def test_text_that_other_readers_take_for_something_else(value: str) -> None:
    (problem,) = problems(f"a: 1\nkey: {value}\n")
    assert problem.startswith("f.yaml:2:6: some YAML readers take ")
    assert f'"{value}" in quotes' in problem
    assert parse_yaml(f'key: "{value}"', "f")[0].data == {"key": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  a: 1\n  a: 2\n", "f.yaml:4:3: key 'a' is given twice (first in line 3)"),
        ("a: &x 1\n", "f.yaml:1:4: anchors (&name) are not allowed (write the value out where it is needed)"),
        ("a: {b: *x}\n", "f.yaml:1:8: aliases (*name) are not allowed (write the value out)"),
        ("<<: {a: 1}\n", "f.yaml:1:1: merge keys (<<) are not allowed (write the values out)"),
        (
            "a: !!python/object:os.system x\n",
            "f.yaml:1:4: tags (tag:yaml.org,2002:python/object:os.system) are not allowed",
        ),
        ("a: !x [1]\n", "f.yaml:1:4: tags (!x) are not allowed"),
        ("a:\n  - b\n\tc: 1\n", "f.yaml:3:1: tab character (use spaces)"),
        ("a: 'x\ty'\n", "f.yaml:1:6: tab character (use spaces)"),
        ("a: \x07\n", "f.yaml:1:4: invisible or control character U+0007"),
        ("a: b\u202ec\n", "f.yaml:1:5: invisible or control character U+202E"),
        ("%YAML 1.1\n---\na: 1\n", "f.yaml:1:1: directives (%YAML, %TAG) are not allowed"),
        ("1: a\n", "f.yaml:1:1: key '1' is not text (write \"1\" in quotes)"),
        ("a: 1e999\n", "f.yaml:1:4: number 1e999 is too large"),
        ("? [a]\n: b\n", "f.yaml:1:3: a key must be a word"),
        ("中: {x: 1, x: 2}\n", "f.yaml:1:11: key 'x' is given twice (first in line 1)"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert problems(text) == [message]


def test_every_mistake_is_told() -> None:
    found = problems("a: on\nb: 010\na: 1\n")
    assert [line.split(":")[1] for line in found] == ["1", "2", "3"]


def test_broken_syntax_has_a_place() -> None:
    (problem,) = problems("a: [1\nb: 2\n")
    assert problem.startswith("f.yaml:2:2: ")
    (problem,) = problems("a: b: c\n")
    assert problem.startswith("f.yaml:1:5: mapping values are not allowed")


@pytest.mark.parametrize(
    "text", ["[" * 5000, "a: " + "[" * 21 + "]" * 21, "{a: " * 500 + "1" + "}" * 500, "- " * 3000 + "x"]
)
def test_deep_nesting_is_refused_at_once(text: str) -> None:
    (problem,) = problems(text)
    assert "nested deeper than 20 levels" in problem


def test_a_bomb_of_aliases_never_unfolds() -> None:
    text = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*{'a' if n == 0 else f'b{n - 1}'}, *a]\n" for n in range(40))
    assert all("not allowed" in problem for problem in problems(text))


def test_many_documents_are_refused() -> None:
    assert "more than 500 documents" in problems("--- a\n" * 600)[-1]


def test_files(write: Callable[..., Path]) -> None:
    def told(content: bytes) -> str:
        with pytest.raises(RuleFileError) as caught:
            read_yaml(write(content), "r.yaml")
        return str(caught.value)

    assert told(b"a: 1\nb: \xff\n") == "r.yaml:2:4: is not UTF-8"
    assert told(b"a: " + b"x" * 300_000) == "r.yaml: is larger than 256 kB (split the file)"
    assert read_yaml(write(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n"))[0].data == {"a": 1, "b": 2}
    with pytest.raises(RuleFileError, match="cannot be read: No such file"):
        read_yaml(Path("missing.yaml"))
    with pytest.raises(RuleFileError, match="cannot be read: Is a directory"):
        read_yaml(Path())


def test_places() -> None:
    (document,) = parse_yaml("top:\n  list:\n    - a: 1\n    - 中: xyz\n", "f")
    assert document.problem(("top", "list", 1, "中"), "m") == Problem("f", 4, 10, "m")
    assert document.problem(("top", "list", 1, "中"), "m", key=True).column == 7
    missing = document.problem(("top", "list", 0, "b", "c"), "m")
    assert (missing.line, missing.column) == (3, 7)
    assert document.get(("top", "list", 1, "中")) == "xyz"
    assert document.get(("top", "nothing", 1)) is None


@pytest.mark.parametrize(
    ("text", "offset", "place"),
    [
        ("k: abc def", 4, (1, 8)),
        ("k: 'abc def'", 4, (1, 9)),
        ('k: "中文 def"', 3, (1, 8)),
        ("k: >\n  abc\n  def", 4, (3, 3)),
        ("k: |-\n\n    abc\n    def", 5, (4, 5)),  # the text begins with the empty line
        ("k: abc\n  def", 4, (2, 3)),
        ("k: abc", 3, (1, 7)),
        ("k: 'a''b c'", 4, (1, 4)),  # after an escape: the start of the value
    ],
)
def test_places_inside_of_text(text: str, offset: int, place: tuple[int, int]) -> None:
    (document,) = parse_yaml(text, "f")
    problem = document.problem(("k",), "m", offset=offset)
    assert (problem.line, problem.column) == place
