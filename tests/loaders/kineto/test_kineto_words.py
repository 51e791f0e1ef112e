"""Kernels of the libraries that run on GPUs, and their classes."""

from __future__ import annotations

import pytest

from advisor_core.loaders.kineto.words import kernel_type, operation
from advisor_core.plugins.host import load_host

CLASSES = load_host().vocabulary("gpu").operator_classes

BY_NAME = [
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(Params)", "matmul"),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_execute_kernel__5x_cublas", "matmul"),
    ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "matmul"),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64", "matmul"),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1", "matmul"),
    ("volta_sgemm_64x64_nt", "matmul"),
    ("triton_tem_fused_addmm_3", "matmul"),
    ("fused_moe_kernel", "matmul"),
    ("void implicit_convolve_sgemm<float, float, 1024, 6, 7>(int, int)", "convolution"),
    ("volta_scudnn_128x64_relu_medium_nn_v1", "convolution"),
    ("sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_cudnn_train", "convolution"),
    ("void cudnn::detail::dgrad_engine<float, 512, 6, 5>(int)", "convolution"),
    ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128> >(Params)", "attention"),
    ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(Params)", "attention"),
    ("void vllm::paged_attention_v2_kernel<float, 128>(float*)", "attention"),
    ("BatchPrefillWithPagedKVCacheKernel", "attention"),
    ("kernel_unified_attention_2d", "attention"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)", "elementwise"),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, silu>(c10::BFloat16*)", "elementwise"),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "elementwise"),
    ("triton_poi_fused_add_mul_7", "elementwise"),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(float)", "reduction"),
    ("topkGatingSoftmax", "normalisation"),
    ("triton_red_fused_sum_2", "reduction"),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)", "normalisation"),
    ("void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)", "normalisation"),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>(float*)", "normalisation"),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float>(cudnnTensorStruct)", "normalisation"),
    ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4> >(int)", "optimizer"),
    ("void cudnn::ops::nchwToNhwcKernel<float, float>(float*)", "format_conversion"),
    ("void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16>(int)", "copy"),
    ("Memcpy DtoD (Device -> Device)", "copy"),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>(float*)", "concat"),
]


@pytest.mark.parametrize(("kernel", "operator_class"), BY_NAME)
def test_class_by_the_name_of_a_kernel(kernel: str, operator_class: str) -> None:
    assert CLASSES.class_of(kernel_type(kernel, "")) == operator_class


@pytest.mark.parametrize(
    ("kernel", "operator", "kind"),
    [
        ("volta_sgemm_64x64_nt", "aten::cudnn_convolution", "aten::cudnn_convolution"),  # a convolution as a product
        ("void nchwToNhwcKernel<float>(int)", "aten::cudnn_convolution", "nchwToNhwcKernel"),
        ("Memset (Device)", "aten::convolution_backward", "Memset"),
        ("triton_poi_fused_add_0", "CompiledFunction", "triton_poi_fused_add_0"),
        ("triton_poi_fused_add_0", "my::unknown", "triton_poi_fused_add_0"),
        ("kernel_unified_attention_2d", "vllm::unified_attention_with_output", "vllm::unified_attention_with_output"),
    ],
)
def test_the_operator_tells_more_than_the_kernel(kernel: str, operator: str, kind: str) -> None:
    assert kernel_type(kernel, operator) == kind


@pytest.mark.parametrize(
    ("name", "canonical"),
    [("allreduce", "allReduce"), ("_reduce_scatter_base", "reduceScatter"), ("all_to_all", "alltoall"),
     ("reduce", "reduce"), ("all_gather_into_tensor_coalesced", "allGather"), ("send", "send"), ("recv", "receive"),
     ("mystery", "mystery")],
)  # fmt: skip
def test_operations(name: str, canonical: str) -> None:
    assert operation(name) == canonical
