"""The place in the code that a call stack leads to: frames as recorded by real profilers."""

from __future__ import annotations

from advisor_core.facts.host.call_site import call_site, frames_of

MAIN = "/home/me/imagenet/main.py(532): accuracy"
SITE = "/home/me/.local/lib/python3.9/site-packages/torch/nn/modules/linear.py(114): forward"
C = "<built-in method rmsnorm of pybind11_builtins.pybind11_detail_function_record object at 0x7ed747e44f30>"
OPS = "torch/_ops.py(1244): __call__"
GUARD = "torch_guard.py(283): wrapper_custom"
PACKAGE = "aiter/ops/rmsnorm.py(62): rmsnorm2d_fwd"
WRAPPER = "/sgl-workspace/sglang/python/sglang/srt/utils/kernel_shape_profiler.py(302): impl"
LAYER = "/sgl-workspace/sglang/python/sglang/srt/layers/layernorm.py(281): forward_aiter"
MODULE = "nn.Module: RMSNorm_9"
ATTENTION = "/sgl-workspace/sglang/python/sglang/srt/models/qwen3.py(167): forward_prepare_native"


def test_code_of_the_job_before_installed_packages() -> None:
    assert call_site([SITE, SITE.replace("114", "1527"), MAIN]) == MAIN
    assert call_site([SITE.replace("/", "\\"), "C:\\work\\train.py(7): step"]) == "C:\\work\\train.py(7): step"


def test_no_function_in_c_and_no_wrapper_around_operators() -> None:
    """As SGLang records an RMSNorm: a wrapper that the stack has twice passes calls on."""
    assert call_site([C, OPS, GUARD, PACKAGE, WRAPPER, C, OPS, LAYER, MODULE, WRAPPER, C, ATTENTION]) == LAYER


def test_a_short_path_where_no_whole_one_is() -> None:
    assert call_site(["<built-in function linear>", OPS, MODULE, "train.py(31): step", "train.py(60): <module>"]) == (
        "train.py(31): step"
    )
    script = "resnet50_profiler_api.py(42): <module>"
    assert call_site([SITE, script, "/data/other.py(3): main"]) == script, "paths are not shortened in this recording"


def test_where_nothing_is_of_the_job() -> None:
    assert call_site([C, SITE]) == SITE
    assert call_site([C, OPS]) == OPS
    assert call_site([C]) == C
    assert call_site([WRAPPER, OPS, WRAPPER]) == WRAPPER
    assert call_site([]) == ""


def test_frames_of_a_recorded_text() -> None:
    assert frames_of(f"{SITE};\n{MAIN};\n\n") == (SITE, MAIN)
