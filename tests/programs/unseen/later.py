"""Programs that were recorded later, of families that nothing had been developed with until then."""

from __future__ import annotations

from typing import Any

import diffusers
import torch
import transformers as tf

from tests.programs.unseen.models import SMALL, built, only_ids, sampled
from tests.programs.unseen.program import Batch, Decoding, Program, Training, adamw, tokens


def picture() -> Batch:
    """Latents of a picture in patches, and a prompt."""
    return {
        "latents": torch.zeros((1, 1024, 64), dtype=torch.bfloat16),
        "text": torch.zeros((1, 256, 4096), dtype=torch.bfloat16),
        "pooled": torch.zeros((1, 768), dtype=torch.bfloat16),
        "times": torch.zeros((1,), dtype=torch.bfloat16),
    }


def flux_loss(model: Any, batch: Batch) -> torch.Tensor:
    """The squared error of what Flux tells."""
    places = torch.zeros((1024, 3), dtype=torch.bfloat16, device=batch["latents"].device)
    told = model(hidden_states=batch["latents"], encoder_hidden_states=batch["text"], timestep=batch["times"],
        pooled_projections=batch["pooled"], img_ids=places, txt_ids=places[:256]).sample  # fmt: skip
    return torch.nn.functional.mse_loss(told.float(), batch["latents"].float())


def qwen_image_loss(model: Any, batch: Batch) -> torch.Tensor:
    """The squared error of what Qwen-Image tells."""
    told = model(hidden_states=batch["latents"], encoder_hidden_states=batch["text"], timestep=batch["times"],
        encoder_hidden_states_mask=torch.ones((1, 256), dtype=torch.bool, device=batch["latents"].device),
        img_shapes=[(1, 32, 32)]).sample  # fmt: skip
    return torch.nn.functional.mse_loss(told.float(), batch["latents"].float())


LATER: tuple[Program, ...] = (
    Training(
        "ernie45_moe_train_cpu", "Ernie4_5_MoeForCausalLM, grouped products of experts",
        built(tf.Ernie4_5_MoeForCausalLM, tf.Ernie4_5_MoeConfig(**SMALL, num_hidden_layers=3, moe_intermediate_size=128,
            moe_num_experts=8, moe_k=2, moe_num_shared_experts=1, moe_layer_start_index=1), experts="grouped_mm"),
        tokens(2, 128), device="cpu",
    ),
    Training(
        "dots1_train_cpu", "Dots1ForCausalLM: experts by sigmoid, norms of heads",
        built(tf.Dots1ForCausalLM, tf.Dots1Config(**SMALL, num_hidden_layers=3, moe_intermediate_size=128,
            n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2, first_k_dense_replace=1),
            experts="grouped_mm"),
        tokens(2, 192), device="cpu", clips=True,
    ),
    Decoding(
        "phimoe_decode_cpu", "PhimoeForCausalLM",
        built(tf.PhimoeForCausalLM, tf.PhimoeConfig(**SMALL, num_hidden_layers=3, num_local_experts=8,
            num_experts_per_tok=2), experts="grouped_mm"),
        only_ids(48), device="cpu",
    ),
    Decoding(
        "hunyuan_moe_decode_cpu", "HunYuanMoEV1ForCausalLM",
        built(tf.HunYuanMoEV1ForCausalLM, tf.HunYuanMoEV1Config(**SMALL, num_hidden_layers=3, num_experts=8, moe_topk=2,
            head_dim=64), experts="grouped_mm"),
        only_ids(80, 3), device="cpu", step=sampled,
    ),
    Decoding(
        "lfm2_moe_decode_cpu", "Lfm2MoeForCausalLM: short convolutions, attention, experts",
        built(tf.Lfm2MoeForCausalLM, tf.Lfm2MoeConfig(**SMALL, num_hidden_layers=4, moe_intermediate_size=128,
            num_experts=8, num_experts_per_tok=2, num_dense_layers=1,
            layer_types=["conv", "full_attention", "conv", "full_attention"]), experts="grouped_mm"),
        only_ids(64), device="cpu",
    ),
    Training(
        "exaone4_train", "Exaone4ForCausalLM: norms behind attention and network, norms of heads",
        built(tf.Exaone4ForCausalLM, tf.Exaone4Config(hidden_size=2048, intermediate_size=4096, num_hidden_layers=2,
            num_attention_heads=32, num_key_value_heads=8, vocab_size=102_400, sliding_window=None,
            layer_types=["full_attention"] * 2)),
        tokens(1, 2048), optimizer=adamw(foreach=False),
    ),
    Training(
        "nemotron_train", "NemotronForCausalLM: squared ReLU, LayerNorm plus one, rotary over a part of the heads",
        built(tf.NemotronForCausalLM, tf.NemotronConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=2,
            num_attention_heads=16, num_key_value_heads=8, head_dim=128, vocab_size=64_000)),
        tokens(1, 2048),
    ),
    Decoding(
        "seed_oss_decode", "SeedOssForCausalLM, eager attention",
        built(tf.SeedOssForCausalLM, tf.SeedOssConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=2,
            num_attention_heads=16, num_key_value_heads=4, head_dim=64, vocab_size=32_000), "eager"),
        only_ids(512, 4),
    ),
    Training(
        "flux_train", "FluxTransformer2DModel, one block of each kind", lambda: diffusers.FluxTransformer2DModel(
            num_layers=1, num_single_layers=1),
        picture, loss=flux_loss,
    ),
    Training(
        "qwen_image_train", "QwenImageTransformer2DModel, two layers", lambda: diffusers.QwenImageTransformer2DModel(
            num_layers=2, joint_attention_dim=4096, num_attention_heads=8),
        picture, loss=qwen_image_loss,
    ),
)  # fmt: skip
