"""The operators that a program calls below autograd, each with the tensors that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.distributed import _functional_collectives  # noqa: F401  (registers the operators of transfers)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from tests.programs.recording.calls import READ_BACK, Call, Seen

_WRAPPED = torch.ops._c10d_functional._wrap_tensor_autograd.default


class Recorder(TorchDispatchMode):
    """Records what runs within it on meta tensors. What is computed is contiguous, as operators of NPUs leave it; on
    other devices it keeps the order of axes of what it was computed from.

    Meta tensors have no numbers. A question whether all of something is so is answered with yes, any other with no:
    nothing is padded, no sequence has ended. ``nonzero_counts``: entries that are not zero of each tensor that is
    searched for them, in order."""

    def __init__(self, nonzero_counts: Iterable[int] = ()) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.phase = "forward"
        self._nonzero_counts = iter(nonzero_counts)
        self._memory: dict[int, tuple[int, tuple[int, ...], Any]] = {}

    def seen(self, tensor: torch.Tensor) -> Seen:
        """The tensor, its memory numbered in order of appearance."""
        storage = tensor.untyped_storage()
        # The storage is held: else its address could be that of another one later.
        number, whole, _ = self._memory.setdefault(storage._cdata, (len(self._memory), tuple(tensor.shape), storage))
        dtype = str(tensor.dtype).removeprefix("torch.")
        return Seen(number, tuple(tensor.shape), tuple(tensor.stride()), dtype, whole)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and keep it."""
        kwargs = dict(kwargs or {})
        names = {kind.__name__ for kind in types}
        if "DTensor" in names:  # it calls operators on the share of the rank
            return NotImplemented
        if "FakeTensor" in names or detect_fake_mode() is not None:  # no work: it asks for the shape of a result
            return func(*args, **kwargs)
        if func is _WRAPPED:  # the result of a transfer, which is waited for where it is first read
            return args[0].detach()
        if _on_host((args, kwargs)):  # the number of the step, which optimizers keep there
            return func(*args, **kwargs)
        node = torch._C._current_autograd_node()
        if func is torch.ops.aten.scatter_add.default and node is not None:
            # Autograd adds to zeros of its own, in place unless a dispatch mode looks on.
            func = torch.ops.aten.scatter_add_.default
        schema = func._schema
        reads = tuple(map(self.seen, _tensors((args, kwargs))))
        if func is torch.ops.aten._local_scalar_dense.default:
            asked_whether_all = bool(self.calls) and self.calls[-1].name == "aten::all"
            self.calls.append(Call(READ_BACK, "", self.phase, "", -1, reads, (), False))
            return 1 if args[0].dtype != torch.bool or asked_whether_all else 0
        if func is torch.ops.aten.nonzero.default:
            (source,) = args
            result = source.new_empty((next(self._nonzero_counts), source.dim()), dtype=torch.int64)
        else:
            result = func(*args, **kwargs)
        changed = [one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write]
        old = {one.storage for one in reads}
        results = _tensors(result)
        view = bool(results) and not changed and all(self.seen(one).storage in old for one in results)
        if not view and not changed:
            result = tree_map_only(torch.Tensor, _contiguous, result)
        written = _tensors(result)
        if changed and not written:
            given = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | kwargs
            written = _tensors([given.get(name) for name in changed])
        phase = "backward" if node is not None and self.phase == "forward" else self.phase
        sequence = -1
        if node is not None:
            sequence = node._sequence_nr()
        elif phase == "forward" and torch.is_grad_enabled():
            sequence = torch._C._autograd._get_sequence_nr() - 1
        self.calls.append(
            Call(
                name=schema.name,
                overload=schema.overload_name,
                phase=phase,
                node="" if node is None else node.name(),
                sequence=sequence,
                reads=reads,
                writes=tuple(self.seen(one) for one in written),
                view=view,
            )
        )
        return result


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _on_host(tree: Any) -> bool:
    """There are tensors, all in the memory of the host."""
    return {tensor.device.type for tensor in _tensors(tree)} == {"cpu"}


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_contiguous() else tensor.new_empty(tensor.shape)


@contextmanager
def recording(nonzero_counts: Iterable[int] = ()) -> Iterator[Recorder]:
    """Record what runs within the block; ``nonzero_counts`` as `Recorder` has them."""
    recorder = Recorder(nonzero_counts)
    with recorder:
        yield recorder
