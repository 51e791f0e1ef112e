"""Capture options: contents of a profile, and how profilers spell them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from advisor_core.text.base import Model, Text
from advisor_core.text.packaged import packaged_yaml


class CaptureOption(Model):
    """``name``: what `Unavailable.options` calls it, after the name of the vendor where it has one. ``vendor``: whose
    devices it is about; '' those of any. ``default``: part of every configuration; the others only where a
    rule needs them. ``provides``: what it records. ``cost``: what it costs while profiling and on disk. ``settings``:
    how each profiler spells it; one that is not named cannot record it. ``notes``: what is different with a profiler.
    """

    name: str = Field(min_length=1)
    vendor: str = ""
    default: bool = False
    provides: Text
    cost: Text
    settings: Mapping[str, str]
    notes: Mapping[str, Text] = Field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its name in `Unavailable.options`."""
        return self.name.removeprefix(f"{self.vendor}/")


def read_options(package: str, name: str, vendor: str) -> tuple[CaptureOption, ...]:
    """The options of a vendor's devices from a YAML file of a package, where they stand by id."""
    read = packaged_yaml(package, name)
    return tuple(
        CaptureOption.model_validate({"name": f"{vendor}/{key}", "vendor": vendor, **option})
        for key, option in read.items()
    )
