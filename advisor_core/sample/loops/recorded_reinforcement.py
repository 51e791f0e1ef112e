"""An iteration of reinforcement learning that was recorded, as a program for the main thread of one rank.

The phases follow each other on the same devices and are marked with the names that verl gives them, as in
`reinforcement`: generate responses, reward them, score them under the reference model, update the actor.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..described import FROM_FILES, Natural, Positive
from ..kernels import DType, Tensor
from ..models.recorded import Part, RecordedModel, ReinforcementName, StepOfModel, record_of
from ..program import AwaitCommunication, Instruction, Item, Leave, NextBatch, Python
from .communicator import Place
from .recorded_gradients import backward, buckets_of, update
from .reinforcement import marked
from .steps import program_of_steps
from .training import python


@dataclass(frozen=True, slots=True)
class RecordedReinforcement:
    """Reinforcement learning with a recorded program. ``written_out``: the parts of it that are no fused operators of
    torch_npu. ``response``: how many passes a rollout takes after the first one, each of which is the one that was
    recorded. ``reward_ns``: work of the reward function on the host. Gradients are reduced as in training."""

    __pydantic_config__ = FROM_FILES
    program: ReinforcementName
    reward_ns: Natural
    written_out: tuple[Part, ...] = ()
    response: Positive = 64
    steps: Positive = 2
    pass_ns: Natural = 60_000
    bucket_bytes: Natural = 25 * 2**20
    overlapped_buckets: bool = True


class RecordedReinforcementLoop:
    """Writes the program of the rank. ``loading_ns``: what the data loader needs for the prompts; ``longest``: its
    longest responses as a multiple of a typical one. Raises :class:`ValueError` for parts that the program does not
    have."""

    def __init__(self, work: RecordedReinforcement, place: Place, loading_ns: int, longest: float) -> None:
        self._work = work
        self._gradients = place.gradients
        self._loading_ns = loading_ns
        self._passes = round(work.response * longest)
        self._model = RecordedModel(record_of(work.program, work.written_out))

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first iteration: actor with optimizer, reference, and the cache."""
        return sum(tensor.nbytes for tensor in self._model.kept)

    def program(self) -> list[Instruction]:
        """The instructions of all iterations, with every tensor's last use known."""
        frames = (python("grpo.py(58): main"), python("transformers/trainer.py(2325): train"))
        return program_of_steps(frames, self._work.steps, lambda _: marked("step", self._iteration()))

    def _iteration(self) -> list[Instruction]:
        step = self._model.step()
        return [
            *marked("generate_sequences", self._generate(step)),
            *marked("reward", self._reward(step)),
            *marked("compute_ref_log_prob", step.part("score")),
            *marked("update_actor", self._update(step)),
        ]

    def _generate(self, step: StepOfModel) -> list[Instruction]:
        """A pass over the prompts, then one for each token; each reads back whether all responses have ended."""
        program = [NextBatch(step.batch, self._loading_ns), *step.part("prefill")]
        for _ in range(self._passes):
            program += [Python(self._work.pass_ns), *self._model.step().decode()]
        return program

    def _reward(self, step: StepOfModel) -> list[Instruction]:
        """Work of the host alone; then every rank learns the rewards of all, and makes advantages of them."""
        rewards = Tensor(step.advantages.shape, DType.FP32, persistent=True)
        gathered: list[Instruction] = []
        if self._gradients is not None:
            request = self._gradients.collective("allGather", rewards)
            gathered = [request, AwaitCommunication(request)]
        reward: list[Instruction] = [python("grpo.py(31): reward"), Python(self._work.reward_ns), Leave()]
        return [*reward, *gathered, Item(rewards), NextBatch(step.advantages, 0, loader=False)]

    def _update(self, step: StepOfModel) -> list[Instruction]:
        work = self._work
        buckets = buckets_of(self._gradients, work.bucket_bytes, overlapped=work.overlapped_buckets)
        computed = [*step.forward(), *backward(step, buckets)]
        return [*computed, *(buckets.behind() if buckets is not None else ()), *update(step)]
