"""One rank's end of a communication group: it numbers the operations that the rank takes part in."""

from __future__ import annotations

from collections import defaultdict
from itertools import count

from ..kernels import Tensor
from ..layout import CommunicationGroup, Dimension, Layout
from ..program import AwaitCommunication, Collective, Communicate, Instruction, Op, PointToPoint


class Communicator:
    """Makes the requests of one rank to one group, in the order of the program. Members are places in the group."""

    def __init__(self, group: CommunicationGroup, rank: int) -> None:
        self.group = group
        self.member = group.local(rank)
        self._index = count()
        self._exchange: dict[int, count[int]] = defaultdict(count)

    @property
    def size(self) -> int:
        """Members of the group."""
        return len(self.group.ranks)

    def collective(self, operation: Collective, data: Tensor, sends: tuple[tuple[int, int], ...] = ()) -> Communicate:
        """An operation of the whole group."""
        return Communicate(operation, self.group, next(self._index), data, sends)

    def transfer(self, peer: int, sent: Tensor | None, received: Tensor | None, *, batched: bool) -> list[Instruction]:
        """Send to a peer, receive from it or both, and let the compute stream wait until that is done.

        If not ``batched`` these are operations of their own. Towards a later member sending comes first, so that two
        neighbours that exchange something agree on the order.
        """
        sends = ((peer, sent.nbytes),) if sent is not None else ()
        if batched:
            return self._between("batchSendRecv", peer, received if sent is None else sent, sends)
        if peer > self.member:
            return [*self._between("send", peer, sent, sends), *self._between("receive", peer, received, ())]
        return [*self._between("receive", peer, received, ()), *self._between("send", peer, sent, sends)]

    def _between(
        self, operation: PointToPoint, peer: int, data: Tensor | None, sends: tuple[tuple[int, int], ...]
    ) -> list[Instruction]:
        if data is None:
            return []
        index, exchange = next(self._index), next(self._exchange[peer])
        request = Communicate(operation, self.group, index, data, sends, peer, exchange)
        return [request, AwaitCommunication(request)]


def fetch(program: list[Instruction], request: Communicate, result: Tensor) -> None:
    """Make room for the result of an operation, ask for it, and let the compute stream wait until it is there."""
    program += [Op("aten::empty", (), None, allocates=(result,)), request, AwaitCommunication(request)]


class Place:
    """One rank in the layout of its job, with its ends of the groups."""

    def __init__(self, layout: Layout, rank: int) -> None:
        self.layout = layout
        self.rank = rank
        self.stage = layout.stage(rank)
        self._communicators: dict[Dimension, Communicator] = {}

    def communicator(self, dimension: Dimension) -> Communicator | None:
        """The rank's end of its group along a dimension, if there is one."""
        group = self.layout.group(self.rank, dimension)
        if group is None:
            return None
        return self._communicators.setdefault(dimension, Communicator(group, self.rank))

    @property
    def gradients(self) -> Communicator | None:
        """The group that adds up gradients."""
        return self.communicator("world" if self.layout.only_data else "data")
