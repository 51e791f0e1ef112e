"""The kernels of operators on pictures: convolutions, pooling and batch normalisation.

Convolutions and poolings read the formats of the cube; the gradient of a weight is computed by itself and converts its
operands again (docs/sources.md#recorded-alexnet-job). Batch normalisation is taken to read what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from tests.programs.recording.calls import Call, Seen
from tests.programs.recording.formats import BLOCKED, WEIGHTS, Formats
from tests.programs.recording.tasks import Operand, Task
from tests.programs.recording.views import operand_of, plain

PICTURES = frozenset(
    {
        "convolution",
        "convolution_backward",
        "max_pool2d_with_indices",
        "max_pool2d_with_indices_backward",
        "native_batch_norm",
        "native_batch_norm_backward",
    }
)


class Pictures:
    """The kernels of these operators. ``new`` numbers the memory of copies."""

    def __init__(self, formats: Formats, new: Callable[[], int]) -> None:
        self._formats, self._new = formats, new
        self._masks: dict[int, Operand] = {}

    def kernels(self, call: Call, base: str, function: str) -> Iterator[Task]:
        """The kernels of a call of one of `PICTURES`, in order."""
        if base == "convolution":
            return self._convolution(call, function)
        if base == "convolution_backward":
            return self._gradients(call, function)
        if base.startswith("max_pool"):
            return self._pooling(call, backward=base.endswith("backward"))
        return self._norm_gradients(call) if base.endswith("backward") else self._norm(call)

    def _convolution(self, call: Call, function: str) -> Iterator[Task]:
        pixels, weight, *bias = call.reads
        x = yield from self._read(BLOCKED, pixels, function)
        w = yield from self._read(WEIGHTS, weight, function)
        result, store = self._formats.written(BLOCKED, operand_of(call.writes[0]), function)
        yield Task("Conv2D", function, (x, w, *map(operand_of, bias)), (result,), weight.shape[1])
        yield from store

    def _gradients(self, call: Call, function: str) -> Iterator[Task]:
        """Of the input, where it is asked for, of the weight and of the bias, where there is one."""
        gradient, pixels, weight = call.reads[:3]
        *results, last = call.writes
        bias = None
        if len(last.shape) == 1:
            *results, last, bias = call.writes
        channels = weight.shape[1]
        if results:
            w = yield from self._read(WEIGHTS, weight, function)
            dy = yield from self._read(BLOCKED, gradient, function)
            dx, store = self._formats.written(BLOCKED, operand_of(results[0]), function)
            yield Task("Conv2DBackpropInput", function, (w, dy), (dx,), channels)
            yield from store
        x = yield from self._read(BLOCKED, pixels, function)
        dy = yield from self._read(BLOCKED, gradient, function)
        dw, store = self._formats.written(WEIGHTS, operand_of(last), function)
        yield Task("Conv2DBackpropFilter", function, (x, dy), (dw,), channels)
        yield from store
        if bias is not None:
            yield Task("ReduceSum", function, (self._formats.operand(gradient),), (operand_of(bias),))

    def _pooling(self, call: Call, *, backward: bool) -> Iterator[Task]:
        """The maximum of a window, and which of its elements that is."""
        function = "aclnnMaxPool2dWithMask" + ("Backward" if backward else "")
        if backward:
            gradient, pixels, places = call.reads
            dy = yield from self._read(BLOCKED, gradient, function)
            x = yield from self._read(BLOCKED, pixels, function)
            dx, store = self._formats.written(BLOCKED, operand_of(call.writes[0]), function)
            yield Task("MaxPoolGradWithArgmaxV1", function, (x, dy, self._masks[places.storage]), (dx,))
            yield from store
            return
        result, places = call.writes
        x = yield from self._read(BLOCKED, call.reads[0], function)
        y, store = self._formats.written(BLOCKED, operand_of(result), function)
        batch, channels, high, wide, block = y.shape
        # A window of three by three, a bit for each of its elements.
        mask = Operand(places.storage, (batch, channels, 9, -(-high * wide // block) + 1, block), "uint16", BLOCKED)
        self._masks[places.storage] = mask
        yield Task("MaxPoolWithArgmaxV1", function, (x,), (y, mask))
        yield from store

    def _norm(self, call: Call) -> Iterator[Task]:
        """By the statistics of the batch."""
        function = "aclnnBatchNorm"
        x, weights = call.reads[0], tuple(map(operand_of, call.reads[1:3]))
        result, *statistics = call.writes
        sums = tuple(Operand(self._new(), one.shape, "float32") for one in statistics)
        read, written = self._like(x, result)
        yield Task("BNTrainingReduce", function, (read,), sums)
        yield Task("BNTrainingUpdate", function, (read, *sums, *weights), (written, *map(operand_of, statistics)))

    def _norm_gradients(self, call: Call) -> Iterator[Task]:
        function = "aclnnBatchNormBackward"
        gradient, x, weight, *rest = call.reads
        statistics = tuple(map(operand_of, rest[-2:]))
        dx, *others = call.writes
        dy = yield from self._read_like(gradient, x, function)
        read, written = self._like(x, dx)
        sums = tuple(map(operand_of, others))
        yield Task("BNTrainingUpdateGrad", function, (dy, read, *statistics), sums)
        yield Task("BNTrainingReduceGrad", function, (dy, read, *sums, operand_of(weight), *statistics), (written,))

    def _like(self, source: Seen, target: Seen) -> tuple[Operand, Operand]:
        """The one as it lies in memory, and the other in the same format."""
        if not self._formats.has(source):
            return operand_of(source), operand_of(target)
        written, _ = self._formats.written(BLOCKED, operand_of(target), "")
        return self._formats.operand(source), written

    def _read_like(self, seen: Seen, like: Seen, function: str) -> Generator[Task, None, Operand]:
        """The tensor in the format of another one."""
        if self._formats.has(like):
            return (yield from self._read(BLOCKED, seen, function))
        tasks, operand = plain(seen, function, self._new)
        yield from tasks
        return operand

    def _read(self, form: str, seen: Seen, function: str) -> Generator[Task, None, Operand]:
        copies, operand = plain(seen, function, self._new)
        conversions, operand = self._formats.read(form, operand, function)
        yield from (*copies, *conversions)
        return operand
