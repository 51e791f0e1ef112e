"""The tools that take a profile. Each is two files in ``tools/``: how it is told to record, as a template of what is
printed (``NAME.py.j2``, ``NAME.sh.j2``), and what is to know about it, in ``NAME.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import Field

from advisor_core.collecting import TOOLS
from advisor_core.text.base import Model, Text
from advisor_core.text.messages import message
from advisor_core.text.packaged import packaged_yaml

_PACKAGE, _FOLDER = "advisor_core.collecting", "tools"


class Note(Text):
    """A note on a configuration. ``only``: with a rollout among the recorded roles, or without one."""

    only: Literal["", "rollout", "no_rollout"] = ""


class Role(Model):
    """A role of a job that has a profiler of its own. ``phases``: what it runs. ``usual``: it is recorded where no
    phase is known."""

    phases: Sequence[str]
    usual: bool = False


class Tool(Model):
    """``name`` is that of its files, and what ``advisor collect --for`` takes. ``template``: the file that is filled.

    ``window``: what it counts: the calls of a schedule, the training steps of a reinforcement learning job, or seconds.
    ``framework``: the only one whose programs it records.
    ``service``: it records a service, which decodes, with every process of it. ``roles``: those that are chosen from.
    ``notes``: in the order in which they are printed; a word names a message ``collect.note...`` that several tools
    share. ``comments``: what its template puts between the lines of code.
    """

    name: str
    template: str
    title: Text
    window: Literal["steps", "training_steps", "seconds"] = "steps"
    framework: str = ""
    service: bool = False
    roles: Mapping[str, Role] = Field(default_factory=dict)
    notes: Sequence[str | Note]
    comments: Mapping[str, Text] = Field(default_factory=dict)

    @property
    def language(self) -> str:
        """The ending of what is printed: ``py`` or ``sh``."""
        return self.template.split(".")[1]

    def notes_for(self, roles: Sequence[str], **values: object) -> list[Text]:
        """The notes on a configuration that records these roles, with their fields filled."""
        other = "no_rollout" if "rollout" in roles else "rollout"
        return [
            message(f"collect.note.{note}", **values) if isinstance(note, str) else note.format(**values)
            for note in self.notes
            if isinstance(note, str) or note.only != other
        ]

    def comment(self, name: str, **values: object) -> Text:
        """A comment of its own, else one that several tools share."""
        own = self.comments.get(name)
        return own.format(**values) if own is not None else message(f"collect.{name}", **values)


@cache
def tools() -> Mapping[str, Tool]:
    """Every tool by its name. Raises ValueError for one that has not exactly one template."""
    files = [file.name for file in resources.files(_PACKAGE).joinpath(_FOLDER).iterdir()]
    found = {}
    for name in TOOLS:
        templates = [file for file in files if file.endswith(".j2") and file.split(".")[0] == name]
        if len(templates) != 1:
            raise ValueError(f"{_FOLDER}/{name}.yaml needs one template beside it, and has {len(templates)}")
        entry = packaged_yaml(_PACKAGE, f"{_FOLDER}/{name}.yaml")
        found[name] = Tool.model_validate({**entry, "name": name, "template": templates[0]})
    return found
