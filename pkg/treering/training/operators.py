"""The local computations of a transformer, as far as shapes and placements go.

Each operator says what it makes of its inputs, and what the gradient of each input looks like. The rules are few and
general: contracting over a dim that is partitioned along an axis leaves a partial sum on that axis; a replicated input of
a partitioned result has a partial gradient. So *which* gradients must be summed over which axis is derived, not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from .collectives import PlacementError
from .placements import Partial, Partitioned, Placement
from .tensor import Tensor

Forward = Callable[..., Tensor]
Backward = Callable[..., list[Tensor | None]]


@dataclass(frozen=True)
class Operator:
    """An operator's name, ``forward(*inputs, **attributes)`` and ``backward(output, gradient, *inputs, **attributes)``."""

    name: str
    forward: Forward
    backward: Backward


def _last(tensor: Tensor) -> Placement:
    return Partitioned(len(tensor.shape) - 1)


def _axes(tensor: Tensor, wanted: Callable[[Placement], bool]) -> tuple[str, ...]:
    return tuple(axis for axis, placement in tensor.placements.items() if wanted(placement))


def _like(tensor: Tensor, partial: Iterable[str] = ()) -> Tensor:
    """Return a gradient for a tensor: of its shape and placement, but only a term of a sum along some axes."""
    return replace(tensor, data=None).placed(tuple(partial), Partial())


def _same(left: Tensor, right: Tensor) -> None:
    if left.shape != right.shape or dict(left.placements) != dict(right.placements):
        raise PlacementError(f"{left.shape} {dict(left.placements)} does not fit {right.shape} {dict(right.placements)}")


def _linear(x: Tensor, weight: Tensor, *, transposed: bool = False) -> Tensor:
    inner, outer = (0, 1) if transposed else (1, 0)
    if x.shape[-1] != weight.shape[inner]:
        raise PlacementError(f"a weight of {weight.shape} cannot multiply an input of {x.shape}")
    result = x.resized(-1, weight.shape[outer])
    contracted = _axes(weight, lambda placement: placement == Partitioned(inner))
    for axis in contracted:
        if x.on(axis) != _last(x):
            raise PlacementError(f"the input is {x.on(axis)} on {axis}, the weight is cut by its inputs")
    result = result.placed(contracted, Partial())
    return result.placed(_axes(weight, lambda placement: placement == Partitioned(outer)), _last(x))


def _linear_gradients(output: Tensor, gradient: Tensor, x: Tensor, weight: Tensor, *,
                      transposed: bool = False) -> list[Tensor | None]:
    outer = 1 if transposed else 0
    by_outputs = _axes(weight, lambda placement: placement == Partitioned(outer))
    summed = _axes(x, lambda placement: isinstance(placement, Partitioned) and placement != _last(x))
    return [_like(x, by_outputs), _like(weight, summed)]


def _bias(x: Tensor, bias: Tensor) -> Tensor:
    if x.shape[-1] != bias.shape[0]:
        raise PlacementError(f"a bias of {bias.shape} does not fit {x.shape}")
    if any(isinstance(placement, Partial) for placement in x.placements.values()):
        raise PlacementError("a bias added to every term of a sum would count once a rank")
    return replace(x, data=None)


def _row_gradients(output: Tensor, gradient: Tensor, x: Tensor, *rows: Tensor) -> list[Tensor | None]:
    """Gradients where every row of x meets the same vectors: those are summed over all rows."""
    return [_like(x), *(_like(row, set(x.placements) - set(row.placements)) for row in rows)]


def _norm(x: Tensor, *weights: Tensor) -> Tensor:
    if any(isinstance(placement, Partial) for placement in x.placements.values()):
        raise PlacementError("a norm of the terms of a sum is not the norm of the sum")
    return replace(x, data=None)


def _embedding(tokens: Tensor, table: Tensor) -> Tensor:
    rows = _axes(table, lambda placement: placement == Partitioned(0))
    result = Tensor((*tokens.shape, table.shape[1]), table.dtype, tokens.placements)
    return result.placed(rows, Partial())


