"""One training step as a program: what a rank does, in order, whichever way its collectives are carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .collectives import Collectives, Tracer
from .job import Job
from .layers import Layers
from .ledger import RankClass, StepLedger
from .model import Unit
from .placements import Partitioned
from .strategies.data import DataParallel
from .strategies.dp import DistributedDataParallel
from .strategies.fsdp import FullyShardedDataParallel
from .strategies.pp import Pipeline, one_forward_one_backward
from .strategies.step_end import gradient_norm, sum_replicated, sum_tied_embedding
from .strategies.tp import TensorParallel
from .tape import Tape
from .tensor import Tensor


class Step:
    """The program of the ranks of one pipeline stage.

    Parameters
    ----------
    job
        What is trained, and how it is spread.
    stage
        The position along pp.
    collectives
        Carries out the communication.
    """

    def __init__(self, job: Job, stage: int, collectives: Collectives) -> None:
        sizes = job.mesh.sizes
        self._job = job
        self._stage = stage
        self._collectives = collectives
        self._units = job.units(stage)
        self._weights = job.weights(stage)
        self._layers = Layers(job.model.architecture, TensorParallel(collectives))
        self._pipeline = Pipeline(collectives, stage, sizes["pp"])
        self._data: DataParallel
        if sizes["fsdp"] > 1:
            self._data = FullyShardedDataParallel(
                collectives, self._weights, job.grad_dtype, reshard=job.reshard, once=sizes["pp"] > 1
            )
        else:
            self._data = DistributedDataParallel(collectives, self._weights, job.grad_dtype)

    def run(self) -> Mapping[str, Tensor]:
        """Do one step up to the optimizer; return the gradients that this rank is left with."""
        under_way: dict[int, tuple[Tape, Tensor]] = {}
        for work, microbatch in one_forward_one_backward(self._stage, self._job.mesh.sizes["pp"],
                                                         self._job.microbatches):
            self._collectives.phase = work
            if work == "forward":
                under_way[microbatch] = self._forward()
            else:
                self._backward(*under_way.pop(microbatch), last=microbatch == self._job.microbatches - 1)
        self._data.finish()
        self._collectives.phase = "optimizer"
        self._finish()
        return self._data.gradients

    def _forward(self) -> tuple[Tape, Tensor]:
        tape = Tape()
        x = self._input(tape)
        for unit in self._units:
            weights = self._data.use(tape, unit)
            x = self._apply(tape, x, unit, weights)
            self._data.used(tape, unit)
        self._pipeline.output(x)
        return tape, x

    def _input(self, tape: Tape) -> Tensor:
        job = self._job
        tokens = Tensor((job.micro_batch, job.seq), "int64").placed(self._data.axes, Partitioned(0))
        if self._pipeline.first:
            return tokens
        hidden = job.model.architecture.hidden
        like = Tensor((*tokens.shape, hidden), job.dtype, tokens.placements)
        return tape.watch(self._pipeline.input(like), self._pipeline.input_gradient)

    def _apply(self, tape: Tape, x: Tensor, unit: Unit, weights: Mapping[str, Tensor]) -> Tensor:
        if unit.kind == "embedding":
            return self._layers.embedding(tape, x, weights)
        if unit.kind == "layer":
            return self._layers.layer(tape, x, weights, unit)
        return self._layers.head(tape, x, weights, weights.get("table") or self._weights["embedding"]["table"])

    def _backward(self, tape: Tape, output: Tensor, *, last: bool) -> None:
        self._data.begin_backward(last=last)
        seed = replace(output, data=None)
        tape.backward(output, seed if self._pipeline.last else self._pipeline.gradient(seed))

    def _finish(self) -> None:
        mesh, gradients = self._job.mesh, self._data.gradients
        sum_replicated(self._collectives, gradients.values())
        if self._job.model.architecture.tied and mesh.sizes["pp"] > 1:
            for name in ("embedding.table", "head.table"):
                if name in gradients:
                    sum_tied_embedding(self._collectives, gradients[name])
        gradient_norm(self._collectives, tuple(a for a in mesh.parallel_axes if a != "dp"))


def trace(job: Job) -> StepLedger:
    """Walk the step of one rank of every kind, on shapes alone, and return the ledgers of all.

    Stages that hold the same kinds of units, and have neighbours on the same sides, send the same and are walked once.
    """
    stages = job.mesh.sizes["pp"]
    alike: dict[object, list[int]] = {}
    for stage in range(stages):
        shapes = tuple((unit.kind, unit.mixture) for unit in job.units(stage))
        alike.setdefault((shapes, stage == 0, stage == stages - 1), []).append(stage)
    classes = []
    for members in alike.values():
        tracer = Tracer(job.mesh)
        Step(job, members[0], tracer).run()
        parameters = sum(w.elements for unit in job.weights(members[0]).values() for w in unit.values())
        ranks = len(members) * (job.mesh.size // stages)
        classes.append(RankClass(tuple(members), ranks, parameters, tracer.ledger))
    return StepLedger(tuple(classes))
