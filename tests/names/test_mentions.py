"""Names that a text mentions, and calls that fit signatures."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.names.mentions import mentions
from advisor_core.names.signatures import SignatureError, misfit, signature


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Call `torch_npu.npu_rms_norm(x, weight, epsilon)[0]`.", ["torch_npu.npu_rms_norm"]),
        ("`torch.npu.matmul.allow_hf32 = True`", ["torch.npu.matmul.allow_hf32"]),
        ("`npu-smi info -t topo`", ["npu-smi info -t topo"]),
        ("`TASK_QUEUE_ENABLE=2`, not HCCL_BUFFSIZE", ["TASK_QUEUE_ENABLE", "HCCL_BUFFSIZE"]),
        ("`profile_memory=True, with_stack=True`", ["profile_memory", "with_stack"]),
        ("`vllm serve MODEL --profiler-config '{}'`", ["vllm", "--profiler-config"]),
        ("`activities=[a.b.CPU, a.b.NPU]`", ["activities", "a.b.CPU", "a.b.NPU"]),
        ("`optimizer.zero_grad(set_to_none=True)`", ["optimizer.zero_grad"]),
        ("{{ name | code }} and {{ other }}", []),
        ("`loss.detach()` and ``x`y``", ["loss.detach", "x`y"]),
    ],
)
def test_names_of_a_text(text: str, names: list[str]) -> None:
    assert [mention.name for mention in mentions(text)] == names


def test_values_of_settings() -> None:
    assert [mention.value for mention in mentions("`TASK_QUEUE_ENABLE=2` `pin_memory=True`")] == ["2", "True"]


@given(st.text(max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    assert all(mention.name for mention in mentions(text))


def call(code: str) -> ast.Call:
    value = ast.parse(code, mode="eval").body
    assert isinstance(value, ast.Call)
    return value


@pytest.mark.parametrize(
    ("written", "code", "fits"),
    [
        ("(x, gamma, epsilon=1e-06)", "f(x, weight)", True),
        ("(x, gamma, epsilon=1e-06)", "f(x)", False),
        ("(x, *, dim=-1)", "f(x, dim=-1)", True),
        ("(x, *, dim=-1)", "f(x, -1)", False),
        ("(*, wait, active, warmup=0)", "f(active=3)", False),
        ("(*, wait, active, warmup=0)", "f(wait=0, active=3)", True),
        ("(params, lr=0.001, *, fused=None)", "f(..., fused=True)", True),
        ("(params, lr=0.001, *, fused=None)", "f(..., fuse=True)", False),
        ("(*args, **kwargs)", "f(1, a=2)", True),
    ],
)
def test_calls_fit_signatures(written: str, code: str, fits: bool) -> None:
    assert (misfit(written, call(code)) == "") is fits


def test_a_signature_that_is_none() -> None:
    with pytest.raises(SignatureError):
        signature("(x, =)")
