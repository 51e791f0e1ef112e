"""Experts in a recorded program, from its data flow: the choice of experts, the rows that go to them, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tests.programs.streams import CARRYING, PRODUCTS, Operator, Stream

LONG_AXIS = 2_000
"""No router has so many experts, no vocabulary of a language model fewer entries."""

ON_SCORES = frozenset(
    {"_softmax", "sigmoid", "topk", "add", "mul", "div", "sum", "gather", "masked_fill", "scatter", *CARRYING}
)

IN_EXPERTS = PRODUCTS | {"silu", "gelu", "sigmoid", "mul", "add", "div", "cat", "index", *CARRYING}

BRINGING_BACK = frozenset({"index_add", "scatter_add", "sum"})


@dataclass(frozen=True)
class Experts:
    """The operators of a layer with experts. ``routing``: what makes the weights out of the scores; ``taking``: what
    takes the rows of each expert; ``products``; ``behind``: what weighs the results and brings them back."""

    routing: frozenset[int]
    taking: frozenset[int]
    products: frozenset[int]
    behind: frozenset[int]
    inside: frozenset[int]

    @property
    def one_by_one(self) -> bool:
        """Whether each expert has products of its own."""
        return len(self.products) > 3


def layers_with_experts(stream: Stream) -> Iterator[Experts]:
    """The layers that choose experts by the largest scores of a product."""
    routers: dict[int, Operator] = {}
    for choice in stream.of({"topk"}):
        router, _ = stream.source(choice.reads[0], lambda one: one.name in ON_SCORES)
        if router is not None and router.name in PRODUCTS and choice.reads[0].shape[-1] < LONG_AXIS:
            routers[router.number] = router
    for router in routers.values():
        hidden, passed = stream.source(router.reads[0], lambda one: one.name in CARRYING)
        written = passed | ({hidden.number} if hidden else set())
        rows = {row for number in written for row in _taken(stream, number, router.reads[0].shape[-1])}
        if rows:
            yield _layer(stream, router, rows)


def _taken(stream: Stream, hidden: int, width: int) -> set[int]:
    """The operators that take rows of the input of the experts."""
    return {
        one.number
        for one in stream.behind(hidden)
        if one.name in ("index", "index_select") and one.writes[0].shape[-1] == width
    }


def _layer(stream: Stream, router: Operator, rows: set[int]) -> Experts:
    routing = _follow_scores(stream, router)
    inside = set(rows)
    todo = sorted(rows)
    hidden = prod(router.reads[0].shape)
    while todo:
        for one in stream.behind(todo.pop()):
            brings = one.name in BRINGING_BACK
            if one.number in inside or not (brings or one.name in IN_EXPERTS):
                continue
            inside.add(one.number)
            if not (brings and prod(one.writes[0].shape) == hidden):
                todo.append(one.number)
    products = {number for number in inside if stream.operators[number].name in PRODUCTS}
    behind = {number for number in inside - products if not _reaches(stream, number, inside, products)}
    # The weight of each row is taken like the row.
    for number in sorted(inside):
        for tensor in stream.operators[number].reads:
            weight = stream.writer(tensor)
            if weight is not None and weight.name == "index" and weight.reads[0].writer in routing:
                behind.add(weight.number)
    return Experts(*map(frozenset, (routing, rows, products, behind, inside | behind)))


def _reaches(stream: Stream, number: int, inside: set[int], targets: set[int]) -> bool:
    todo, seen = [number], {number}
    while todo:
        for one in stream.behind(todo.pop()):
            if one.number in targets:
                return True
            if one.number in inside and one.number not in seen:
                seen.add(one.number)
                todo.append(one.number)
    return False


def _follow_scores(stream: Stream, router: Operator) -> frozenset[int]:
    """What is computed of the scores, on tensors that are no larger."""
    scores = router.writes[0]
    own: set[int] = set()
    todo = [router.number]
    while todo:
        for one in stream.behind(todo.pop()):
            small = all(
                prod(tensor.shape) <= prod(scores.shape) and tensor.shape[-1:] <= scores.shape[-1:]
                for tensor in one.writes
            )
            if one.name in ON_SCORES and small and one.number not in own:
                own.add(one.number)
                todo.append(one.number)
    return frozenset(own)
