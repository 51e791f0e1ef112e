"""Helpers for those who write rules and plugins: small tables, facts over them, a rank written down event by event,
one rule judged over it or on a few rows.

::

    from advisor_core.api.facts import ledger
    from advisor_core.api.testing import Scene, judge_rule

    scene = Scene().step(1, 0, 600).kernel(0, 100).kernel(400, 200, launched=390)
    assert scene.store()[ledger]["path"].tolist()[0] == "compute/matmul"
    assert judge_rule("HD001", scene.store()).state == "fail"

The pytest fixtures of `advisor_core.testing.pytest_plugin` come with the installation.
"""

from __future__ import annotations

from advisor_core.testing.judging import JudgedRule, judge_rows, judge_rule
from advisor_core.testing.scene import Scene
from advisor_core.testing.scene_words import ASCEND, GPU, SceneWords
from advisor_core.testing.tables import fact_store, measure, profile, table

__all__ = [
    "ASCEND",
    "GPU",
    "JudgedRule",
    "Scene",
    "SceneWords",
    "fact_store",
    "judge_rows",
    "judge_rule",
    "measure",
    "profile",
    "table",
]
