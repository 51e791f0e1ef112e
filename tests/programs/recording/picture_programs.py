"""The programs on pictures that are recorded: convolutional networks and the models of diffusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import transformers
from diffusers import DiTTransformer2DModel, UNet2DConditionModel
from diffusers.models.attention_processor import Attention, AttnProcessor, AttnProcessor2_0
from diffusers.models.embeddings import LabelEmbedding

from advisor_core.sample.models.recorded import PARTS
from tests.programs.recording.norms import fuse_norms
from tests.programs.recording.programs import Training

CONTEXT = (77, 768)
"""Tokens of a prompt and their width, as Stable Diffusion 1.5 has them."""


@dataclass(frozen=True)
class Convolutional(Training):
    """A convolutional classifier of transformers."""

    def built(self, parts: frozenset[str]) -> torch.nn.Module:
        """The model, which has no attention."""
        model: torch.nn.Module = self.model(self.config)
        return model

    @property
    def layers(self) -> str:
        """How deep it is, in words."""
        return f"{sum(self.config.depths)} blocks"


@dataclass(frozen=True)
class Diffusion(Training):
    """A model of diffusers that tells the noise in latent pictures. ``config``: its settings."""

    @property
    def layers(self) -> str:
        """How deep it is, in words."""
        config = self.config
        return (
            f"{config['num_layers']} layers"
            if "num_layers" in config
            else f"{len(config['block_out_channels'])} stages"
        )

    @property
    def work(self) -> str:
        """What a step does, in words."""
        batch, size = self.inputs
        return f"{batch} x {size} x {size} latents, a training step"

    def built(self, parts: frozenset[str]) -> torch.nn.Module:
        """The model with the attention and the norms that it is to have."""
        model: torch.nn.Module = self.model(**self.config)
        eager = "attention" in PARTS[self.name] and "attention" not in parts
        for attention in (one for one in model.modules() if isinstance(one, Attention)):
            attention.set_processor(AttnProcessor() if eager else AttnProcessor2_0())
        for labels in (one for one in model.modules() if isinstance(one, LabelEmbedding)):
            labels.dropout_prob = 0.0  # else random labels are left out
        if "group-norm" in parts:
            fuse_norms(model)
        return model

    def batch(self) -> dict[str, torch.Tensor]:
        """The latents, their time steps, what they are to show, and the noise."""
        batch, size = self.inputs
        latents = torch.empty((batch, 4, size, size), dtype=torch.bfloat16)
        times = torch.empty((batch,), dtype=torch.int64)
        if self.model is DiTTransformer2DModel:
            shows = {"class_labels": torch.empty((batch,), dtype=torch.int64)}
        else:
            shows = {"encoder_hidden_states": torch.empty((batch, *CONTEXT), dtype=torch.bfloat16)}
        return {"hidden_states": latents, "timestep": times, **shows, "noise": torch.empty_like(latents)}

    def loss(self, model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """The squared error of the predicted noise."""
        latents, times, shows, noise = batch.values()
        known = {name: shows for name in batch if name in ("class_labels", "encoder_hidden_states")}
        told = model(latents, timestep=times, **known).sample[:, : noise.shape[1]]
        return torch.nn.functional.mse_loss(told.float(), noise.float())


PICTURE_PROGRAMS: tuple[Training, ...] = (
    Convolutional(
        "resnet",
        "ResNetForImageClassification as large as ResNet-50",
        None,
        "",
        transformers.ResNetConfig(num_labels=1000),
        transformers.ResNetForImageClassification,
        (64, 224),
        pictures=True,
        optimizer="SGD",
    ),
    Diffusion(
        "unet",
        "UNet2DConditionModel, the outer three stages of Stable Diffusion 1.5 with one block each",
        None,
        "",
        {
            "block_out_channels": (320, 640, 1280),
            "layers_per_block": 1,
            "down_block_types": ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
            "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
            "cross_attention_dim": CONTEXT[1],
            "attention_head_dim": 8,
            "sample_size": 64,
        },
        UNet2DConditionModel,
        (8, 64),
        foreach=True,
    ),
    Diffusion(
        "dit",
        "DiTTransformer2DModel as wide as DiT-XL/2",
        None,
        "",
        {"num_layers": 4, "num_attention_heads": 16, "attention_head_dim": 72, "sample_size": 32, "out_channels": 8},
        DiTTransformer2DModel,
        (64, 32),
    ),
)
