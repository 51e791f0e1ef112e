"""What a profile may have to record, and the profilers that ``advisor collect`` writes configurations for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model, Text
from advisor_core.text.packaged import packaged_yaml


class CaptureOption(Model):
    """``name``: what `Unavailable.options` calls it. ``default``: part of every configuration; the others only where a
    rule needs them. ``provides``: what it records. ``cost``: what it costs while profiling and on disk. ``settings``:
    how each profiler spells it; one that is not named cannot record it. ``notes``: what is different with a profiler.
    """

    name: str = Field(min_length=1)
    default: bool = False
    provides: Text
    cost: Text
    settings: Mapping[str, str]
    notes: Mapping[str, Text] = Field(default_factory=dict)


class CaptureTool(Model):
    """A profiler. ``template``: a Jinja file in the folder ``templates`` of ``package``, which writes its configuration
    from a `collecting.plan.Plan`. ``remarks``: what to know before using it. ``window``: what it counts.
    ``every_rank``: it records all processes of a service. ``decodes``: what it records decodes, whatever a result says.
    ``roles``: each role of reinforcement learning with a profiler of its own, and the phases that it runs."""

    name: str = Field(min_length=1)
    title: Text
    package: str
    template: str
    remarks: tuple[str, ...] = ()
    window: Literal["steps", "rl_steps", "seconds"] = "steps"
    every_rank: bool = False
    decodes: bool = False
    roles: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)


def read_options(package: str, name: str) -> tuple[CaptureOption, ...]:
    """The options of a YAML file of a package, by name."""
    read = packaged_yaml(package, name)
    return tuple(CaptureOption.model_validate({"name": key, **option}) for key, option in read.items())


def read_tools(package: str, name: str) -> tuple[CaptureTool, ...]:
    """The profilers of a YAML file of a package, by name."""
    read = packaged_yaml(package, name)
    return tuple(CaptureTool.model_validate({"name": key, "package": package, **tool}) for key, tool in read.items())
