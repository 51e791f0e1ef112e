"""Programs as tutorials and research code write them: their own norms, rotary embeddings, gates, caches, optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from tests.programs.unseen.program import Batch, Decoding, Program, Training, adamw, tokens


class Norm(nn.Module):
    """An RMSNorm that divides by the root."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        root = torch.sqrt(torch.mean(wide * wide, dim=-1, keepdim=True) + 1e-5)
        return self.scale * (wide / root).to(x.dtype)


class LengthNorm(nn.Module):
    """An RMSNorm by the length of the row."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.g, self.root = nn.Parameter(torch.ones(width)), width**0.5

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * self.root * self.g


def turned_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A rotary embedding of neighbours."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def turned_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A rotary embedding of halves, in FP32."""
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).type_as(x)


def angles(length: int, width: int, device: Any) -> tuple[Tensor, Tensor]:
    """Cosines and sines."""
    steps = 10_000 ** (-torch.arange(0, width, 2, device=device).float() / width)
    turns = torch.outer(torch.arange(length, device=device).float(), steps)
    return turns.cos(), turns.sin()


class Block(nn.Module):
    """A layer of a small language model, with a choice of how it is written."""

    def __init__(self, width: int, heads: int, norm: Callable[[int], nn.Module], turned: Any, *, written: bool) -> None:
        super().__init__()
        self.heads, self.turned, self.written = heads, turned, written
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.gate = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(4 * width, width, bias=False)
        self.first, self.second = norm(width), norm(width)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: Any = None, place: Any = None) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in
            self.qkv(self.first(x)).split(width, dim=-1))  # fmt: skip
        q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
        if cache is not None:
            cache[0][:, :, place], cache[1][:, :, place] = k, v
            k, v = cache
        if self.written:
            scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
            hidden = torch.ones(length, k.shape[2], dtype=torch.bool, device=x.device).tril(k.shape[2] - length)
            mixed = torch.softmax(scores.masked_fill(~hidden, -1e9), dim=-1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        hidden_state = self.second(x)
        gate = self.gate(hidden_state)
        return x + self.down(gate * torch.sigmoid(gate) * self.up(hidden_state))


class Small(nn.Module):
    """A language model of such layers."""

    def __init__(self, width: int, heads: int, layers: int, vocabulary: int, norm: Any, turned: Any, *, written: bool):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, norm, turned, written=written) for _ in range(layers))
        self.norm, self.head = norm(width), nn.Linear(width, vocabulary, bias=False)
        self.width = width // heads

    def forward(self, ids: Tensor, caches: Any = None, place: Any = None) -> Tensor:
        cos, sin = (one.to(self.embedding.weight.dtype) for one in angles(ids.shape[1], self.width, ids.device))
        x = self.embedding(ids)
        for number, block in enumerate(self.blocks):
            x = block(x, cos, sin, caches[number] if caches else None, place)
        logits: Tensor = self.head(self.norm(x))
        return logits


def next_token_loss(model: Any, batch: Batch) -> Tensor:
    """Cross-entropy of the next token."""
    logits = model(batch["input_ids"])
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), batch["labels"].view(-1))


def loss_by_hand(model: Any, batch: Batch) -> Tensor:
    """The loss written out: the logarithm of the sum less the logit of the target."""
    logits = model(batch["input_ids"]).float()
    target = logits.gather(-1, batch["labels"].unsqueeze(-1)).squeeze(-1)
    return (torch.logsumexp(logits, dim=-1) - target).mean()


def drawn(model: Any, batch: Batch, state: Any) -> Any:
    """One step with a cache for all tokens, and a token drawn as gpt-fast does."""
    if state is None:
        length, parameter = batch["input_ids"].shape[1], model.embedding.weight
        shape = (batch["input_ids"].shape[0], 16, 1024, model.width)
        caches = [[torch.zeros(shape, dtype=parameter.dtype) for _ in range(2)] for _ in model.blocks]
        logits, at = model(batch["input_ids"], caches, torch.arange(length)), length
    else:
        ids, caches, at = state
        logits, at = model(ids, caches, torch.full((1,), at)), at + 1
    last = logits[:, -1] / 0.7
    least = torch.topk(last, 40).values[:, -1:]
    odds = torch.softmax(torch.where(last < least, -float("inf"), last), dim=-1)
    noise = torch.empty_like(odds).exponential_(1)
    return torch.argmax(odds / noise, dim=-1, keepdim=True), caches, at


class WideMoments:
    """AdamW over lists of BF16 weights, with the weights and both moments in FP32."""

    def __init__(self, weights: list[Any]) -> None:
        self.weights, self.count = weights, 0
        self.masters = [weight.detach().float().clone() for weight in weights]
        self.means = [torch.zeros_like(weight) for weight in self.masters]
        self.squares = [torch.zeros_like(weight) for weight in self.masters]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights."""
        self.count += 1
        gradients = [weight.grad.float() for weight in self.weights]
        torch._foreach_mul_(self.masters, 1 - 1e-5)
        torch._foreach_lerp_(self.means, gradients, 0.1)
        torch._foreach_mul_(self.squares, 0.95)
        torch._foreach_addcmul_(self.squares, gradients, gradients, 0.05)
        roots = torch._foreach_sqrt(self.squares)
        torch._foreach_div_(roots, (1 - 0.95**self.count) ** 0.5)
        torch._foreach_add_(roots, 1e-8)
        torch._foreach_addcdiv_(self.masters, self.means, roots, -1e-4)
        torch._foreach_copy_(self.weights, self.masters)


class LionByHand:
    """Lion, weight by weight: no Adam."""

    def __init__(self, weights: list[Any]) -> None:
        self.weights, self.means = weights, [torch.zeros_like(weight) for weight in weights]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights."""
        for weight, mean in zip(self.weights, self.means, strict=True):
            weight.mul_(1 - 1e-5).add_(mean.mul(0.9).add(weight.grad, alpha=0.1).sign_(), alpha=-1e-4)
            mean.mul_(0.99).add_(weight.grad, alpha=0.01)


class Graph(nn.Module):
    """Graph attention: scores of edges, a softmax over the edges of each node, sums over neighbours."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs, self.outputs = nn.Linear(128, width), nn.Linear(width, 40)
        self.products = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.sources, self.targets = (
            nn.ParameterList(torch.ones(heads, width // heads) for _ in range(layers)) for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x, nodes = self.inputs(x), x.shape[0]
        source, target = edges
        for product, ours, theirs, norm in zip(self.products, self.sources, self.targets, self.norms, strict=True):
            h = product(x).view(nodes, self.heads, -1)
            score = F.leaky_relu((h * ours).sum(-1)[source] + (h * theirs).sum(-1)[target], 0.2)
            weight = torch.exp(score - score.max())
            total = torch.zeros(nodes, self.heads, dtype=x.dtype, device=x.device).index_add(0, target, weight)
            weight = weight / (total[target] + 1e-9)
            message = h[source] * weight.unsqueeze(-1)
            x = x + norm(F.elu(torch.zeros_like(h).index_add(0, target, message).flatten(1)))
        result: Tensor = self.outputs(x)
        return result


class Recommender(nn.Module):
    """Embeddings of features, their products with one another, and a cross network with low rank."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(100_000, width) for _ in range(features))
        self.dense = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        size = (features + 1) * width
        self.down = nn.ModuleList(nn.Linear(size, 64, bias=False) for _ in range(3))
        self.up = nn.ModuleList(nn.Linear(64, size) for _ in range(3))
        self.top = nn.Sequential(nn.Linear(size + (features + 1) ** 2, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, numbers: Tensor, classes: Tensor) -> Tensor:
        rows = [self.dense(numbers), *(table(classes[:, place]) for place, table in enumerate(self.tables))]
        stacked = torch.stack(rows, dim=1)
        pairs = torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1)
        first = x = stacked.flatten(1)
        for down, up in zip(self.down, self.up, strict=True):
            x = first * up(down(x)) + x
        result: Tensor = self.top(torch.cat((x, pairs), dim=1)).squeeze(1)
        return result


OWN: tuple[Program, ...] = (
    Training(
        "tutorial_gpt_train", "a tutorial's GPT: norms by a root, neighbours turned, attention and gate written out",
        lambda: Small(1024, 16, 3, 32_000, Norm, turned_pairs, written=True), tokens(2, 1024), loss=next_token_loss,
        optimizer=adamw(foreach=False), dtype=torch.float32, clips=True,
    ),
    Training(
        "wide_moments_train", "BF16 weights with FP32 weights and moments over lists, loss written out",
        lambda: Small(1024, 16, 2, 64_000, LengthNorm, turned_halves, written=False), tokens(2, 1024),
        loss=loss_by_hand, optimizer=WideMoments,
    ),
    Training(
        "lion_train", "Lion weight by weight",
        lambda: Small(768, 12, 2, 32_000, Norm, turned_halves, written=False), tokens(2, 1024), loss=next_token_loss,
        optimizer=LionByHand,
    ),
    Decoding(
        "own_cache_decode", "a cache for all tokens, written by index, and a token drawn with exponential noise",
        lambda: Small(1024, 16, 3, 32_000, Norm, turned_halves, written=False),
        lambda: {"input_ids": torch.zeros((8, 128), dtype=torch.int64)}, step=drawn,
    ),
    Training(
        "graph_attention_train", "graph attention on 10,000 nodes and 80,000 edges", lambda: Graph(256, 8, 3),
        lambda: {"x": torch.zeros(10_000, 128), "edges": torch.zeros((2, 80_000), dtype=torch.int64),
            "labels": torch.zeros(10_000, dtype=torch.int64)},
        loss=lambda model, batch: F.cross_entropy(model(batch["x"], batch["edges"]), batch["labels"]),
        optimizer=lambda weights: torch.optim.Adam(weights, lr=1e-3, foreach=True), dtype=torch.float32,
    ),
    Training(
        "recommender_train", "embeddings, pairwise products and a cross network", lambda: Recommender(26, 64),
        lambda: {"numbers": torch.zeros(8192, 13), "classes": torch.zeros((8192, 26), dtype=torch.int64),
            "clicked": torch.zeros(8192)},
        loss=lambda model, batch: F.binary_cross_entropy_with_logits(
            model(batch["numbers"], batch["classes"]), batch["clicked"]),
        optimizer=lambda weights: torch.optim.Adam(weights, lr=1e-3, foreach=False), dtype=torch.float32,
    ),
)  # fmt: skip
