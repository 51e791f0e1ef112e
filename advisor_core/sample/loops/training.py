"""The training loop of one rank, as a program for its main thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count, cycle
from typing import Annotated

from pydantic import Field

from ..described import FROM_FILES, Natural, Positive, Share
from ..kernels import DType, Tensor, ai_cpu, vector
from ..models.eager import FP32, Eager, call
from ..models.model import FUSED, SHARED_WEIGHT, Decoder, Implementation, ModelShape, Parameters, Part, chosen
from ..models.moe import MoeDecoder, Routing
from ..models.tensor_parallel import TensorParallelDecoder
from ..program import (
    AwaitCommunication,
    Backward,
    Communicate,
    Enter,
    Instruction,
    Item,
    Leave,
    NextBatch,
    Node,
    Op,
)
from .buckets import Filling
from .communicator import Communicator, Place
from .steps import FIRST_STEP, program_of_steps


@dataclass(frozen=True, slots=True)
class Training:
    """Training: the model, and the work of the loop around it.

    ``bucket_bytes``: gradients that are reduced together fill a buffer of this size, 0 for one by one; they are reduced
    as buffers fill up if ``overlapped_buckets``, else after the backward pass. ``chained_share``: of the weights, those
    that an optimizer which is not fused updates by a chain of operators. ``ai_cpu_ns``: an operator per
    micro-batch that the cores have no kernel for. ``reads_loss``: the loss is read back and logged in every step.
    ``has_loader``: batches come from a data loader, else from the memory of the host.
    ``stage_layers``: layers of each stage of a pipeline, empty for equally many;
    ``expert_load``: shares of the routed tokens by rank of an expert-parallel group, empty for equal ones.
    ``lengths``: the tokens per sample of successive steps, over and over; empty for those of the shape.
    ``keeps_hidden``: the loop holds on to the last hidden state of every micro-batch. ``gradient_norms``: gradients are
    clipped by their norms, which stay on the device. ``items_read``: the share of the norms, and of the losses of
    micro-batches, that are read back one by one.
    """

    __pydantic_config__ = FROM_FILES
    shape: Annotated[ModelShape, Field(alias="model")]
    steps: Positive = 2
    micro_batches: Positive = 4
    implementation: Implementation = FUSED
    fused_optimizer: bool = True
    chained_share: Share = 1.0
    overlapped_buckets: bool = True
    items_read: Share = 0.0
    loss_log_ns: Natural = 120_000
    bucket_bytes: Natural = 40_000_000
    ai_cpu_ns: Natural = 0
    reads_loss: bool = True
    has_loader: bool = True
    stage_layers: tuple[int, ...] = ()
    expert_load: tuple[float, ...] = ()
    lengths: tuple[int, ...] = ()
    keeps_hidden: bool = False
    gradient_norms: bool = False

    def part(self, stage: int, stages: int) -> Part:
        """The part of the model that one stage of a pipeline has. Raises :class:`ValueError` where stages and layers
        differ."""
        layers = self.stage_layers or (self.shape.layers // stages,) * stages
        if len(layers) != stages or sum(layers) != self.shape.layers:
            raise ValueError(f"{stages} stages of {layers} layers for a model of {self.shape.layers}")
        before = sum(layers[:stage])
        return Part(range(before, before + layers[stage]), first=stage == 0, last=stage == stages - 1)


class TrainingLoop:
    """Writes the program of one rank: ``steps`` optimizer steps of ``micro_batches`` each."""

    def __init__(self, training: Training, place: Place, loading_ns: int) -> None:
        self._training = training
        self._place = place
        self._part = training.part(place.stage, place.layout.pipeline)
        self._loading_ns = loading_ns
        self._step_number = FIRST_STEP
        self._work_on(training.shape)
        self._parameters = Parameters(self._shape, training.implementation, self._part, place.layout.expert)
        self._sequence = count(1350)
        self._gradients: dict[str, Tensor] = {}
        self._kept: list[Tensor] = []
        self._moments = {
            name: tuple(Tensor(weight.shape, FP32, persistent=True) for _ in range(3))
            for name, weight in self._parameters.weights.items()
        }

    def _work_on(self, shape: ModelShape) -> None:
        """Set the shape of the operations that follow: that of a whole micro-batch, and the part that this rank has."""
        tensor = self._place.layout.tensor
        self._whole = shape
        self._shape = shape.divided(tensor) if tensor > 1 else shape

    @property
    def weights(self) -> Parameters:
        """The model that is trained."""
        return self._parameters

    @property
    def _overlaps(self) -> bool:
        return self._training.overlapped_buckets and self._reduces

    @property
    def _reduces(self) -> bool:
        """Whether there are other ranks with the same weights."""
        return any(self.gradient_group(name) is not None for name in self._parameters.weights)

    def gradient_group(self, name: str) -> Communicator | None:
        """The group that adds up the gradients of a weight: the ranks that have it."""
        return self._place.communicator("expert_data") if ".experts_" in name else self._place.gradients

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first step: weights, master weights and both moments."""
        weights = sum(weight.nbytes for weight in self._parameters.weights.values())
        return weights + sum(tensor.nbytes for moments in self._moments.values() for tensor in moments)

    def program(self) -> list[Instruction]:
        """The instructions of all steps, with every tensor's last use known."""
        lengths = cycle(self._training.lengths or (self._training.shape.sequence,))

        def step(number: int) -> list[Instruction]:
            self._step_number = number
            self._work_on(replace(self._training.shape, sequence=next(lengths)))
            return self._step()

        frames = (python("train.py(231): <module>"), python("train.py(204): main"))
        return program_of_steps(frames, self._training.steps, step, self._kept)

    def step(self) -> list[Instruction]:
        """One optimizer step, for a job that does more than train."""
        return self._step()

    def all_reduce(self, data: Tensor) -> list[Instruction]:
        """Reduce something else than gradients, and let the compute stream wait for it."""
        assert self._place.gradients is not None
        reduction = self._place.gradients.collective("allReduce", data)
        return [reduction, AwaitCommunication(reduction)]

    def _step(self) -> list[Instruction]:
        training = self._training
        program: list[Instruction] = [python("train.py(131): train_step")]
        self._gradients.clear()
        reductions: list[Communicate] = []
        loss = self._micro_batches(program, reductions)
        if self._reduces and not self._overlaps:
            program += self._reduce_after_backward() if training.bucket_bytes else self._reduce_each_gradient()
        program += self._sum_norm_gradients()
        # As with DDP, all gradients are reduced before the first weight is updated.
        program += [AwaitCommunication(reduction) for reduction in reductions]
        if training.gradient_norms or training.items_read:
            program += self._clip()
        if training.reads_loss and loss is not None:
            program.append(Item(loss, training.loss_log_ns))
        program += self._optimizer()
        program.append(Leave())
        return program

    def _micro_batches(self, program: list[Instruction], reductions: list[Communicate]) -> Tensor | None:
        """All micro-batches of a step; their loss, where there is one. The last one fills ``reductions`` as it goes."""
        loss = None
        for micro in range(self._training.micro_batches):
            last = micro == self._training.micro_batches - 1
            loss = self._micro_batch(program, micro, reductions if last and self._overlaps else None)
        return loss

    def _recorder(self, reductions: list[Communicate] | None) -> Eager:
        """Records one micro-batch."""
        return Eager(
            self._parameters.weights,
            SHARED_WEIGHT if self._part.whole else "",
            self._sequence.__next__,
            _GradientSink(self, reductions),
            private_format=self._training.implementation.private_format,
        )

    def _decoder(self, eager: Eager, micro: int) -> Decoder:
        """The object that runs a micro-batch of this step."""
        training, shape, implementation = self._training, self._shape, self._training.implementation
        group, tensor = self._place.communicator("expert"), self._place.communicator("tensor")
        if shape.experts and (group is None or tensor is not None):
            raise ValueError("experts need an expert-parallel group and are not divided any further")
        if tensor is not None:
            return TensorParallelDecoder(shape, implementation, eager, self._part, tensor)
        if group is None:
            return Decoder(shape, implementation, eager, self._part)
        shares = training.expert_load or (1.0,) * group.size
        occasion = f"{group.group.ranks}/{self._step_number}/{micro}"

        def routing(layer: int) -> Routing:
            return Routing.of(shares, shape.tokens * shape.top_k, group.member, f"{occasion}/{layer}")

        return MoeDecoder(shape, implementation, eager, self._part, group, routing)

    def _micro_batch(self, program: list[Instruction], micro: int, reductions: list[Communicate] | None) -> Tensor:
        training, shape = self._training, self._whole
        tokens = Tensor((shape.batch, shape.sequence), DType.INT64)
        labels = Tensor((shape.tokens,), DType.INT64, base=tokens)
        program.append(NextBatch(tokens, self._loading_ns, training.has_loader))
        eager = self._recorder(reductions)
        loss, backward = self._decoder(eager, micro).micro_batch(tokens, labels)
        backward()
        program += eager.forward
        if training.keeps_hidden:
            self._kept.append(_hidden_state(eager))
        if training.ai_cpu_ns:
            ordered, places = labels.like(), labels.like()
            sort = ai_cpu("aclnnSort", "Sort", (labels,), (ordered, places), training.ai_cpu_ns)
            program.append(call("aten::sort", "aclnnSort", sort, scalars=3))
        if chosen(micro, training.items_read):
            # The loop checks every loss for NaN before it goes on.
            program.append(Item(loss, training.loss_log_ns))
        program += [
            python("torch/_tensor.py(492): backward"),
            Backward(tuple(eager.backward)),
            Leave(),
        ]
        return loss

    def gradient_ready(self, name: str, gradient: Tensor) -> list[Instruction]:
        """Store or add up a finished gradient, as ``AccumulateGrad`` does."""
        if name in self._gradients:
            total = self._gradients[name]
            add = vector("aclnnInplaceAdd", "Add", (total, gradient), (total.view(*total.shape),))
            op = call("aten::add_", "aclnnInplaceAdd", add, scalars=1)
        else:
            self._gradients[name] = gradient
            op = Op("aten::detach", (gradient,), None)
        return [Node("torch::autograd::AccumulateGrad", -1, (op,))]

    @property
    def bucket_bytes(self) -> int:
        """Gradients that are reduced together fill a buffer of this size."""
        return self._training.bucket_bytes

    @property
    def closing(self) -> frozenset[str]:
        """The weights whose gradients close a bucket: the last of all, and the last one before the large table."""
        return frozenset((f"{self._part.layers.start}.input_norm", SHARED_WEIGHT))

    def bucket(self, names: tuple[str, ...]) -> Communicate:
        """An all-reduce of several gradients that lie in one buffer."""
        dtype = self._training.implementation.dtype
        elements = sum(self._gradients[name].nbytes for name in names) // dtype.size
        return self._reduced(names[0], Tensor((elements,), dtype, persistent=True))

    def _reduced(self, name: str, data: Tensor) -> Communicate:
        group = self.gradient_group(name)
        assert group is not None
        return group.collective("allReduce", data)

    def _sum_norm_gradients(self) -> list[Instruction]:
        """Tensor-parallel ranks have seen different parts of the sequence: the gradients of norms are added up."""
        group = self._place.communicator("tensor")
        if group is None:
            return []
        norms = [gradient for name, gradient in self._gradients.items() if name.endswith("norm")]
        elements = sum(gradient.nbytes for gradient in norms) // FP32.size
        request = group.collective("allReduce", Tensor((elements,), FP32, persistent=True))
        return [request, AwaitCommunication(request)]

    def _reduce_after_backward(self) -> list[Instruction]:
        """All-reduces of full buckets after the backward pass, all of them before the optimizer goes on."""
        shared = [name for name in self._gradients if self.gradient_group(name) is not None]
        filling = Filling[str](self.bucket_bytes)
        reductions = [
            self.bucket(names)
            for name in shared
            for names in filling.add(self.gradient_group(name), name, self._gradients[name].nbytes)
        ]
        reductions += [self.bucket(names) for names in filling.close()]
        return [
            python("train.py(88): average_gradients"),
            *reductions,
            *map(AwaitCommunication, reductions),
            Leave(),
        ]

    def _reduce_each_gradient(self) -> list[Instruction]:
        """One blocking all-reduce per parameter after the backward pass, then the division."""
        program: list[Instruction] = [python("train.py(88): average_gradients")]
        for name, gradient in list(self._gradients.items()):
            if self.gradient_group(name) is None:
                continue
            reduction, average = self._reduced(name, gradient), Tensor(gradient.shape, FP32)
            program += [
                reduction,
                AwaitCommunication(reduction),
                call("aten::div", "aclnnDivs", vector("aclnnDivs", "RealDiv", (gradient,), (average,)), scalars=1),
            ]
            self._gradients[name] = average
        return [*program, Leave()]

    def _clip(self) -> list[Instruction]:
        """The norm of every gradient, read back by itself or left on the device; then all of them are scaled."""
        program: list[Instruction] = [python("train.py(102): clip_gradients")]
        for place, gradient in enumerate(self._gradients.values()):
            norm = Tensor((), FP32)
            kernel = vector("aclnnLinalgVectorNorm", "LpNormV2", (gradient,), (norm,), share=0.35)
            program += [call("aten::linalg_vector_norm", "aclnnLinalgVectorNorm", kernel, scalars=4)]
            program += [Item(norm)] if chosen(place, self._training.items_read) else []
        gradients = tuple(self._gradients.values())
        scaled = tuple(gradient.view(*gradient.shape) for gradient in gradients)
        scale = vector("aclnnForeachMulScalarV2", "ForeachMulScalar", gradients, scaled, infix="ForeachMulScalarV2")
        return [*program, call("aten::_foreach_mul_", "aclnnForeachMulScalarV2", scale, scalars=1), Leave()]

    def _optimizer(self) -> list[Instruction]:
        fused = self._training.fused_optimizer
        frame = "torch_npu/optim/npu_fused_adamw.py(231): step" if fused else "torch/optim/adamw.py(161): step"
        program: list[Instruction] = [
            Enter(f"Optimizer.step#{'NpuFusedAdamW' if fused else 'AdamW'}.step"),
            python(frame),
        ]
        for place, name in enumerate(self._parameters.weights):
            program += self._update(name, fused or not chosen(place, self._training.chained_share))
        return [*program, Leave(), Leave()]

    def _update(self, name: str, fused: bool) -> list[Op]:
        """AdamW of one parameter: one fused kernel, or the chain of the single-tensor implementation."""
        weight, gradient = self._parameters.weights[name], self._gradients[name]
        master, first, second = self._moments[name]

        def inplace(target: Tensor) -> Tensor:
            return target.view(*target.shape)

        if fused:
            outputs = tuple(inplace(tensor) for tensor in (weight, master, first, second))
            kernel = vector(
                "aclnnApplyAdamWV2",
                "ApplyAdamWV2",
                (master, first, second, gradient),
                outputs,
                infix="ApplyAdamWV2",
                share=0.3,
            )
            return [call("npu::npu_apply_adam_w", "aclnnApplyAdamWV2", kernel, scalars=8)]
        root, ratio, denominator = (Tensor(weight.shape, FP32) for _ in range(3))
        chain = (
            ("aten::lerp_", "aclnnInplaceLerps", "Lerp", (first, gradient), inplace(first)),
            ("aten::mul_", "aclnnInplaceMuls", "Mul", (second,), inplace(second)),
            ("aten::addcmul_", "aclnnInplaceAddcmul", "Addcmul", (second, gradient, gradient), inplace(second)),
            ("aten::sqrt", "aclnnSqrt", "Sqrt", (second,), root),
            ("aten::div", "aclnnDivs", "RealDiv", (root,), ratio),
            ("aten::add_", "aclnnInplaceAdds", "Add", (ratio,), denominator),
            ("aten::addcdiv_", "aclnnInplaceAddcdiv", "Addcdiv", (master, first, denominator), inplace(master)),
            ("aten::copy_", "aclnnInplaceCopy", "Cast", (master,), inplace(weight)),
        )
        return [
            call(operator, acl, vector(acl, type_, inputs, (out,)), scalars=1)
            for operator, acl, type_, inputs, out in chain
        ]


