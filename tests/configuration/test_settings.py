"""Which files are read, which of two says more, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.configuration.model import Configuration
from advisor_core.configuration.settings import find_settings, read_settings
from advisor_core.contracts.problems import RuleFileError
from tests.conftest import ROOT


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_nearest_folder_has_the_settings(tmp_path: Path) -> None:
    write(tmp_path, "advisor.toml", 'lang = "zh"\n')
    write(tmp_path / "a", "pyproject.toml", '[tool.other]\nlang = "x"\n')
    assert find_settings(tmp_path / "a" / "b").values.lang == "zh"
    write(tmp_path / "a", "pyproject.toml", "[tool.npu-advisor]\nredact = true\n")
    found = find_settings(tmp_path / "a" / "b")
    assert (found.values.redact, found.values.lang) == (True, "en")
    assert (found.given("lang"), str(found.given("redact"))) == (None, "pyproject.toml:2")


def test_the_own_file_hides_keys_of_the_shared_one(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", '[tool.npu-advisor]\nlang = "zh"\nset."HD001.x" = 1\nset."HD002.x" = 2\n')
    write(tmp_path, "advisor.toml", "set.HD001.x = 3\n")
    found = find_settings(tmp_path)
    assert found.values.thresholds() == {"HD001.x": (("set", "HD001", "x"), 3)}
    assert (str(found.given("lang")), str(found.given("set"))) == ("pyproject.toml:2", "advisor.toml:1")
    assert [file.name for file in found.files] == ["advisor.toml", "pyproject.toml"]


def test_paths_begin_at_the_file(tmp_path: Path) -> None:
    write(tmp_path, "advisor.toml", 'output = "报告 1"\n')
    found = find_settings(tmp_path / "deep")
    assert found.path("output", str(found.values.output)) == tmp_path / "报告 1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('\nfail-on = ["high"]\n', "2:1: unknown key 'fail-on' (did you mean 'fail_on'?)"),
        ('lang = "cn"\n', "1:1: 'cn' is not one of en, zh"),
        ('fail_on = "high"\n', '1:1: expected a list, found "high"'),
        ("[ignore]\nDQ003 = 1\n", "expected a list or text"),
        ("redact = 1\n", "1:1: expected true or false, found 1"),
        ("output = 2020-01-01\nlang = 1\n", "2:1: "),
    ],
)
def test_mistakes_have_their_line(text: str, said: str, tmp_path: Path) -> None:
    write(tmp_path, "advisor.toml", text)
    with pytest.raises(RuleFileError) as caught:
        find_settings(tmp_path)
    assert "advisor.toml:" in str(caught.value) and said in str(caught.value)


def test_one_file(tmp_path: Path) -> None:
    write(tmp_path, "ours.toml", 'lang = "zh"\n')
    assert read_settings(tmp_path / "ours.toml").values.lang == "zh"
    write(tmp_path, "pyproject.toml", "[project]\n")
    assert not read_settings(tmp_path / "pyproject.toml").files


def test_the_page_names_every_key() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [key for key in Configuration.model_fields if f"`{key}`" not in page] == []
