"""What is communicated between the last backward pass and the optimizer.

Source: Megatron-LM core/distributed/finalize_model_grads.py and core/optimizer/clip_grads.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..collectives import Collectives
from ..flat import flatten
from ..mesh import Group
from ..placements import Partial
from ..tensor import Tensor
from .tp import TP

ENDS = Group(("pp",), ends=True)


def sum_replicated(collectives: Collectives, gradients: Iterable[Tensor]) -> None:
    """All-reduce, in one buffer, the gradients of weights that every tensor-parallel rank has whole but saw only its part of.

    Such are norms on queries and keys, and routers. Norms on hidden states are not: without sequence parallelism every
    rank sees all tokens.
    """
    partial = [gradient for gradient in gradients if isinstance(gradient.on("tp"), Partial)]
    if partial:
        flat = flatten(partial, partial[0].dtype, TP.axes, Partial())
        collectives.all_reduce(TP, flat, "replicated-weight gradients")


def sum_tied_embedding(collectives: Collectives, gradient: Tensor) -> None:
    """All-reduce the tied embedding's gradient between the first and the last stage, which both hold it."""
    collectives.all_reduce(ENDS, gradient.placed(ENDS.axes, Partial()), "tied embedding gradient")


def gradient_norm(collectives: Collectives, axes: tuple[str, ...]) -> None:
    """All-reduce one fp32 number over the ranks that hold different parameters, as one group."""
    if axes:
        collectives.all_reduce(Group(axes), Tensor((), "fp32").placed(axes, Partial()), "gradient norm")
