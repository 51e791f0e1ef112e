"""Scores the programs of a folder, prints the tables and writes ``docs/programs.md``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.programs.score import WORTH, Program, Score, programs, scored

PAGE = Path(__file__).parent.parent.parent / "docs" / "programs.md"
FOLDER = "NPU_ADVISOR_PROGRAMS"
FOLDER_OF_GPUS = "NPU_ADVISOR_PROGRAMS_OF_GPUS"
"""The same programs, as `tests.programs.kineto` writes them."""

HELD_BACK = (
    *("bert_mlm_train_sdpa", "clip_train", "convnext_tiny_train", "deep_qwen3moe_eager_8l_cpu", "generate_beam_cpu"),
    *("llama_sdpamath_train", "megatron_ce_fused_tp2", "megatron_llama_tp2_recompute", "megatron_llama_tp2_unfused"),
    *("mixtral_train_grouped_mm_cpu", "qwen2_sdpa_prefill_decode_dynamic", "qwen2_sdpa_train_adamw_fused"),
    *("qwen3_sdpa_prefill_decode_dynamic", "timm_vit_base_train", "trl_entropy_bf16"),
)
"""Programs that nobody looked at while the search was developed, drawn at random."""

NEAR = 0.2
"""A gain is right that is so close to what the bytes say (the goal of the project)."""

HEAD = """# Programs that nobody here wrote

Which computations are found in recorded programs, and named rightly. The programs are unmodified public ones
(transformers, Megatron-LM, diffusers, timm, TRL), recorded operator by operator below autograd; each operator stands
as the kernels that it becomes on an Ascend NPU, with their shapes and types, and nothing else: no host, no stacks, no
names of modules. `python -m tests.programs.prepare` makes them out of recorded streams, which are not part of the
project, and `make programs` writes this page.

What they compute is told from the operators, from which of them reads what another wrote (recorded, not guessed), and
from the nodes of autograd; no kernel, name or order of kernels enters it. A computation counts as found where more than
half of its kernels, and half of those found, are the same. "Most of the time" is the largest part of the kernel time of
a program that all its occurrences take; times are modelled (bytes at 1.2 TB/s, products at 250 TFLOP/s, 3 us at least).
"Gain right" counts the programs in which the saving that is promised for what was found is within 20 % of what the
bytes say: every tensor from outside once, and every result that others read; where products belong to the computation
it is not compared.

Programs that were held back were drawn at random before the work began, and were not looked at. What was added to the
truth and to the search later was judged on them blind, once:

- the first search differed from the truth of that time in two computations;
- the loss over a divided vocabulary was found in the three programs that have it, and four scores of a beam search were
  called log-probabilities: the form then took one number of each row only;
- two false norms of CLIP went when a backward pass without its forward pass began to name nothing;
- experts that run one after the other were found in all 16 places of the one program that has them, and nowhere else;
  what brings the results of grouped experts back in all 4, and nowhere else. Of the programs below it was developed
  with `qwen3moe_*`, `deepseekv3_*` and `megatron_moe_*`; the experts of `mixtral_train_eager_cpu`, which was not used
  for it, are found as well;
- when gates had to read products, two false gates of CLIP went and 14 of 54 in an eager Qwen3 MoE were lost: experts of
  one token, whose halves need no copy. That form was added from a Mixtral, and they are found again;
- entropies, routers, permutes and writes into caches were developed with the other programs: of those held back all 64
  entropies (of a program like one of those, in BF16), 10 routers, 2 permutes and 40 writes are found, forward and
  backward, and nothing else got one of these names. The truth of routers, permutes, writes and SGD is of the same day;
- quantised rows and restored weights occur in none of the programs below. They were written from what they compute,
  and judged on small models that were recorded in the same way, from unmodified packages: the rows of a Llama and a
  Qwen2 (torchao 0.18) and of a BitNet (transformers 5.23), which was held back, are found in all 42 places, with
  gains within 4 %, the weights of a Llama (torchao) in all 14. The search for rows was not changed after its first
  run; the truth was, which had left out 6 places of torchao and had other kernels in 7 of BitNet. Blind there were 18
  false weights: INT8 that had just been quantised (4, BitNet), and zero points of weights that are only rounded (14,
  compressed-tensors 0.20; the truth had these as well). Both are told apart since;
