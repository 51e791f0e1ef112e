"""Where a measurement is: an advisor's name says which module declares it."""

from __future__ import annotations

from pathlib import Path

from tests.advisors.build import host

ADVISORS = Path(__file__).parent.parent.parent / "advisors"


def test_an_advisor_is_in_the_module_of_its_name() -> None:
    """``host_dispatch.idle`` is in host_dispatch/idle.py, or in host_dispatch.py where its bottleneck is one module."""
    for name in host().advisors:
        bottleneck, measurement = name.split(".")
        package = ADVISORS / bottleneck
        module = package / f"{measurement}.py" if package.is_dir() else package.with_suffix(".py")
        assert f'"{name}"' in module.read_text(encoding="utf-8"), name
