"""Say where events of a trace are lost, by the ids with which events name one another.

The profiler gives every operator an id, every call of the runtime and every task of a device a correlation id, and
counts both upwards. An event without its id lost it. An id within the range of the recorded ones that names nothing
tells of a lost event; one outside of it, of what began before the recording. Steps are numbered one by one. In twelve
real traces no id and no step is missing.
"""

from __future__ import annotations

from advisor_core.loaders.kineto.events import Columns
from advisor_core.loaders.kineto.host import Host
from advisor_core.loaders.readers.ids import lost_ids
from advisor_core.loaders.readers.problems import Problems
from advisor_core.text.messages import message


def check(tasks: Columns, host: Host, problems: Problems) -> None:
    """``tasks``: of all devices, without waits, which no call need have asked for."""
    operators, calls = host.of("cpu_op"), host.of("runtime")
    namable = operators | host.of("user_annotation")
    external, correlation = host.columns["external"], host.columns["correlation"]
    bare = int((external[operators] < 0).sum() + (correlation[calls] < 0).sum() + (tasks["correlation"] < 0).sum())
    if bare:
        problems.say("warning", message("kineto.without_id", file=problems.file, events=bare))
    # traces of 2022 give as the operator's id the correlation id, which names none
    named = tasks["external"][tasks["external"] != tasks["correlation"]]
    lost = {
        "kineto.operators_lost": lost_ids(named, external[namable]),
        "kineto.calls_lost": lost_ids(tasks["correlation"], correlation[calls]),
    }
    for key, count in lost.items():
        if count:
            problems.say("warning", message(key, file=problems.file, tasks=count))
    steps = host.steps()["step"].unique()
    if len(steps) and (absent := int(steps.max() - steps.min()) + 1 - len(steps)):
        problems.say("warning", message("kineto.steps_lost", file=problems.file, steps=absent, first=int(steps.min()),
            last=int(steps.max())))  # fmt: skip
