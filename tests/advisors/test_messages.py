"""The advisors' own texts: every one that is asked for exists, every one that exists is asked for."""

from __future__ import annotations

import re
from pathlib import Path

from advisors.messages import _messages
from tests.advisors.build import host

ADVISORS = Path(__file__).parent.parent.parent / "advisors"


def asked() -> set[str]:
    """What looks like the id of a message in the modules and is no advisor."""
    modules = {path.stem for path in ADVISORS.iterdir() if path.suffix in ("", ".py")} | {
        name.split(".")[0] for name in _messages()
    }
    pattern = re.compile(rf'"((?:{"|".join(sorted(modules))})(?:\.[a-z0-9_]+)+)"')
    found = {name for module in ADVISORS.rglob("*.py") for name in pattern.findall(module.read_text(encoding="utf-8"))}
    others = set(host().advisors) | set(host().drawings) | {"messages.yaml"}
    return {name for name in found if name in _messages() or name not in others}


def test_messages_exist_and_are_used() -> None:
    names = asked()
    assert names - set(_messages()) == set()
    assert set(_messages()) - names == set()


def test_both_languages_have_the_same_fields() -> None:
    for name, text in _messages().items():
        assert sorted(re.findall(r"\{(\w+)\}", text.en)) == sorted(re.findall(r"\{(\w+)\}", text.zh)), name
        assert re.search(r"[一-鿿]", text.zh), name
