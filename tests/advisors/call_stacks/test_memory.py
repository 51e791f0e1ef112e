"""Memory at its peak by the calls that allocated it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.renderers import Flame, FlameView, TableView
from advisor_core.api.testing import Scene
from advisor_core.facts.memory import memory_peak
from advisor_core.facts.store import FactStore
from advisors.call_stacks.memory import memory
from tests.advisors.call_stacks.test_flames import stacks
from tests.advisors.real import real_rank

MAIN, OTHER = 100, 101
MIB = 1024 * 1024


def drawn(store: FactStore) -> tuple[Flame, list[list[object]]]:
    view, table = memory.draw(store.view(memory.needs, memory.wants))
    assert isinstance(view, FlameView) and isinstance(table, TableView) and view.unit == "B"
    return view.data, [list(row) for row in table.data.rows]


def scene() -> Scene:
    """A module allocates 30 MiB at 20 us, the program 10 MiB at 60 us, which is the peak; 5 MiB are older."""
    made = Scene().kernel(200, 10)
    made.event("python_function", "train.py(10): train", 0, 100, MAIN)
    made.event("python_function", "nn.Module: Linear_3", 10, 30, MAIN)
    made.event("python_function", "torch/nn/modules/linear.py(124): forward", 12, 26, MAIN)
    made.event("cpu_op", "aten::mm", 15, 20, MAIN).event("cpu_op", "aten::empty", 55, 10, MAIN)
    allocation(made, "aten::mm", 30, 20, None)
    allocation(made, "aten::empty", 10, 60, 80)
    for at, allocated in ((1, 5), (20, 35), (60, 45), (80, 35)):
        made.add("memory_record", component="PTA", time_us=at, allocated_bytes=allocated * MIB, reserved_bytes=64 * MIB)
    return made


def allocation(made: Scene, name: str, size: int, at: float, released: float | None) -> None:
    ends = {} if released is None else {"release_us": released}
    made.add("operator_memory", name=name, bytes=float(size * MIB), allocation_us=at, **ends)


def test_the_peak_is_divided_by_what_allocated_it() -> None:
    flame, rows = drawn(scene().store())
    assert {name: size * 1000 / MIB for name, size in stacks(flame).items()} == {
        "train.py(10): train;nn.Module: Linear;torch/nn/modules/linear.py(124): forward;aten::mm": 30,
        "train.py(10): train;aten::empty": 10,
        "": 5,
    }
    assert rows == [
        [30 * MIB, "aten::mm", "Linear", "train.py(10): train", 40_000, None],
        [10 * MIB, "aten::empty", None, "train.py(10): train", 0, 20_000],
    ]


def test_a_block_that_two_threads_may_have_allocated_has_no_stack() -> None:
    made = scene().event("cpu_op", "aten::mm", 16, 20, OTHER)
    flame, rows = drawn(made.store())
    assert stacks(flame)["aten::mm"] * 1000 == 30 * MIB
    assert rows[0][1:3] == ["aten::mm", None] and "Linear" not in rows[0]


def test_an_operator_of_another_name_at_that_time_is_not_taken() -> None:
    made = scene()
    made.rows["operator_memory"][0]["name"] = "aten::addmm"
    flame, _ = drawn(made.store())
    assert stacks(flame)["aten::addmm"] * 1000 == 30 * MIB


@pytest.mark.parametrize("name", ["alexnet-ddp-text-level1", "alexnet-ddp-text-level0", "alexnet-ddp-db-level1"])
def test_real_blocks_have_stacks_and_add_up(profiles: Path, name: str) -> None:
    """AlexNet: the largest weight, 9216 x 4096 in FP32, has its gradient from Linear and a copy by the optimizer."""
    store = real_rank(profiles, name, 0)
    flame, rows = drawn(store)
    assert sum(took for caller, _, took in flame.nodes if caller < 0) == store[memory_peak].allocated_bytes
    largest = [row[:3] for row in rows if isinstance(row[0], int) and row[0] >= 9216 * 4096 * 4]
    assert sorted(map(str, (row[1:] for row in largest))) == ["['aten::_foreach_add', None]", "['aten::mm', 'Linear']"]
    assert all("main.py(375): train" in str(row[3]) for row in rows[:10])
