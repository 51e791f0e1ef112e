"""Programs of transformers, diffusers and peft, in widths that they are published in where no numbers are needed."""

from __future__ import annotations

from typing import Any

import diffusers
import peft
import torch
import transformers as tf

from tests.programs.unseen.program import Batch, Decoding, Program, Training, adamw, tokens

SMALL = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 4096}  # fmt: skip


def built(model: Any, config: Any, attention: str = "sdpa", experts: str = "") -> Any:
    """A model of transformers with random weights."""
    config._attn_implementation = attention
    if experts:
        config._experts_implementation = experts
    return lambda: model(config)


def only_ids(length: int, batch: int = 2) -> Any:
    """The batch of a model that generates tokens."""
    return lambda: {"input_ids": torch.zeros((batch, length), dtype=torch.int64)}


def sampled(model: Any, batch: Batch, state: Any) -> Any:
    """One step with a temperature, the k likeliest tokens, and one drawn of them."""
    out = model(**batch, use_cache=True) if state is None else model(
        input_ids=state[0], past_key_values=state[1], use_cache=True)  # fmt: skip
    logits = out.logits[:, -1].float() / 0.8
    least = torch.topk(logits, 50).values[:, -1:]
    logits = logits.masked_fill(logits < least, -torch.inf)
    return torch.multinomial(torch.softmax(logits, -1), 1), out.past_key_values


def whisper_step(model: Any, batch: Batch, state: Any) -> Any:
    """One token of a transcript; the encoder runs in the first step."""
    ids = batch["ids"] if state is None else state[0]
    encoded = model.model.encoder(batch["sound"]) if state is None else state[2]
    out = model(encoder_outputs=encoded, decoder_input_ids=ids, use_cache=True,
        past_key_values=None if state is None else state[1])  # fmt: skip
    return out.logits[:, -1:].argmax(-1), out.past_key_values, encoded


def noise_loss(model: Any, batch: Batch) -> torch.Tensor:
    """The squared error of a diffusion transformer."""
    told = model(hidden_states=batch["latents"], timestep=batch["times"], encoder_hidden_states=batch["text"]).sample
    return torch.nn.functional.mse_loss(told.float(), batch["latents"].float())


def video() -> Batch:
    """Latents of a short video, and a prompt."""
    return {
        "latents": torch.zeros((1, 16, 9, 30, 52), dtype=torch.bfloat16),
        "times": torch.zeros((1,), dtype=torch.int64),
        "text": torch.zeros((1, 512, 4096), dtype=torch.bfloat16),
    }


def pairs() -> Batch:
    """Pictures with their captions."""
    return {
        "input_ids": torch.zeros((64, 64), dtype=torch.int64),
        "pixel_values": torch.zeros((64, 3, 224, 224), dtype=torch.bfloat16),
    }


def with_adapters() -> Any:
    """A Mistral with LoRA on its attention and its network."""
    config = tf.MistralConfig(num_hidden_layers=2, vocab_size=32_000, sliding_window=None)
    config._attn_implementation = "sdpa"
    lora = peft.LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear", task_type="CAUSAL_LM")
    return peft.get_peft_model(tf.MistralForCausalLM(config), lora)


def seq2seq() -> Batch:
    """A text and what is to be made of it."""
    ids = torch.zeros((2, 1024), dtype=torch.int64)
    return {"input_ids": ids, "decoder_input_ids": ids[:, :512].clone(), "labels": ids[:, :512].clone()}


def _t5gemma() -> Any:
    part = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 128, "num_hidden_layers": 2, "vocab_size": 64_000}  # fmt: skip
    config = tf.T5GemmaConfig(
        encoder=tf.T5GemmaModuleConfig(**part), decoder=tf.T5GemmaModuleConfig(**part), vocab_size=64_000
    )
    return built(tf.T5GemmaForConditionalGeneration, config, "eager")()


