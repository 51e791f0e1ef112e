"""docs/the-ledger.md names every leaf that the code can book under, and no other."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.facts.communication import state as collective_state
from advisor_core.facts.ledger import bookings, totals
from advisor_core.plugins.host import load_host
from advisor_core.result.run import RunResult
from advisor_core.vocabulary.host_labels import ACTIVITIES
from tests.conftest import ROOT

LEAF = re.compile(r"(compute|communication|idle)/[a-z_ /]*[a-zN]")
"""A path of the ledger, with N for a rank."""

CLASSES = load_host().vocabulary("ascend").operator_classes.names


def page() -> str:
    return (ROOT / "docs" / "the-ledger.md").read_text(encoding="utf-8")


def named() -> list[str]:
    """Leaves in the first column of the page's tables, in order."""
    return re.findall(r"^\| `([^`]+)` \|", page(), re.MULTILINE)


def of_the_code() -> set[str]:
    """The leaves that `bookings` and `totals` write down: their text constants that are paths, and those that are put
    together."""
    source = inspect.getsource(bookings)
    constants = {
        node.value
        for module in (bookings, totals)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and LEAF.fullmatch(node.value)
    }
    hosts = {bookings.host_path(activity) for activity in ACTIVITIES}
    words = re.search(r'word = "(\w+)" if .* else "([\w ]+)"', source)
    assert words, "the names of ranks are put together elsewhere"
    waits = {f"communication/wait/{word} N" for word in words.groups()}
    return constants | hosts | waits | {f"compute/{name}" for name in CLASSES}


def test_the_page_names_the_leaves_of_the_code() -> None:
    leaves = of_the_code()
    assert {"compute/other", "communication/transmit", "idle/host/gc", "idle/unknown"} <= leaves
    spans = set(re.findall(r"`([^`\n]+)`", page()))
    assert leaves - spans == set()
    assert {span for span in spans if LEAF.fullmatch(span)} - leaves == set()


def test_the_page_tells_classes_and_activities_in_their_order() -> None:
    order = [name for name in named() if name != "compute/unknown"]  # of the exporter's parts, no class
    assert [name.removeprefix("compute/") for name in order if name.startswith("compute/")] == list(CLASSES)
    activities = [bookings.host_path(activity) for activity in ACTIVITIES]
    assert [name for name in order if name in activities] == activities


def test_the_page_quotes_the_limits_of_the_code() -> None:
    assert bookings.LATENCY_NS == 30_000 and "30 µs" in page()
    assert collective_state.POINT_TO_POINT.search("hcom_send_") and collective_state.POINT_TO_POINT.search("receive")


def test_a_real_run_books_under_leaves_of_the_page(advisor_sample: Path, advisor_run: Callable[..., RunResult]) -> None:
    result = advisor_run(advisor_sample, select=("DQ",))
    booked = {re.sub(r"rank \d+$", "rank N", entry.path) for step in result.ledger for entry in step.entries}
    assert len(booked) > 15
    assert booked <= set(named()) | {"idle/unknown"}


@pytest.mark.parametrize("leaf", ["idle/unknown", "communication/unknown"])
def test_what_is_unknown_is_said(leaf: str) -> None:
    assert f"`{leaf}`" in page()
