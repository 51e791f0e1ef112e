"""The lines of keys, and what is wrong with a file that is no TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.configuration.toml_file import key_places, read_toml
from advisor_core.contracts.problems import RuleFileError

VALUES = [
    "1",
    '"a # b"',
    "[\n  1,\n  # [2]\n  3,\n]",
    '"""\n[heading]\nkey = 1\n"""',
    "'''\nlast = ']'\n'''",
    "{inner = 1, list = [1, 2]}",
    '[\n  "x[extra]>=1",\n  "y",\n]  # end',
]
BETWEEN = ["", "# key = 1", "   "]


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(BETWEEN), max_size=2), st.sampled_from(["", " ", "\t"]), st.sampled_from(VALUES)
        ),
        max_size=8,
    ),
    st.integers(0, 8),
)
def test_each_key_is_found_where_it_was_written(entries: list[tuple[list[str], str, str]], headings: int) -> None:
    lines: list[str] = []
    wanted: dict[tuple[str, ...], tuple[int, int]] = {}
    heading: tuple[str, ...] = ()
    for number, (before, indent, value) in enumerate(entries):
        lines += before
        if number < headings and number % 2:
            heading = ("tool", f"table.{number}")
            lines.append(f'[ tool . "table.{number}" ]')
            wanted[heading] = (len(lines), 1)
        wanted[*heading, f"key{number}"] = (len(lines) + 1, len(indent) + 1)
        lines += f"{indent}key{number} = {value}".split("\n")
    text = "\n".join(lines)
    tomllib.loads(text)  # what is tried is TOML
    found = key_places(text)
    assert {path: found[path] for path in wanted} == wanted


def test_a_table_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_bytes(b'\xef\xbb\xbf[project]\r\nname = "x"\r\n[tool.npu-advisor.ignore]\r\nDQ003 = "why"\r\n')
    document = read_toml(file, ("tool", "npu-advisor"))
    assert document is not None and document.data == {"ignore": {"DQ003": "why"}}
    assert document.values["ignore", "DQ003"] == (4, 1)
    assert read_toml(file, ("tool", "other")) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = 1\na = 2\n", ":2:6: is not TOML: Cannot overwrite a value"),
        (b"a = [1,\n", ": is not TOML"),
        (b"a = 1\nb = '\xb2\xe2'\n", ":2:1: is not UTF-8"),
    ],
)
def test_what_is_no_toml(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "advisor.toml"
    file.write_bytes(content)
    with pytest.raises(RuleFileError) as caught:
        read_toml(file)
    assert str(caught.value).startswith(str(file)) and said.lower() in str(caught.value).lower()
