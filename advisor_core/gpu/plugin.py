"""Registers the capture options of GPUs, by the same hooks as any plugin's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_core.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor_core.contracts.capturing import CaptureOption
    from advisor_core.contracts.registry import Registry

PACKAGE = "advisor_core.gpu"


@hookimpl
def advisor_register_capture_options(registry: Registry[CaptureOption]) -> None:
    from advisor_core.contracts.capturing import read_options

    registry.add(*read_options(PACKAGE, "capture_options.yaml", "gpu"))