- GELUs with the error function and quick GELUs were written from what they compute; of the programs below only CLIP has
  some. Seven small programs were recorded for them in the same way (transformers 5.23: ESM, BERT with `gelu_python`,
  ImageGPT, Qwen2-VL, OWL-ViT, GPT-Neo, Qwen3-Next with gated attention). Blind, all 8 and all 13 with those of CLIP are
  found, forward and backward, and nothing else got one of these names; of the backward pass of the 8 two kernels of ten
  were left out, which were added since. One output of gated attention is called SwiGLU there, as it was before;
- additions of a bias behind a product were developed with the recorded pipeline job, which has four. Blind, those of
  three programs recorded for it (transformers 5.23: Falcon, DeBERTa, GPT-NeoX) are found in all 12 places, and those of
  Megatron in 6; the truth had named 6 more, with a collective between product and bias, and names them no longer;
- the first blocks of the stages of convolutional networks were developed with ResNet, EfficientNet and ConvNeXt, which
  was held back until then: its layers judge nothing any more.

Before these changes the same measure told 528 of 618 occurrences of the programs held back and 2,344 of 2,507 of the
others.

The same programs can be read as traces of GPUs (`python -m tests.programs.kineto`), which have the inputs of operators
and no results, and kernels that read views where they lie. Blind, the programs held back had 0 of 177 RMSNorms (their
forms have a copy that GPUs do not make), 104 of 104 rotary embeddings, 96 of 98 SwiGLU, 9 of 9 losses, forward, and 5
false names. Mended since, they have 177, 104, 98 and 9 and no false name; backward 69 of 69 RMSNorms and SwiGLU, and 36
of 46 rotary embeddings. Of the others 2 of 324 rotary embeddings are false, 13 of 16 GeGLU and 239 of 241 SwiGLU are
found. A trace does not have the indices by which rows are taken: how many there are is told by the kernels around,
where they agree. Operators on lists of tensors record a list of shapes for each list, and no types; those are inferred
from the gradients before them. In the first run in which they were read, Adam (0 before) and clipping (3 before) were
found in 10 of 10 programs held back. Routers, writes into caches, the divided loss and loops over experts were looked
for there later, with the others and the 25 programs of the next section; of those held back all 20 routers, 40
writes, 6 losses and 8 loops were then found in the first run, and 690 computations of 696 where it had been 618.
The tables below tell the rest.

LayerNorm written out occurs in none of the programs. Its forms are those of five small models that were written for it
and recorded in the same way.

Kernel by kernel, layers were compared once with the paths of the modules: in the 46 transformers 99 to 100 % of the
kernels of layers are given to the right layer (78 % in the adaptive norms of DiT, 95 % in T5), and 98 to 100 % of all
kernels to the right pass.
"""

BLIND = Path(__file__).parent / "blind.md"
"""What is told of programs that were judged before anybody had looked at them (`tests.programs.unseen`)."""

NOTES = """
## What the counts do not say

- No fused operator computes the entropy of logits: its gain is what one pass over them would save. Of the fused
  operator for routers a backward pass is known for the sigmoid only. Routers, permutes and updates of SGD were part of
  the truth or told before they were looked for or judged; the loss that balances experts is no part of a router any
  more, and what orders the rows is a part of their permute.
- A cache of keys and values is told where one position is written: not where a prompt, or several tokens that were
  guessed, are. What copying costs into a cache that has place for all tokens (`*_static*`) is modelled by the sizes of
  the tensors; the real kernel may write the row alone, and then there is no gain to tell.
- Clipping of gradients is told as a whole, and what could be saved of it only of the norms. Entropies that share the
  log-softmax of log-probabilities are told forward only.
