"""An iteration of reinforcement learning on one group of processes, as a program for the main thread of a rank.

The phases follow each other on the same devices, as verl runs them when it collects them into one profile: generate
responses, score them under the actor and under the reference model, reward them, work out advantages, update the
actor (docs/sources.md#iteration-of-reinforcement-learning). Each phase is marked with its name. Ranks meet when all
responses are there, to share them out evenly, at the statistics of the rewards, and at the gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Annotated

from pydantic import Field

from ..described import FROM_FILES, Natural, Positive
from ..kernels import DType, Tensor, vector
from ..models.eager import FP32, Eager, call
from ..models.model import FUSED, SHARED_WEIGHT, Decoder, Implementation, ModelShape, Parameters
from ..program import (
    CloseMark,
    Instruction,
    Item,
    Leave,
    NextBatch,
    Op,
    OpenMark,
    Python,
)
from .communicator import Place
from .serving import Inference
from .steps import program_of_steps
from .training import Training, TrainingLoop, python

CACHE_BLOCK = 128
"""Positions per block of a paged cache (docs/sources.md#paged-cache)."""
TAIL_SHARE = 8
"""One request in so many is still being answered when the typical response has ended (assumed)."""
SCHEDULE_NS = 150_000
"""Host work of an inference engine before each pass: as in the serving scenarios."""


@dataclass(frozen=True, slots=True)
class Reinforcement:
    """A job that trains a model on its own responses.

    ``shape``: one micro-batch of the update, ``sequence`` being prompt and response together; a rank has
    ``micro_batches`` of them. ``response``: tokens of a typical response, each of them a decode pass over all requests.
    ``reward_ns``: work of the reward function on the host; ``engine_ns``: what the inference engine does in Python
    before each operator of a pass.
    """

    __pydantic_config__ = FROM_FILES
    shape: Annotated[ModelShape, Field(alias="model")]
    response: Positive
    reward_ns: Natural
    steps: Positive = 2
    micro_batches: Positive = 1
    implementation: Implementation = FUSED
    engine_ns: Natural = 0

    @property
    def requests(self) -> int:
        """Requests of one rank."""
        return self.shape.batch * self.micro_batches

    @property
    def prompt(self) -> int:
        """Tokens of a prompt."""
        return self.shape.sequence - self.response

    @property
    def update(self) -> Training:
        """The training of the actor."""
        return Training(
            self.shape,
            implementation=self.implementation,
            steps=self.steps,
            micro_batches=self.micro_batches,
            reads_loss=False,
            has_loader=False,
        )


class ReinforcementLoop:
    """Writes the program of one rank. ``longest``: its longest responses as a multiple of a typical one."""

    def __init__(self, job: Reinforcement, place: Place, loading_ns: int, longest: float) -> None:
        self._job = job
        self._alone = place.gradients is None
        self._loading_ns = loading_ns
        self._passes = round(job.response * longest)
        self._actor = TrainingLoop(job.update, place, 0)
        self._reference = Parameters(job.shape, job.implementation)
        capacity = (job.requests, job.prompt + self._passes)
        self._engine = Inference(job.shape, job.implementation, capacity, CACHE_BLOCK)

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first iteration: actor with optimizer, reference, and the engine with its cache."""
        reference = sum(weight.nbytes for weight in self._reference.weights.values())
        return self._actor.resident_bytes + reference + self._engine.resident_bytes

    def program(self) -> list[Instruction]:
        """The instructions of all iterations, with every tensor's last use known."""
        return program_of_steps(
            [python("ray_trainer.py(1012): fit")], self._job.steps, lambda _: marked("step", self._iteration())
        )

    def _iteration(self) -> list[Instruction]:
        actor = self._actor.weights
        return [
            *marked("generate_sequences", self._generate()),
            *self._share_out(),
            *marked("compute_log_prob", self._log_probs(actor)),
            *marked("compute_ref_log_prob", self._log_probs(self._reference)),
            *marked("reward", self._reward()),
            *marked("adv", self._advantage()),
            *marked("update_actor", self._update()),
        ]

    def _generate(self) -> list[Instruction]:
        """Prefill of all prompts, then one pass per token; nothing is read back until all responses are there."""
        job = self._job
        prompts = Tensor((job.requests, job.prompt), DType.INT64)
        program: list[Instruction] = [
            python("vllm_rollout_spmd.py(204): generate_sequences"),
            NextBatch(prompts, self._loading_ns),
        ]
        forward, chosen = self._engine.forward(prompts, 0)
        program += self._paced(forward)
        for number in range(self._passes):
            requests = job.requests if number < job.response else max(1, job.requests // TAIL_SHARE)
            tokens = Tensor((requests, 1), DType.INT64)
            forward, chosen = self._engine.forward(tokens, job.prompt + number)
            program += [
                python("engine.py(301): step"),
                Python(SCHEDULE_NS),
                NextBatch(tokens, 0, loader=False),
                *self._paced(forward),
                Leave(),
            ]
        return [*program, Item(chosen), Leave()]

    def _paced(self, forward: list[Instruction]) -> list[Instruction]:
        """The engine's own Python before each operator."""
        if not self._job.engine_ns:
            return forward
        slow: list[Instruction] = []
        for instruction in forward:
            slow += [Python(self._job.engine_ns), instruction] if isinstance(instruction, Op) else [instruction]
        return slow

    def _share_out(self) -> list[Instruction]:
        """Every rank learns how long all responses are and which of them it is to work on."""
        lengths = Tensor((self._job.requests,), FP32, persistent=True)
        return [*self._meet(lengths), Python(400_000)]

    def _meet(self, data: Tensor) -> list[Instruction]:
        """Add up small numbers over all ranks and wait for them."""
        if self._alone:
            return []
        return [*self._actor.all_reduce(data), Item(data)]

    def _log_probs(self, weights: Parameters) -> list[Instruction]:
        """Log-probabilities of all tokens under one model: forward passes without gradients, then a read-back."""
        job = self._job
        program: list[Instruction] = [python("dp_actor.py(268): compute_log_prob")]
        loss = Tensor((), FP32)
        for _ in range(job.micro_batches):
            tokens = Tensor((job.shape.batch, job.shape.sequence), DType.INT64)
            labels = Tensor((job.shape.tokens,), DType.INT64, base=tokens)
            eager = Eager(weights.weights, SHARED_WEIGHT, count(-1, 0).__next__, lambda name, gradient: [])
            loss, _ = Decoder(job.shape, job.implementation, eager).micro_batch(tokens, labels)
            program += [NextBatch(tokens, 0, loader=False), *eager.forward]
        return [*program, Item(loss), Leave()]

    def _reward(self) -> list[Instruction]:
        """A reward function that compares texts: work of the host alone."""
        return [python("naive.py(46): __call__"), Python(self._job.reward_ns), Leave()]

    def _advantage(self) -> list[Instruction]:
        """Rewards become advantages, less their mean over all ranks and over their deviation; one number is logged."""
        job = self._job
        scores = Tensor((job.requests, job.response), FP32)
        centred, scaled = (Tensor(scores.shape, FP32) for _ in range(2))
        statistics = Tensor((2,), FP32, persistent=True)
        subtract = vector("aclnnSub", "Sub", (scores, statistics), (centred,))
        scale = vector("aclnnDiv", "RealDiv", (centred, statistics), (scaled,))
        return [
            python("core_algos.py(122): compute_grpo_outcome_advantage"),
            NextBatch(scores, 0, loader=False),
            *self._meet(statistics),
            call("aten::sub", "aclnnSub", subtract, scalars=1),
            call("aten::div", "aclnnDiv", scale),
            Item(scaled),
            Leave(),
        ]

    def _update(self) -> list[Instruction]:
        norm = Tensor((), FP32, persistent=True)
        return [python("dp_actor.py(344): update_policy"), *self._actor.step(), Item(norm), Leave()]


def marked(message: str, phase: list[Instruction]) -> list[Instruction]:
    """A phase within a range that has its name."""
    return [OpenMark(message), *phase, CloseMark()]
