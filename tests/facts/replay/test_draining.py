"""Operators that wait for the task queue before they wait for the device, against hand-made timelines."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from advisor_core.facts.host.launches import Launches
from advisor_core.facts.intervals import Layer
from advisor_core.facts.replay.draining import waiting_since
from advisor_core.vocabulary.vocabulary import Vocabulary

SKEW_NS = 7
MAIN, QUEUE = 1, 2
WORDS = Vocabulary("ascend", annotation=re.compile(r"^ProfilerStep#"))


def launched(*tasks: tuple[int, int], queued: bool = True) -> Launches:
    """``tasks``: when each was handed over and launched, device time."""
    entered, launch = (np.array(column, dtype=np.int64) for column in zip(*tasks, strict=True))
    row = np.arange(len(tasks)) if queued else np.full(len(tasks), -1)
    return Launches(pd.DataFrame({"entered_ns": entered, "launch_ns": launch, "enqueue_row": row}), SKEW_NS)


def events(*rows: tuple[str, int, int, int], mark: bool = False) -> pd.DataFrame:
    """``rows``: category, thread, start and end in device time. ``mark``: the first is that of a step."""
    category, thread, start, end = zip(*rows, strict=True)
    name = ["ProfilerStep#3" if mark and not row else "what" for row in range(len(rows))]
    start_ns = np.array(start, dtype=np.int64)
    duration_ns = np.array(end, dtype=np.int64) - start_ns
    return pd.DataFrame(
        {
            "category": category,
            "name": pd.Categorical(name),
            "thread": thread,
            "start_ns": start_ns + SKEW_NS,
            "duration_ns": duration_ns,
        }
    )


def begins(launches: Launches, host: pd.DataFrame, start: int = 900) -> int:
    """When the call in the last of the rows of ``host`` waits from."""
    row = len(host) - 1
    (found,) = waiting_since(Layer(np.array([start]), np.array([1000]), np.array([row])), launches, host, WORDS)
    return int(found)


CALL = ("runtime", MAIN, 900, 1000)
ITEM = ("cpu_op", MAIN, 500, 1010)


def test_an_operator_waits_from_its_beginning_where_the_queue_is_not_empty_then() -> None:
    """But for the 10 ns that it went on when the queue was empty."""
    host = events(ITEM, ("cpu_op", MAIN, 520, 1005), CALL)
    assert begins(launched((100, 200), (300, 890)), host) == 510


def test_what_is_handed_over_within_the_operator_is_its_own_work() -> None:
    assert begins(launched((100, 200), (600, 890)), events(ITEM, CALL)) == 610


@pytest.mark.parametrize(
    "launches",
    [
        launched((100, 200), (300, 450)),  # it was empty when the operator began
        launched((100, 200), (300, 950)),  # the call did not wait for the queue
        launched((100, 200), (300, 890), queued=False),
        launched((950, 970)),  # nothing had been handed over
    ],
)
def test_a_call_that_did_not_drain_the_queue_waits_from_where_it_begins(launches: Launches) -> None:
    assert begins(launches, events(ITEM, CALL)) == 900


def test_a_call_outside_of_operators_waits_from_where_it_begins() -> None:
    launches = launched((100, 200), (300, 890))
    assert begins(launches, events(("python_function", MAIN, 500, 1010), CALL)) == 900
    assert begins(launches, events(("cpu_op", QUEUE, 500, 1010), CALL)) == 900


def test_an_earlier_task_that_is_launched_last_is_waited_for_too() -> None:
    assert begins(launched((100, 890), (300, 400)), events(ITEM, CALL)) == 510


def test_a_mark_that_is_listed_among_the_operators_is_none() -> None:
    """Older exports list the mark of a step as an operator: all calls of the step lie within it."""
    launches = launched((100, 200), (300, 890))
    assert begins(launches, events(("cpu_op", MAIN, 0, 2000), CALL, mark=True)) == 900
    assert begins(launches, events(("cpu_op", MAIN, 0, 2000), ITEM, CALL, mark=True)) == 510
