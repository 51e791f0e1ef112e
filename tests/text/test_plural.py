"""English words that fit a count, in the texts of the host, of the advisors and of reports."""

from __future__ import annotations

import doctest
import re

import numpy as np
import pytest

from advisor_core.text import plural
from advisor_core.text.base import Text
from advisor_core.text.packaged import packaged_yaml
from tests.conftest import ROOT

FILES = [
    ("advisor_core.text", "messages.yaml"),
    ("advisor_core.text", "advice.yaml"),
    ("advisors", "messages.yaml"),
    *((f"advisors.{file.parent.name}", file.name) for file in sorted(ROOT.glob("advisors/*/messages.yaml"))),
    ("reports", "locale.yaml"),
]
FIELD = re.compile(r"(?<!\{)\{(\w+)")
CHOICE = re.compile(r"\{(\w+):[^{}]*(?:\{\w+\}[^{}]*)*\|")

TEXTS = [
    pytest.param(Text(**texts), id=name)
    for package, file in FILES
    for name, texts in packaged_yaml(package, file).items()
    if CHOICE.search(texts["en"])
]


def test_examples() -> None:
    assert doctest.testmod(plural).failed == 0


@pytest.mark.parametrize("count", [1, np.int64(1)])
def test_one(count: object) -> None:
    assert Text(en="{n:row is|rows are}", zh="{n}").format(n=count).en == "row is"


@pytest.mark.parametrize("count", [0, 2, 1.5, None, True, float("nan")])
def test_many(count: object) -> None:
    assert plural.plural(count, "row is", "rows are") == "rows are"


def test_numbers_keep_their_own_formats() -> None:
    assert Text(en="{n:,} {n:03d} {n}", zh="").format(n=1234).en == "1,234 1234 1234"


@pytest.mark.parametrize("text", TEXTS)
def test_texts_have_both_forms(text: Text) -> None:
    counts = {match[1] for match in CHOICE.finditer(text.en)}
    fields = {match[1] for match in FIELD.finditer(text.en + text.zh)}
    one, many = (text.format(**{field: number if field in counts else "x" for field in fields}).en for number in (1, 2))
    assert one.replace("1", "2") != many
    assert "|" not in one + many


@pytest.mark.parametrize("text", TEXTS)
def test_chinese_has_no_forms(text: Text) -> None:
    assert not CHOICE.search(text.zh)
