"""Kernels and collectives of the device, with their class and their step."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.doubt import DOUBT
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import narrowed
from advisor_core.contracts.missing import Unanswered, Unavailable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import COMMUNICATION_TASKS, DEVICE_TASKS, KERNELS, TableSchema
from advisor_core.facts.matching import matching
from advisor_core.text.messages import message
from advisor_core.vocabulary.operator_class import AI_CPU, OTHER, OperatorClasses, kernel_type
from advisor_core.vocabulary.vocabulary import Vocabulary

COLUMNS = (
    Column("table", "text", "", "name of the canonical table that it was read from"),
    Column("row", "int", "", "row number in that table"),
    Column("step", "int", "", "step id, -1 none"),
    Column("start_ns", "int", "ns", "start"),
    Column("end_ns", "int", "ns", "end"),
    Column("communication", "bool", "", "it is a collective or a send or receive"),
    Column("operator_class", "text", "", "class in the ledger"),
    Column("type", "text", "", "operator type, '' where it is not recorded"),
    Column("name", "text", "", "kernel or operation"),
    Column("core", "text", "", "core type, as in kernels"),
    Column("stream", "int", "", "stream id, -1 unknown"),
)


@fact("work", needs=(PROFILE,), wants=(KERNELS, DEVICE_TASKS, COMMUNICATION_TASKS, DOUBT), columns=COLUMNS)
def work(facts: Facts) -> pd.DataFrame:
    """Kernels and collectives in order of start.

    Read from kernel_details.csv; without it from the lanes of the trace, which name no types.
    """
    words = facts[PROFILE].vocabulary
    kernels = facts.get(KERNELS)
    if kernels is not None:
        frame = _from_kernels(kernels)
    else:
        frame = _from_trace(facts.get(DEVICE_TASKS), facts.get(COMMUNICATION_TASKS), words)
        if frame.empty:
            raise _nothing(facts)
    frame["operator_class"] = classify(words.operator_classes, frame["type"], frame["name"], frame["core"])
    frame.loc[frame["communication"], "operator_class"] = OTHER
    return frame.sort_values(["start_ns", "end_ns", "row"], kind="stable", ignore_index=True)


def _from_kernels(kernels: pd.DataFrame) -> pd.DataFrame:
    frame = narrowed(kernels, ("step", "start_ns", "type", "name", "core", "stream"))
    frame["table"] = pd.Categorical.from_codes(
        np.zeros(len(kernels), dtype=np.int8), categories=pd.Index([KERNELS.name])
    )
    frame["row"] = np.arange(len(kernels))
    frame["end_ns"] = kernels["start_ns"] + kernels["duration_ns"]
    frame["communication"] = kernels["core"] == "COMMUNICATION"
    return frame


def _nothing(facts: Facts) -> Unanswered:
    """The reason why there is no task: because the kernels are withheld, or because nothing was recorded."""
    doubt, kernels = facts.get(DOUBT), facts.missing(KERNELS)
    if doubt is not None and KERNELS.name in doubt.withheld and kernels is not None:
        return kernels.error()
    return Unavailable(message("work.none"), message("work.none.collect"), ("device",))


def computing_tasks(tasks: pd.DataFrame, words: Vocabulary) -> pd.Series:
    """Mask of the rows of ``device_tasks`` that compute: by their type, and where that tells no kind unless the name is
    that of a copy, a wait or a mark."""
    other = (words.copy_tasks, words.wait_tasks, words.plane_marks)
    named = np.logical_or.reduce([matching(tasks["name"], pattern) for pattern in other])
    known, untold = (tasks["task_type"].isin(types) for types in (words.compute_tasks, words.untold_tasks))
    computing: pd.Series = known | (untold & ~named)
    return computing


def _from_trace(tasks: pd.DataFrame | None, collectives: pd.DataFrame | None, words: Vocabulary) -> pd.DataFrame:
    parts = []
    if tasks is not None:
        compute = tasks[computing_tasks(tasks, words)]
        parts.append(_lane(compute, DEVICE_TASKS).assign(core=compute["task_type"], stream=compute["stream"]))
    if collectives is not None:
        whole = collectives[collectives["plane"] < 0]
        parts.append(_lane(whole, COMMUNICATION_TASKS).assign(core="COMMUNICATION", stream=-1))
    if not parts:
        return pd.DataFrame()
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(**{name: frame[name].astype("category") for name in ("table", "type", "name", "core")})


def _lane(rows: pd.DataFrame, table: TableSchema) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "table": table.name,
            "row": rows.index.to_numpy(),
            "step": -1,
            "start_ns": rows["start_ns"],
            "end_ns": rows["start_ns"] + rows["duration_ns"],
            "communication": table is COMMUNICATION_TASKS,
            "type": "",
            "name": rows["name"].astype(str),
        }
    )


def operator_types(frame: pd.DataFrame) -> pd.Series:
    """The operator types of ``work``, categorical; where none is recorded, as at level 0, what the name of the kernel
    ends in."""
    recorded, names = frame["type"], frame["name"]
    if (recorded != "").all():
        return recorded
    ends = np.array([kernel_type(str(name)) for name in names.array.categories], dtype=object)
    types = np.where(recorded == "", ends[names.array.codes], recorded.astype(object).to_numpy())
    return pd.Series(pd.Categorical(types), index=frame.index)


def classify(classes: OperatorClasses, types: pd.Series, names: pd.Series, cores: pd.Series) -> pd.Series:
    """Class per kernel (categorical, categories = the names of the classes). Every distinct name is looked up once."""
    numbers = {name: number for number, name in enumerate(classes.names)}
    by_type = types.array.codes
    texts = [str(text) for text in types.array.categories]
    type_class = np.array([numbers[classes.class_of(text)] if text else -1 for text in texts], dtype=np.int64)
    chosen = np.where(by_type < 0, -1, type_class[by_type]) if len(type_class) else np.full(len(types), -1)
    untold = np.flatnonzero(chosen < 0)
    if len(untold):
        codes, place = np.unique(names.array.codes[untold], return_inverse=True)
        kinds = [kernel_type(str(name)) for name in names.array.categories[codes]]
        name_class = np.array([numbers[classes.class_of(kind)] for kind in kinds], dtype=np.int64)
        chosen[untold] = name_class[place]
    chosen = np.where(cores.to_numpy() == "AI_CPU", numbers[AI_CPU], chosen)
    return pd.Series(pd.Categorical.from_codes(chosen, categories=pd.Index(classes.names)), index=types.index)