- The fused rotary embedding needs the copy that makes a plain array of a permuted query, as the chain does. That is not
  in what the bytes say, and its gain is told lower.
- Where a fused operator writes something for its backward pass, the bytes that it moves are more than the least: the
  log-softmax of a loss or of log-probabilities, the GELU of GeGLU. Their gains are told lower than the bytes say.
- Adapters (LoRA) are not part of the truth: the one program that has them has 14, and they are found.
- Of the 31 norms of groups of `sd15_unet_train` 6 have no SiLU.
"""


def main() -> None:
    """All programs, over as many processes as there are cores."""
    parts: list[str] = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for variable, on in ((FOLDER, ""), (FOLDER_OF_GPUS, " on GPUs")):
            folder = os.environ.get(variable, "")
            if not folder or not programs(Path(folder)):
                sys.exit(f"{variable} must name a folder of recorded programs (see tests/programs/score.py)")
            done = list(pool.map(scored, programs(Path(folder))))
            held = [program for program in done if program.name in HELD_BACK]
            others = [program for program in done if program.name not in HELD_BACK]
            parts += [*_part(f"Held back{on}", held), *_part(f"Developed with{on}", others)]
    page = "\n".join([HEAD, BLIND.read_text(encoding="utf-8"), *parts, NOTES.strip(), ""])
    PAGE.write_text(page, encoding="utf-8")
    sys.stdout.write(page)


def _part(title: str, part: Sequence[Program]) -> Iterable[str]:
    yield f"## {title}: {len(part)} programs, {sum(program.kernels for program in part):,} kernels"
    yield ""
    yield "| computation | true | found | false | most of the time | gain right | programs with a difference |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    names = dict.fromkeys(name for name, _ in sorted(key for program in part for key in program.scores))
    for key in ((name, backward) for name in names for backward in (False, True)):
        scores = {program.name: program.scores[key] for program in part if key in program.scores}
        if not scores:
            continue
        differ = [
            f"{name} {_difference(score)}" for name, score in scores.items() if score.more or score.found < score.true
        ]
        cells = [
            key[0] + (" backward" if key[1] else ""),
            *(sum(getattr(score, name) for score in scores.values()) for name in ("true", "found", "more")),
            f"{max(score.share for score in scores.values()):.1%}",
            _gains(scores.values()),
            ", ".join(differ),
        ]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    worth = [score for program in part for score in program.scores.values() if score.share >= WORTH]
    count, found = sum(score.true for score in worth), sum(score.found for score in worth)
    more = sum(score.more for program in part for score in program.scores.values())
    yield (
        f"Of {count:,} occurrences of computations that take {WORTH:.0%} of the kernel time of their program or more, "
        f"{found:,} are found and rightly named ({found / max(count, 1):.1%}); {more} names are false. Of the pairs of "
        f"program and computation the gain is right in {_gains(worth)}."
    )
    yield ""
    told = [program for program in part if program.layers is not None]
    wrong = [program for program in told if list(program.layers_found) != list(program.layers or ())]
    differ = [f"{program.name} {_stacks(program.layers_found)} of {_stacks(program.layers or ())}" for program in wrong]
    right = f"{len(told) - len(wrong)} of {len(told)} programs that have layers"
    yield f"Layers: their number in every stack is right in {right}{'; not in ' + ', '.join(differ) if differ else ''}."
    yield ""


def _difference(score: Score) -> str:
    return f"{score.found} of {score.true}" + (f", {score.more} false" if score.more else "")


def _gains(scores: Iterable[Score]) -> str:
    """In how many programs the gain is right, of those where the bytes tell one."""
    told = [score for score in scores if score.gain_ns > 0]
    right = sum(abs(score.gain_found_ns - score.gain_ns) <= NEAR * score.gain_ns for score in told)
    return f"{right} of {len(told)}" if told else ""


def _stacks(layers: Sequence[int]) -> str:
    return "+".join(map(str, layers)) or "none"


if __name__ == "__main__":
    main()
