"""The framework's caching allocator: blocks cut from segments that it takes from the driver and keeps. Sizes in bytes.

The rules are those that PyTorch publishes for its caching allocator, which torch_npu follows. Small and large requests
have pools of their own; a request takes the smallest free block that fits and gives back the rest of it; free
neighbours merge; only a request that nothing fits calls the driver. If the driver has no room left, all segments that
are wholly free go back to it first, after the device has finished. So what is reserved, and when the driver is called,
follows from the sizes of tensors, from the order in which they come and go, and from the room on the device.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from itertools import count
from typing import Literal

from ..described import FROM_FILES, Natural, Positive

MIB = 1024 * 1024
GRAIN_BYTES = 512
PADDING_BYTES = 32
"""torch_npu asks for a little more than the tensor needs: sizes in real exports end on half a KiB
(docs/sources.md#recorded-alexnet-job)."""
SMALL_BYTES = MIB
SMALL_SEGMENT_BYTES = 2 * MIB
MEDIUM_BYTES = 10 * MIB
MEDIUM_SEGMENT_BYTES = 20 * MIB
SEGMENT_GRAIN_BYTES = 2 * MIB

RUNTIME_BYTES = 96_714_752
COLLECTIVE_BYTES = 423_690_240
"""In and out buffers of one communicator (HCCL_BUFFSIZE twice) and its own needs, as in a real profile
(docs/sources.md#recorded-alexnet-job)."""
DRIVER_BYTES = 254_906_368
"""Memory that the device holds beyond the process in the same profile."""

DriverCall = Literal["malloc", "free", "synchronize"]


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The memory of a device, and how the framework uses it.

    ``capacity``: of a 910B2 (docs/sources.md#chips); ``held``: of it, by weights that stay on the device without being
    trained;
    ``expandable``: segments grow instead of being many (PYTORCH_NPU_ALLOC_CONF=expandable_segments:True); that they
    can also shrink is left out: such a job must have room.
    """

    __pydantic_config__ = FROM_FILES
    capacity: Positive = 64 * 1024 * MIB
    held: Natural = 0
    expandable: bool = False

    def room(self, ranks: int) -> int:
        """Memory for the segments of the framework: without that of the driver, the runtime and the communicators."""
        return self.capacity - DRIVER_BYTES - RUNTIME_BYTES - (COLLECTIVE_BYTES if ranks > 1 else 0)


WHOLE_DEVICE = DeviceMemory()


class Block:
    """A piece of a segment, between the pieces before and after it."""

    __slots__ = ("after", "before", "free", "pool", "size")

    def __init__(self, pool: _Pool, size: int) -> None:
        self.pool = pool
        self.size = size
        self.free = True
        self.before: Block | None = None
        self.after: Block | None = None

    @property
    def whole(self) -> bool:
        """Whether it is all of its segment."""
        return self.before is None and self.after is None


class _Pool:
    """Free blocks, the smallest first; of equal ones the one that has been free for longest."""

    def __init__(self, remainder: int, *, keeps: bool = True) -> None:
        self.remainder = remainder
        self.keeps = keeps
        self.last: Block | None = None
        """The end of the growing segment."""
        self._free: list[tuple[int, int, Block]] = []
        self._ticket = count()

    def add(self, block: Block) -> None:
        insort(self._free, (block.size, next(self._ticket), block))

    def remove(self, block: Block) -> None:
        place = bisect_left(self._free, (block.size,))
        while self._free[place][2] is not block:
            place += 1
        del self._free[place]

    def best(self, size: int) -> Block | None:
        place = bisect_left(self._free, (size,))
        return self._free.pop(place)[2] if place < len(self._free) else None

    def wholly_free(self) -> list[Block]:
        """Segments of which no part is used; they leave the pool."""
        found = [block for _, _, block in self._free if block.whole]
        self._free = [entry for entry in self._free if not entry[2].whole]
        return found

    def split(self, block: Block, size: int) -> None:
        """Keep ``size`` of the block and free the rest, if that is worth a block of its own."""
        if block.size - size < self.remainder:
            return
        rest = Block(self, block.size - size)
        rest.before, rest.after = block, block.after
        if rest.after is not None:
            rest.after.before = rest
        block.after, block.size = rest, size
        if self.last is block:
            self.last = rest
        self.add(rest)

    def give_back(self, block: Block) -> None:
        """The block is free: it merges with free neighbours."""
        block.free = True
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.free:
                self.remove(neighbour)
                first, second = (neighbour, block) if neighbour is block.before else (block, neighbour)
                first.size += second.size
                first.after = second.after
                if first.after is not None:
                    first.after.before = first
                if self.last is second:
                    self.last = first
                block = first
        self.add(block)


class Allocator:
    """The allocator of one rank. ``allocated`` and ``reserved`` are its totals.

    ``resident``: allocated before anything else and never freed; ``room``: what the driver can give in all;
    ``uncached``: requests of at least this size (0: none) have a segment of their own that is not kept.
    """

    def __init__(self, resident: int, room: int, *, expandable: bool = False, uncached: int = 0) -> None:
        self.allocated = resident
        self.reserved = _up(resident, SEGMENT_GRAIN_BYTES)
        self._room = room
        self._expandable = expandable
        self._uncached = uncached
        self._small = _Pool(GRAIN_BYTES)
        self._large = _Pool(SMALL_BYTES + 1)
        self._own = _Pool(SEGMENT_GRAIN_BYTES, keeps=False)

    def allocate(self, nbytes: int) -> tuple[Block, list[DriverCall]]:
        """A block for a tensor, and what the driver was asked for. Raises :class:`MemoryError` if it has no room."""
        size = _up(nbytes + PADDING_BYTES, GRAIN_BYTES)
        calls: list[DriverCall] = []
        if self._uncached and nbytes >= self._uncached:
            block = self._segment(self._own, _up(size, SEGMENT_GRAIN_BYTES), calls)
        else:
            pool = self._small if size <= SMALL_BYTES else self._large
            block = pool.best(size) or self._more(pool, size, calls)
        block.free = False
        block.pool.split(block, size)
        self.allocated += block.size
        return block, calls

    def free(self, block: Block) -> list[DriverCall]:
        """Give a block back; returns what the driver was asked for."""
        self.allocated -= block.size
        if not block.pool.keeps:
            self.reserved -= block.size
            return ["free"]
        block.pool.give_back(block)
        return []

    def _more(self, pool: _Pool, size: int, calls: list[DriverCall]) -> Block:
        if self._expandable:
            return self._grown(pool, size, calls)
        if size <= SMALL_BYTES:
            return self._segment(pool, SMALL_SEGMENT_BYTES, calls)
        if size < MEDIUM_BYTES:
            return self._segment(pool, MEDIUM_SEGMENT_BYTES, calls)
        return self._segment(pool, _up(size, SEGMENT_GRAIN_BYTES), calls)

    def _segment(self, pool: _Pool, nbytes: int, calls: list[DriverCall]) -> Block:
        self._take(nbytes, calls)
        return Block(pool, nbytes)

    def _grown(self, pool: _Pool, size: int, calls: list[DriverCall]) -> Block:
        """The growing segment with as many more pages at its end as the request needs."""
        last = pool.last
        page = SMALL_SEGMENT_BYTES if pool is self._small else MEDIUM_SEGMENT_BYTES
        if last is not None and last.free:
            pages = _up(size - last.size, page)
            self._take(pages, calls)
            pool.remove(last)
            last.size += pages
            return last
        pages = _up(size, page)
        self._take(pages, calls)
        block = Block(pool, pages)
        block.before = last
        if last is not None:
            last.after = block
        pool.last = block
        return block

    def _take(self, nbytes: int, calls: list[DriverCall]) -> None:
        if self.reserved + nbytes > self._room:
            calls.append("synchronize")
            for pool in (self._small, self._large) if not self._expandable else ():
                for block in pool.wholly_free():
                    self.reserved -= block.size
                    calls.append("free")
        if self.reserved + nbytes > self._room:
            raise MemoryError(f"{nbytes} bytes do not fit beside {self.reserved} of {self._room}")
        self.reserved += nbytes
        calls.append("malloc")


def _up(nbytes: int, grain: int) -> int:
    return -(-nbytes // grain) * grain
