"""The paths that rules may claim are those that the ledger books."""

from __future__ import annotations

import pytest

from advisor_core.contracts.ledger_paths import is_ledger_path, ledger_paths
from advisor_core.facts.host.activity import ACTIVITIES
from advisor_core.vocabulary.operator_class import classes


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("idle", True),
        ("idle/host/framework", True),
        ("communication/wait/rank 17", True),
        ("communication/wait/{{ late }}", True),
        ("compute/{{ operator_class }}", True),
        ("{{ leaf }}", True),
        ("idel/hots", False),
        ("idle/host/framework/x", False),
        ("idle/{{ a }}/x", False),
        ("compute/attentions", False),
    ],
)
def test_paths(path: str, known: bool) -> None:
    assert is_ledger_path(path) is known


def test_every_operator_class_and_host_activity_is_a_path() -> None:
    assert {f"compute/{name}" for name in classes()} <= ledger_paths()
    assert {f"idle/host/{name}" for name in ACTIVITIES if name != "sync"} <= ledger_paths()