class _GradientSink:
    """Sees the gradients of one backward pass; with ``reductions``, which it fills, it reduces them."""

    def __init__(self, loop: TrainingLoop, reductions: list[Communicate] | None) -> None:
        self._loop = loop
        self._reductions = reductions
        self._filling = Filling[str](loop.bucket_bytes)

    def __call__(self, name: str, gradient: Tensor) -> list[Instruction]:
        program = self._loop.gradient_ready(name, gradient)
        group = self._loop.gradient_group(name)
        if self._reductions is None or group is None:
            return program
        full = self._filling.add(group, name, gradient.nbytes)
        # Nothing can hide the large shared table, which comes last: everything else leaves before it.
        if name in self._loop.closing:
            full += self._filling.close()
        for names in full:
            reduction = self._loop.bucket(names)
            program.append(reduction)
            self._reductions.append(reduction)
        return program


def _hidden_state(eager: Eager) -> Tensor:
    """The input of the output projection: the result of the last layer, normalised."""
    table = eager.weights[SHARED_WEIGHT]
    projections = [what for what in eager.forward if isinstance(what, Op) and table in what.inputs]
    return next(tensor for tensor in projections[-1].inputs if tensor is not table).storage


def python(frame: str) -> Enter:
    """Enter a Python function."""
    return Enter(frame, frame)
