"""The paths that rules may claim are those that the ledger books."""

from __future__ import annotations

import pytest

from advisor_core.contracts.ledger_paths import LedgerPaths
from advisor_core.plugins.host import load_host
from advisor_core.vocabulary.host_labels import ACTIVITIES

PATHS = load_host().ledger_paths


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
    assert (path in PATHS) is known


def test_every_operator_class_and_host_activity_is_a_path() -> None:
    classes = load_host().vocabulary("ascend").operator_classes.names
    assert {f"compute/{name}" for name in classes} <= PATHS.all
    assert {f"idle/host/{name}" for name in ACTIVITIES if name != "sync"} <= PATHS.all


def test_any_class_may_be_claimed_where_none_is_known() -> None:
    assert "compute/of_my_own" in LedgerPaths()
    assert "compute/of_my_own/part" not in LedgerPaths()
    assert "compute/of_my_own" not in LedgerPaths(classes=("matmul",))
