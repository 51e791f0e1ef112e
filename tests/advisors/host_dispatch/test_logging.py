"""HD011: the log level."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import judge_rule
from tests.advisors.host_dispatch.scenes import busy


@pytest.mark.parametrize(
    ("variables", "state"),
    [
        ({"ASCEND_GLOBAL_LOG_LEVEL": "1"}, "fail"),
        ({"ASCEND_GLOBAL_LOG_LEVEL": "3"}, "pass"),
        ({"ASCEND_GLOBAL_LOG_LEVEL": ""}, "pass"),
        ({}, "cannot_answer"),
    ],
)
def test_log_level(variables: dict[str, str], state: str) -> None:
    assert judge_rule("HD011", busy().store(variables=variables)).state == state
