"""The loader of packaged YAML is a quick way round PyYAML's safe one, and must read the same, apart from dates."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from advisor_core.text.packaged import yaml_beside
from advisor_core.text.plain_loader import PlainLoader
from tests.advisors.build import ROOT

OURS = [
    file
    for folder in ("advisor_core", "advisors", "reports", "rulesets/names")
    for file in sorted((ROOT / folder).rglob("*.yaml"))
]


class SafeLoader(yaml.SafeLoader):
    """PyYAML's, to which a date is text."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, Any]]]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def test_our_files_read_as_by_the_safe_loader() -> None:
    assert OURS
    for file in OURS:
        text = file.read_text(encoding="utf-8")
        assert repr(list(yaml.load_all(text, Loader=PlainLoader))) == repr(
            list(yaml.load_all(text, Loader=SafeLoader))
        ), file


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 010\nb: 1:30\nc: on\nd: 2024-01-02\ne: ~\nf: 1e3\ng: .5\nh: 'no'\ni: ''\nj:",
        "a: &x {b: 1}\nc: {<<: *x, d: 2}\ne: [*x, *x]",
        "1: one\ntrue: yes\nnull: none",
        "a: !!str 1\nb: !!int '2'\nc: 二\nd: \"\\u4e8c\"",
    ],
)
def test_what_yaml_has_more_reads_the_same(text: str) -> None:
    assert repr(yaml.load(text, Loader=PlainLoader)) == repr(yaml.load(text, Loader=SafeLoader))


def test_a_tag_that_runs_code_is_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        yaml.load("a: !!python/name:os.system ''", Loader=PlainLoader)


def test_a_file_reads_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for file in OURS:
        if file.name == "catalogue.yaml":  # several documents
            continue
        expected = repr(yaml.load(file.read_text(encoding="utf-8"), Loader=SafeLoader))
        assert repr(yaml_beside(file)) == repr(yaml_beside(file)) == expected, file
