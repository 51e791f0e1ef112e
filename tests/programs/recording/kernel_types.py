"""The types of the kernels that the operators of PyTorch become on an Ascend NPU.

They are those of public recordings and of the operators that torch_npu calls (docs/sources.md#kernels-of-operators).
"""

from __future__ import annotations

NO_KERNEL = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "alias", "lift_fresh", "set_"}
)
"""Operators that take memory or do nothing."""

TYPES = {
    "mm": "MatMulV3",
    "addmm": "MatMulV3",
    "bmm": "BatchMatMulV2",
    "baddbmm": "BatchMatMulV2",
    "pow": "Pows",
    "mean": "ReduceMean",
    "sum": "ReduceSum",
    "rsqrt": "Rsqrt",
    "sqrt": "Sqrt",
    "add": "Add",
    "sub": "Sub",
    "rsub": "Sub",
    "mul": "Mul",
    "div": "RealDiv",
    "neg": "Neg",
    "exp": "Exp",
    "cos": "Cos",
    "sin": "Sin",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "tanh_backward": "TanhGrad",
    "silu": "Swish",
    "silu_backward": "SiluGrad",
    "gelu": "Gelu",
    "gelu_backward": "GeluGrad",
    "_softmax": "SoftmaxV2",
    "_softmax_backward_data": "SoftmaxGrad",
    "_log_softmax": "LogSoftmaxV2",
    "_log_softmax_backward_data": "LogSoftmaxGrad",
    "nll_loss_forward": "NLLLoss",
    "nll_loss_backward": "NLLLossGrad",
    "native_layer_norm": "LayerNormV3",
    "native_layer_norm_backward": "LayerNormGradV3",
    "embedding": "GatherV2",
    "embedding_dense_backward": "EmbeddingDenseGradV2",
    "where": "SelectV2",
    "masked_fill": "MaskedFill",
    "le": "LessEqual",
    "lt": "Less",
    "ge": "GreaterEqual",
    "gt": "Greater",
    "eq": "Equal",
    "ne": "NotEqual",
    "logical_and": "LogicalAnd",
    "bitwise_and": "LogicalAnd",
    "logical_not": "LogicalNot",
    "arange": "Range",
    "bitwise_not": "LogicalNot",
    "bitwise_or": "LogicalOr",
    "zeros": "ZerosLike",
    "zero": "ZerosLike",
    "zeros_like": "ZerosLike",
    "new_zeros": "ZerosLike",
    "ones": "OnesLike",
    "ones_like": "OnesLike",
    "full": "Fill",
    "full_like": "Fill",
    "fill": "Fill",
    "scalar_tensor": "Fill",
    "__or__": "LogicalOr",
    "tril": "Tril",
    "triu": "Triu",
    "cat": "ConcatD",
    "stack": "Pack",
    "lerp": "Lerp",
    "addcmul": "Addcmul",
    "addcdiv": "Addcdiv",
    "all": "ReduceAll",
    "any": "ReduceAny",
    "constant_pad_nd": "PadV3",
    "cumsum": "Cumsum",
    "index": "Index",
    "gather": "GatherElementsV2",
    "split": "SplitVD",
    "npu_rms_norm": "RmsNorm",
    "npu_rms_norm_backward": "RmsNormGrad",
    "npu_swiglu": "SwiGlu",
    "npu_swiglu_backward": "SwiGluGrad",
    "npu_rotary_mul": "RotaryPositionEmbedding",
    "npu_rotary_mul_backward": "RotaryPositionEmbeddingGrad",
    "npu_fusion_attention": "FlashAttentionScore",
    "npu_fusion_attention_grad": "FlashAttentionScoreGrad",
    "new_ones": "OnesLike",
    "diff": "Sub",
    "max": "ReduceMax",
    "clamp": "ClipByValueV2",
    "unfold_backward": "ViewCopy",
    "relu": "Relu",
    "threshold_backward": "ReluGrad",
    "native_group_norm": "GroupNorm",
    "native_group_norm_backward": "GroupNormGrad",
    "upsample_nearest2d": "UpsampleNearest3d",
    "upsample_nearest2d_backward": "UpsampleNearestGrad",
    "mse_loss": "MseLoss",
    "mse_loss_backward": "MseLossGrad",
    "npu_group_norm_swish": "GroupNormSwish",
    "npu_group_norm_swish_grad": "GroupNormSwishGrad",
    "npu_geglu": "GeGluV2",
    "npu_geglu_grad": "GeGluGradV2",
    "nonzero": "NonZero",
    "topk": "TopKV2",
    "sort": "Sort",
    "scatter": "ScatterElementsV2",
    "index_select": "GatherV3",
    "index_add": "InplaceIndexAdd",
    "index_put": "IndexPutV2",
    "_index_put_impl": "IndexPutV2",
    "histc": "Histogram",
    "isin": "IsIn",
    "multinomial": "Multinomial",
    "argmax": "ArgMaxV2",
    "npu_apply_adam_w": "ApplyAdamWV2",
    "npu_scatter_nd_update": "ScatterNdUpdate",
    "npu_top_k_top_p": "ApplyTopKTopPWithSorted",
    "npu_moe_token_permute": "MoeTokenPermute",
    "npu_moe_token_permute_grad": "MoeTokenPermuteGrad",
    "npu_moe_token_unpermute": "MoeTokenUnpermute",
    "npu_moe_token_unpermute_grad": "MoeTokenUnpermuteGrad",
    "npu_grouped_matmul": "GroupedMatmul",
}
"""The type of the kernel by the name of the operator."""

PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm"})
"""Operators that read a transposed operand as it is."""

ARITHMETIC = frozenset({"add", "sub", "mul", "div"})
"""Operators whose operands get the element type of the result first."""

WITH_PLACES = frozenset({"sort", "topk"})
"""Operators whose kernel writes places as int32, which are cast to int64."""

BROADCASTING = frozenset(
    {"add", "sub", "mul", "where", "le", "lt", "ge", "gt", "eq", "ne", "sum", "bitwise_and", "logical_and"}
)
"""Operators that read a tensor of one element along an axis as it is."""
