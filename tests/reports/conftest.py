"""The results that the renderers are tried on."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests import report_fixtures


@pytest.fixture(scope="session")
def example() -> ModuleType:
    return report_fixtures
