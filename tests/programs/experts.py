"""Experts in a recorded program, from its data flow: the choice of experts, the rows that go to them, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

from tests.programs.streams import CARRYING, PRODUCTS, Operator, Stream, Tensor

LONG_AXIS = 2_000
"""No router has so many experts, no vocabulary of a language model fewer entries."""

ON_SCORES = frozenset(
    {"_softmax", "sigmoid", "topk", "add", "mul", "div", "sum", "gather", "masked_fill", "scatter", *CARRYING}
)

IN_EXPERTS = PRODUCTS | {"silu", "gelu", "sigmoid", "mul", "add", "div", "cat", "index", "clamp", *CARRYING}

IN_ORDERS = frozenset({"sort", "argsort", "floor_divide", "div"})

INVERTING = frozenset({"index_put", "scatter", "sort", "argsort"})

BRINGING_BACK = frozenset({"index_add", "scatter_add", "sum"})


@dataclass(frozen=True)
class Experts:
    """The operators of a layer with experts. ``routing``: what makes the weights out of the scores; ``taking``: what
    orders and takes the rows of each expert; ``products``; ``behind``: what weighs the results and brings them back.
    ``by_row``: the rows stay in the order of the tokens, and each gets copies of the weights of its experts."""

    routing: frozenset[int]
    taking: frozenset[int]
    products: frozenset[int]
    behind: frozenset[int]
    inside: frozenset[int]
    by_row: bool

    @property
    def one_by_one(self) -> bool:
        """Whether each expert has products of its own."""
        return len(self.products) > 3

    @property
    def grouped(self) -> bool:
        """Rows that are in the order of the experts go into few products."""
        return not self.one_by_one and not self.by_row


def layers_with_experts(stream: Stream) -> Iterator[Experts]:
    """The layers that choose experts by the largest scores of a product. Where these are looked for one after the
    other, what else is computed of the scores is not told."""
    routers: dict[int, Operator] = {}
    at_once = set[int]()
    for choice in chain(stream.of({"topk"}), stream.of({"max", "argmax"})):
        router, _ = stream.source(choice.reads[0], lambda one: one.name in ON_SCORES)
        if router is not None and router.name in PRODUCTS and choice.reads[0].shape[-1] < LONG_AXIS:
            routers.setdefault(router.number, router)
            at_once |= {router.number} if choice.name == "topk" else set()
    for router in routers.values():
        tokens = router.reads[router.name in ("addmm", "baddbmm")]  # a bias stands first
        hidden, passed = stream.source(tokens, lambda one: one.name in CARRYING)
        written = passed | ({hidden.number} if hidden else set())
        for by_row in (False, True):
            rows = set().union(*(_rows(stream, number, tokens, repeated=by_row) for number in written))
            if rows:
                layer = _layer(stream, router, tokens, rows, by_row=by_row)
                yield layer if router.number in at_once else replace(layer, routing=frozenset())
                break


def _rows(stream: Stream, hidden: int, tokens: Tensor, *, repeated: bool) -> set[int]:
    """The operators that take rows of the input of the experts, or that repeat all of them."""
    taken = ("clone",) if repeated else ("index", "index_select", "gather")
    return {
        one.number
        for one in stream.behind(hidden)
        if one.name in taken
        and one.writes[0].shape[-1] == tokens.shape[-1]
        and (not repeated or prod(one.writes[0].shape) > prod(tokens.shape))
    }


def _layer(stream: Stream, router: Operator, tokens: Tensor, rows: set[int], *, by_row: bool) -> Experts:
    scores = _follow_scores(stream, router)
    inside = set(rows)
    todo = sorted(rows)
    hidden = prod(tokens.shape)
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
    # What balances the load of the experts is computed of the same scores, for the loss.
    needed = scores & stream.before(inside, lambda one: one.number >= router.number)
    routing = needed | {number for number in scores if _keeps_input(stream, number, needed)}
    # The weight of each row is taken like the row.
    for number in sorted(inside):
        for tensor in stream.operators[number].reads:
            weight = stream.writer(tensor)
            if weight is not None and weight.name == "index" and weight.reads[0].writer in routing:
                behind.add(weight.number)
    # So is the place of each result among the rows of the tokens, where nothing else reads it.
    for number in sorted(behind):
        for tensor in stream.operators[number].reads[1:]:
            places = stream.writer(tensor)
            if places is not None and places.name in INVERTING and _readers(stream, places.number) <= behind:
                behind.add(places.number)
    # The choices are put in the order of the experts, and the places made numbers of tokens.
    taking = rows | (stream.before(rows, lambda one: one.name in IN_ORDERS) - routing)
    return Experts(*map(frozenset, (routing, taking, products, behind, inside | behind)), by_row)


def _readers(stream: Stream, number: int) -> set[int]:
    return {one.number for one in stream.behind(number)}


def _keeps_input(stream: Stream, number: int, among: set[int]) -> bool:
    """An operator copies, for the backward pass, what the next one of these changes in place."""
    one, following = stream.operators[number], stream.operators.get(number + 1)
    return (
        one.name == "clone"
        and following is not None
        and following.number in among
        and one.reads[0].storage in {tensor.storage for tensor in following.writes}
    )


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