def _embedding_gradients(output: Tensor, gradient: Tensor, tokens: Tensor, table: Tensor) -> list[Tensor | None]:
    return [None, _like(table, tokens.placements)]


def _positions(x: Tensor, table: Tensor) -> Tensor:
    return replace(x, data=None)


def _joined(first: Tensor, *others: Tensor, width: int | None = None) -> Tensor:
    """Operators within a head or an element: the result lies as the first input does."""
    return replace(first if width is None else first.resized(-1, width), data=None)


def _joined_gradients(output: Tensor, gradient: Tensor, *inputs: Tensor, width: int | None = None) -> list[Tensor | None]:
    return [_like(x, set(output.placements) - set(x.placements)) for x in inputs]


def _add(left: Tensor, right: Tensor) -> Tensor:
    _same(left, right)
    return replace(left, data=None)


def _add_gradients(output: Tensor, gradient: Tensor, left: Tensor, right: Tensor) -> list[Tensor | None]:
    return [replace(gradient), replace(gradient)]


def _scale(x: Tensor, gate: Tensor) -> Tensor:
    return replace(x, data=None)


def _scale_gradients(output: Tensor, gradient: Tensor, x: Tensor, gate: Tensor) -> list[Tensor | None]:
    terms = _axes(x, lambda placement: isinstance(placement, Partial))
    return [replace(gradient), _like(gate, terms)]


def _mixture(x: Tensor, scores: Tensor, *weights: Tensor) -> Tensor:
    """All routed experts of a layer: dispatch, gated MLPs, combine. Their outputs are terms of a sum where they are cut."""
    return _like(x, {axis for weight in weights for axis in weight.placements})


def _mixture_gradients(output: Tensor, gradient: Tensor, x: Tensor, scores: Tensor,
                       *weights: Tensor) -> list[Tensor | None]:
    cut = {axis for weight in weights for axis in weight.placements}
    return [_like(x, cut), _like(scores, cut), *(_like(weight, set(x.placements) - cut) for weight in weights)]


def _statistic(logits: Tensor, *, op: str) -> Tensor:
    """One fp32 number a token, over the vocabulary that is here: largest logit, target's logit, sum of exponentials."""
    result = Tensor(logits.shape[:-1], "fp32", logits.placements)
    return result.placed(_axes(logits, lambda placement: placement == _last(logits)), Partial(op))


def _no_gradients(output: Tensor, gradient: Tensor, *inputs: Tensor, **attributes: Any) -> list[Tensor | None]:
    return [None] * len(inputs)


def _loss(logits: Tensor, *statistics: Tensor) -> Tensor:
    for statistic in statistics:
        if any(isinstance(placement, Partial) for placement in statistic.placements.values()):
            raise PlacementError("the loss needs statistics of the whole vocabulary")
    return Tensor(logits.shape[:-1], "fp32", statistics[0].placements)


def _loss_gradients(output: Tensor, gradient: Tensor, logits: Tensor, *statistics: Tensor) -> list[Tensor | None]:
    return [_like(logits), *(None for _ in statistics)]


LINEAR = Operator("linear", _linear, _linear_gradients)
BIAS = Operator("bias", _bias, _row_gradients)
NORM = Operator("norm", _norm, _row_gradients)
EMBEDDING = Operator("embedding", _embedding, _embedding_gradients)
POSITIONS = Operator("positions", _positions, _row_gradients)
ATTENTION = Operator("attention", _joined, _joined_gradients)
ACTIVATION = Operator("activation", _joined, _joined_gradients)
PART = Operator("part", _joined, _joined_gradients)
ADD = Operator("add", _add, _add_gradients)
SCALE = Operator("scale", _scale, _scale_gradients)
MIXTURE = Operator("mixture", _mixture, _mixture_gradients)
STATISTIC = Operator("statistic", _statistic, _no_gradients)
LOSS = Operator("loss", _loss, _loss_gradients)
