"""Pipeline parallelism: which microbatch a stage works on when (1F1B).

Source: Narayanan et al., arXiv:2104.04473; Megatron-LM core/pipeline_parallel/schedules.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ...core.errors import Refused
from ..collectives import Collectives
from ..mesh import Group
from ..tensor import Tensor

PP = Group(("pp",))


def one_forward_one_backward(stage: int, stages: int,
                             microbatches: int) -> Iterator[tuple[Literal["forward", "backward"], int]]:
    """Yield a stage's work in order: some forward passes to fill the pipeline, then forward and backward by turns.

    The number of warm-up passes is what lies behind the stage, but never more than there are microbatches.

    >>> [f"{work[0]}{i}" for work, i in one_forward_one_backward(stage=0, stages=3, microbatches=4)]
    ['f0', 'f1', 'f2', 'b0', 'f3', 'b1', 'b2', 'b3']
    """
    warm_up = min(stages - stage - 1, microbatches)
    for i in range(warm_up):
        yield "forward", i
    for i in range(microbatches):
        if warm_up + i < microbatches:
            yield "forward", warm_up + i
        yield "backward", i


def layers_of_stages(layers: int, stages: int) -> list[range]:
    """Cut the layers into equal, contiguous stages.

    Raises
    ------
    Refused
        When they do not divide.
    """
    if layers % stages:
        raise Refused(f"{layers} layers cannot be divided into pp={stages} equal stages: valid pp are "
                      f"{', '.join(str(p) for p in range(1, layers + 1) if layers % p == 0)}")
    each = layers // stages
    return [range(stage * each, (stage + 1) * each) for stage in range(stages)]


class Pipeline:
    """One stage's exchange with its neighbours. Every tensor-parallel rank sends a whole copy (no sequence parallelism).

    Parameters
    ----------
    collectives
        Carries out the communication.
    stage, stages
        This stage's position, and how many there are.
    """

    def __init__(self, collectives: Collectives, stage: int, stages: int) -> None:
        self._collectives = collectives
        self.first = stage == 0
        self.last = stage == stages - 1

    def input(self, like: Tensor) -> Tensor:
        """Receive the activations from the previous stage."""
        return self._collectives.receive(PP, like, "activations", +1)

    def output(self, tensor: Tensor) -> None:
        """Send the activations on to the next stage."""
        if not self.last:
            self._collectives.send(PP, tensor, "activations", +1)

    def gradient(self, like: Tensor) -> Tensor:
        """Receive the gradient of what was sent on."""
        return self._collectives.receive(PP, like, "activation gradients", -1)

    def input_gradient(self, tensor: Tensor) -> None:
        """Send back the gradient of what was received."""
        self._collectives.send(PP, tensor, "activation gradients", -1)