MODELS: tuple[Program, ...] = (
    Training(
        "gemma3_train", "Gemma3ForCausalLM as wide as Gemma 3 1B",
        built(tf.Gemma3ForCausalLM, tf.Gemma3TextConfig(hidden_size=1152, intermediate_size=6912, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=1, head_dim=256, vocab_size=262_144)),
        tokens(1, 2048), clips=True,
    ),
    Training(
        "olmo2_eager_train_adam_for", "Olmo2ForCausalLM, eager attention, as wide as OLMo 2 1B",
        built(tf.Olmo2ForCausalLM, tf.Olmo2Config(hidden_size=2048, intermediate_size=8192, num_hidden_layers=2,
            num_attention_heads=16, vocab_size=100_352), "eager"),
        tokens(1, 2048), optimizer=adamw(foreach=False), clips=True,
    ),
    Training(
        "cohere2_train", "Cohere2ForCausalLM, as wide as Command R7B",
        built(tf.Cohere2ForCausalLM, tf.Cohere2Config(hidden_size=4096, intermediate_size=14_336, num_hidden_layers=2,
            num_attention_heads=32, num_key_value_heads=8, vocab_size=256_000)),
        tokens(1, 2048),
    ),
    Training(
        "stablelm_train", "StableLmForCausalLM, rotary over a part of the heads, as wide as StableLM 3B",
        built(tf.StableLmForCausalLM, tf.StableLmConfig(num_hidden_layers=2)),
        tokens(1, 4096),
    ),
    Training(
        "modernbert_mlm_train", "ModernBertForMaskedLM, as wide as ModernBERT base",
        built(tf.ModernBertForMaskedLM, tf.ModernBertConfig(num_hidden_layers=4)),
        tokens(4, 1024), loss=lambda model, batch: model(**batch).loss,
    ),
    Training(
        "t5gemma_eager_train", "T5GemmaForConditionalGeneration, eager attention", _t5gemma, seq2seq, clips=True,
    ),
    Training(
        "mamba2_train", "Mamba2ForCausalLM without its own kernels, as wide as Mamba 2 130M",
        built(tf.Mamba2ForCausalLM, tf.Mamba2Config(hidden_size=768, num_heads=24, head_dim=64, num_hidden_layers=2,
            vocab_size=50_288, n_groups=1), "eager"),
        tokens(1, 1024),
    ),
    Training(
        "granite_hybrid_train_cpu", "GraniteMoeHybridForCausalLM: Mamba 2, attention and experts",
        built(tf.GraniteMoeHybridForCausalLM, tf.GraniteMoeHybridConfig(**SMALL, num_hidden_layers=3,
            layer_types=["mamba", "attention", "mamba"], num_local_experts=8, num_experts_per_tok=2,
            shared_intermediate_size=256, mamba_n_heads=8, mamba_d_head=64, mamba_d_state=64)),
        tokens(2, 128), device="cpu",
    ),
    Decoding(
        "qwen3_next_decode_cpu", "Qwen3NextForCausalLM: linear and gated attention, experts; sampling",
        built(tf.Qwen3NextForCausalLM, tf.Qwen3NextConfig(**SMALL, num_hidden_layers=4, head_dim=64, num_experts=8,
            num_experts_per_tok=2, moe_intermediate_size=128, shared_expert_intermediate_size=128,
            linear_num_value_heads=8, linear_num_key_heads=4, linear_key_head_dim=64, linear_value_head_dim=64)),
        only_ids(64), device="cpu", step=sampled,
    ),
    Decoding(
        "gpt_oss_decode_cpu", "GptOssForCausalLM: sinks, experts with a limited gate",
        built(tf.GptOssForCausalLM, tf.GptOssConfig(**SMALL, num_hidden_layers=4, head_dim=64, num_local_experts=8,
            num_experts_per_tok=2), "eager"),
        only_ids(64), device="cpu",
    ),
    Decoding(
        "deepseek_v3_decode_cpu", "DeepseekV3ForCausalLM: latent attention",
        built(tf.DeepseekV3ForCausalLM, tf.DeepseekV3Config(**(SMALL | {"num_key_value_heads": 4}),
            num_hidden_layers=3, first_k_dense_replace=1, n_routed_experts=16, num_experts_per_tok=4, n_group=4,
            topk_group=2, moe_intermediate_size=128, q_lora_rank=128, kv_lora_rank=64, qk_nope_head_dim=64,
            qk_rope_head_dim=32, v_head_dim=64)),
        only_ids(64), device="cpu",
    ),
    Training(
        "llama4_train_cpu", "Llama4ForCausalLM: experts of all tokens at once, complex rotary",
        built(tf.Llama4ForCausalLM, tf.Llama4TextConfig(**SMALL, intermediate_size_mlp=512, num_hidden_layers=3,
            head_dim=64, num_local_experts=4, num_experts_per_tok=1)),
        tokens(2, 128), device="cpu",
    ),
    Training(
        "glm4_moe_train_cpu", "Glm4MoeForCausalLM, experts one after the other",
        built(tf.Glm4MoeForCausalLM, tf.Glm4MoeConfig(**SMALL, num_hidden_layers=3, head_dim=64, n_routed_experts=8,
            num_experts_per_tok=2, moe_intermediate_size=128, first_k_dense_replace=1), experts="eager"),
        tokens(2, 128), device="cpu", clips=True,
    ),
    Training(
        "olmoe_grouped_train_cpu", "OlmoeForCausalLM, grouped products of experts",
        built(tf.OlmoeForCausalLM, tf.OlmoeConfig(**SMALL, num_hidden_layers=2, num_experts=8, num_experts_per_tok=2),
            experts="grouped_mm"),
        tokens(2, 128), device="cpu",
    ),
    Decoding(
        "whisper_decode", "WhisperForConditionalGeneration as wide as Whisper small",
        built(tf.WhisperForConditionalGeneration, tf.WhisperConfig(d_model=768, encoder_layers=2, decoder_layers=3,
            encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072)),
        lambda: {"sound": torch.zeros((8, 80, 3000), dtype=torch.bfloat16),
            "ids": torch.zeros((8, 4), dtype=torch.int64)},
        step=whisper_step,
    ),
    Training(
        "siglip_train", "SiglipModel as wide as SigLIP base",
        built(tf.SiglipModel, tf.SiglipConfig(text_config={"num_hidden_layers": 2},
            vision_config={"num_hidden_layers": 2})),
        pairs, loss=lambda model, batch: model(**batch, return_loss=True).loss,
    ),
    Training(
        "lora_mistral_train", "MistralForCausalLM with LoRA on all linear layers", with_adapters, tokens(1, 4096),
    ),
    Training(
        "wan_video_train", "WanTransformer3DModel as wide as Wan 2.1 1.3B",
        lambda: diffusers.WanTransformer3DModel(num_attention_heads=12, attention_head_dim=128, ffn_dim=8960,
            num_layers=2),
        video, loss=noise_loss, clips=True,
    ),
    Training(
        "ltx_video_train", "LTXVideoTransformer3DModel as wide as LTX Video",
        lambda: diffusers.LTXVideoTransformer3DModel(num_layers=2),
        lambda: {"latents": torch.zeros((1, 2048, 128), dtype=torch.bfloat16),
            "times": torch.zeros((1,), dtype=torch.int64), "text": torch.zeros((1, 128, 4096), dtype=torch.bfloat16),
            "mask": torch.ones((1, 128), dtype=torch.int64)},
        loss=lambda model, batch: torch.nn.functional.mse_loss(model(
            hidden_states=batch["latents"], encoder_hidden_states=batch["text"], timestep=batch["times"],
            encoder_attention_mask=batch["mask"], num_frames=8, height=16, width=16).sample.float(),
            batch["latents"].float()),
    ),
)  # fmt: skip
