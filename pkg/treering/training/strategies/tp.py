"""Tensor parallelism as Megatron-LM has it: column- then row-parallel layers, without sequence parallelism.

Source: Shoeybi et al., arXiv:1909.08053; Megatron-LM core/tensor_parallel/mappings.py and cross_entropy.py.
"""

from __future__ import annotations

from dataclasses import replace

from .. import operators as op
from ..collectives import Collectives
from ..mesh import Group
from ..tape import Tape
from ..tensor import Tensor

TP = Group(("tp",))


class TensorParallel:
    """What happens where activations go from whole to cut and back.

    Parameters
    ----------
    collectives
        Carries out the communication.
    """

    def __init__(self, collectives: Collectives) -> None:
        self._collectives = collectives

    def enter(self, tape: Tape, x: Tensor, label: str) -> Tensor:
        """Megatron's f: nothing forward; backward, every rank has a term of the input's gradient, so all-reduce."""
        return tape.record((x,), replace(x), lambda gradient: [self._collectives.all_reduce(TP, gradient, label)])

    def leave(self, tape: Tape, y: Tensor, label: str) -> Tensor:
        """Megatron's g: all-reduce the terms forward; nothing backward."""
        return tape.record((y,), self._collectives.all_reduce(TP, y, label), lambda gradient: [gradient])

    def cross_entropy(self, tape: Tape, logits: Tensor) -> Tensor:
        """Loss of every token from logits cut by vocabulary: three numbers a token are reduced, never the logits.

        Megatron's unfused form: largest logit, the target's logit, and the sum of exponentials, each in fp32.
        """
        statistics = []
        for reduction, label in (("max", "largest logits"), ("sum", "target logits"), ("sum", "sums of exponentials")):
            part = tape.apply(op.STATISTIC, logits, op=reduction)
            statistics.append(self._collectives.all_reduce(TP, part, label))
        return tape.apply(op.LOSS, logits, *statistics)
