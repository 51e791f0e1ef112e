"""Tensor parallelism as transformers has it: one rank of several, whose transfers nobody answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers.distributed.tensor_parallel import apply_tensor_parallelism


@contextmanager
def ranks(count: int) -> Iterator[Any]:
    """A mesh of so many ranks for the first of them; ``None`` for one alone."""
    if count == 1:
        yield None
        return
    init_process_group("fake", store=FakeStore(), rank=0, world_size=count)
    try:
        yield init_device_mesh("cpu", (count,), mesh_dim_names=("tp",))
    finally:
        destroy_process_group()


def divide(model: Any, mesh: Any) -> None:
    """Give the model the share of its weights that the rank has, and the transfers between its ranks: the plan of the
    model itself, as ``from_pretrained(tp_plan="auto")`` follows it. A product that was made of several
    (`fused.merge_gates`) is divided as those were."""
    plan = dict(model.tp_plan)
    plan |= {
        f"{name.removesuffix('gate_proj')}gate_up_proj": style for name, style in plan.items() if "gate_proj" in name
    }
    apply_tensor_parallelism(model, mesh, model._expand_parallel_plan(plan))


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The share of a tensor that the rank has."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor
