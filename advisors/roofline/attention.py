"""Attention as numbers: batch, lengths and widths of queries and keys from recorded shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from advisor_core.api.facts import WIDEST_HEAD, Shape, elements, shapes_of

_GRADIENT = re.compile(r"grad|backward|bwd", re.I)

_LENGTHS_UNTOLD = re.compile(r"paged|incre|infer|varlen|unpad|ragged|batch.?(prefill|decode)|unified|mla|sparse", re.I)
"""Attentions over a cache, or over sequences behind one another: how long each is stands in a tensor of values."""

_HEADS_BEHIND = re.compile(r"aten::_(flash|efficient)_attention|flash_attn", re.I)
"""Operators that take ``[batch, sequence, heads, width]``."""

_MAY_BE_CAUSAL = re.compile(r"^aten::|flash_attn|flash_fwd|flash_bwd", re.I)
"""Operators that take the mask above the diagonal as a flag, which no recording tells."""

_COMPRESSED = (2048, 2048)
"""The mask of FlashAttentionScore that stands for one of any size (operator list of Ascend/op-plugin)."""

_ALIGNED = 8
"""FlashAttentionScore writes maximum and sum of each row eight times."""

_MOST_HEADS = 256
"""Twice the heads of the largest models at hand (128 in Llama 3.1 405B and DeepSeek-V3): a longer axis counts tokens.
Our choice."""

_GRADIENT_PRODUCTS = 2.5
"""The gradient computes the scores again and has four products more, where the forward pass has two."""


@dataclass(frozen=True)
class Attention:
    """``queries`` x ``keys`` scores for each of ``batch`` sequences, over ``width`` channels of all heads together.
    ``causal``: half of the scores may be masked, so that nobody computes them."""

    batch: int
    queries: int
    keys: int
    width: int
    gradient: bool
    causal: bool

    @property
    def flops(self) -> float:
        """At least: two products over the channels, of causal attention half of it."""
        whole = 4 * self.batch * self.queries * self.keys * self.width
        return whole * (_GRADIENT_PRODUCTS if self.gradient else 1.0) * (0.5 if self.causal else 1.0)


@lru_cache(maxsize=1 << 16)
def attention_of(operator: str, input_shapes: str, output_shapes: str) -> Attention | None:
    """The attention that a kernel computes; ``None`` where the shapes do not tell, as over a paged cache or over
    sequences of unlike length.

    >>> found = attention_of("FlashAttentionScore", "2,32,4096,128;2,8,4096,128;2,8,4096,128", "2,32,4096,128")
    >>> found.queries, found.keys, found.width, found.flops
    (4096, 4096, 4096, 549755813888.0)
    """
    inputs, outputs = shapes_of(input_shapes), shapes_of(output_shapes)
    if len(inputs) < 3 or _LENGTHS_UNTOLD.search(operator):
        return None
    gradient = bool(_GRADIENT.search(operator))
    query, key = inputs[0], inputs[1]
    if gradient:  # the gradient of the result, which is like the queries, stands in front of them or behind the values
        key = next((shape for shape in inputs[1:4] if shape != query), key)
    if len(query) != len(key) or len(query) not in (3, 4) or not elements(query) or not elements(key):
        return None
    axis = _sequence_axis(operator, query, key, outputs)
    if axis is None:
        return None
    batch_axis = 0 if len(query) == 4 or axis == 1 else 1
    batch, queries, keys = query[batch_axis], query[axis], key[axis]
    if key[batch_axis] != batch:
        return None
    width = elements(query) // (batch * queries)
    masked = any(shape[-2:] in ((queries, keys), _COMPRESSED) for shape in inputs[3:] if len(shape) > 1)
    causal = queries == keys > 1 and (masked or bool(_MAY_BE_CAUSAL.search(operator)))
    return Attention(batch, queries, keys, width, gradient, causal)


def _sequence_axis(operator: str, query: Shape, key: Shape, outputs: tuple[Shape, ...]) -> int | None:
    """Which axis of the query counts its tokens; ``None`` where the layout does not tell."""
    if len(query) == 3:
        if query[-1] <= WIDEST_HEAD:
            return None  # tokens of all sequences behind one another, or one head
        unlike = [axis for axis in (0, 1) if query[axis] != key[axis]]
        return unlike[0] if unlike else int(query[1] >= query[0])
    rows = next((shape for shape in outputs if len(shape) == 4 and shape[-1] == _ALIGNED), None)
    if rows is not None:
        return 2 if rows[1] == query[1] else 1
    if _HEADS_BEHIND.search(operator):
        return 1
    if query[1] != key[1]:
        return 1 if _tokens(query[1], key[1]) else 2
    if query[2] != key[2]:
        return 2 if _tokens(query[2], key[2]) else 1
    return 2 if query[2] >= query[1] else 1


def _tokens(queries: int, keys: int) -> bool:
    """Whether two unlike lengths count tokens, and not heads of which several share one of the keys."""
    return keys > queries or queries % keys > 0 or queries > _MOST_HEADS
