"""What frames of Python and names of operators tell of the software that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import Scene
from advisor_core.facts.context import context
from advisor_core.facts.host.software import NAMESPACES, PACKAGES, named_in, software
from advisor_core.rules.applicability import ENGINES
from tests.advisors.build import host
from tests.advisors.real import real_rank
from tests.once import ResultOf


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (["/opt/conda/lib/python3.11/site-packages/vllm/v1/worker/gpu_worker.py(88): execute_model"], ("vllm",)),
        (["vllm/forward_context.py(252): get_forward_context"], ("vllm",)),
        (["/vllm-workspace/vllm_ascend/attention/mla.py(3): forward"], ("vllm-ascend",)),
        (["train.py(9): main\n/work/Megatron-LM/megatron/training.py(780): train"], ("megatron",)),
        (["C:\\work\\sglang\\srt\\server.py(3): run"], ()),  # backslashes are no path of a machine with an NPU
        (["/home/li/vllm-project/train.py(3): main", "docker.io/vllm/vllm-openai", "my_vllm/x.py(3): f"], ()),
        (["/data/transformers/weights.bin", "see vllm/ for more.py(3)"], ()),
        ([], ()),
    ],
)
def test_a_frame_in_a_file_of_a_package_tells_it(frames: list[str], expected: tuple[str, ...]) -> None:
    assert named_in([], frames) == expected


def test_operators_of_a_namespace_of_its_own_tell_it() -> None:
    assert named_in(["aten::mm", "vllm::unified_attention", "sgl_kernel::rmsnorm"], []) == ("vllm", "sglang")
    assert named_in(["void vllm::rotary_embedding_kernel<float>"], []) == ()  # of a kernel: others call it too


def test_stacks_of_operators_and_frames_of_threads_are_read() -> None:
    scene = Scene().kernel(0, 10, op="aten::mm", stack="megatron/core/layers.py(3): forward\ntrain.py(1): main")
    store = scene.event("python_function", "verl/trainer/main.py(30): fit", -100, 200).store()
    assert store[software] == ("megatron", "verl") and store[context]["software"] == "megatron verl"
    assert Scene().kernel(0, 10).store()[context]["software"] is None


def test_the_names_are_those_of_the_registry() -> None:
    registered = {item.software for item in host().name_book().software}
    unregistered = {"sglang"}  # no rule names an option of it
    assert {*PACKAGES.values(), *NAMESPACES.values()} - registered == unregistered
    assert frozenset().union(*ENGINES) <= registered | unregistered


def test_real_recordings_of_training(profiles: Path) -> None:
    assert real_rank(profiles, "gpt3-pp2-2-of-16-ranks", 0)[software] == ("megatron",)
    assert real_rank(profiles, "alexnet-ddp-text-level1", 0)[software] == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sglang_Qwen3-8B_prefilldecode.json.gz", ["sglang"]),
        ("vllm-prefill-decode-graph.json.gz", ["vllm"]),
        ("bert-small-h100.json.gz", ["transformers"]),
        ("alexnet-a100.json.gz", []),
    ],
)
def test_reports_of_real_recordings_name_it(
    profiles: Path, result_of: ResultOf, name: str, expected: list[str]
) -> None:
    result = result_of(profiles / "kineto" / name)
    assert result.profile.software == expected
    if expected == ["sglang"]:  # another engine: what is to be set in vLLM is no advice
        assert not [one.text.en for finding in result.findings for one in finding.advice if "vLLM" in one.text.en]
