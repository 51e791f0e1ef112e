"""Memory of compiled graphs: the most that is alive at once, and the operators that take it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import Scene
from advisors.memory.graphs import graphs

Row = tuple[int, int, int]
rows = st.lists(st.tuples(st.integers(0, 12), st.integers(-1, 12), st.integers(1, 9)), min_size=1, max_size=12)


def shown(*operators: Row, total: int | None = None, model: str = "0") -> tuple[list[dict[str, Any]], ...]:
    """The rows of both tables, by heading; ``operators``: first, last and size of each."""
    scene = Scene().kernel(0, 30)
    named = [(f"op{number}", *operator) for number, operator in enumerate(operators)]
    for name, first, last, size in [*named, *([("TOTAL", 0, -1, total)] if total is not None else [])]:
        when = {"allocated_node": first, "released_node": last}
        scene.add("graph_memory", graph=0, subgraph=model, name=name, bytes=size, **when)
    store = scene.store()
    found = []
    for view in graphs.draw(store.view(graphs.needs, graphs.wants)):
        assert isinstance(view, TableView)
        heads = [column.label.en for column in view.data.columns]
        found.append([dict(zip(heads, row, strict=True)) for row in view.data.rows])
    return tuple(found)


def test_what_is_alive_at_once_and_who_takes_it() -> None:
    (graph,), operators = shown((0, 2, 4), (1, 3, 6), (2, -1, 5), (3, 3, 1), total=20)
    assert graph == {
        "Graph": 0,
        "Operators": 4,
        "Most alive at once": 11,
        "At node": 2,
        "Sum of all": 16,
        "Asked for (TOTAL)": 20,
    }
    assert [row["Operator"] for row in operators] == ["op1", "op2", "op0", "op3"]
    assert [row["Alive at the most"].en for row in operators] == ["yes", "yes", "no", "no"]
    assert [row["Of the most"] for row in operators] == [6 / 11, 5 / 11, None, None]
    assert operators[1]["Released at"].en == "with the graph" and operators[0]["Released at"] == 3


@given(rows)
def test_the_most_alive_is_that_of_the_fullest_node(listed: list[Row]) -> None:
    (graph,), _ = shown(*listed)

    def alive(at: int) -> int:
        return sum(size for first, last, size in listed if first <= at and (last < 0 or at < max(last, first + 1)))

    assert graph["Most alive at once"] == max(map(alive, range(14)))
    assert alive(graph["At node"]) == graph["Most alive at once"]


def test_a_subgraph_stands_under_the_name_of_its_root() -> None:
    (graph,), _ = shown((0, 2, 4), model="while_body")
    assert graph["Subgraph"] == "while_body" and "Asked for (TOTAL)" not in graph
