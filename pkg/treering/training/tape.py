"""Reverse-mode differentiation of a step program: what was computed forward is walked backward.

Communication is recorded like computation, so a strategy writes its forward collectives once beside what the backward
pass does in their place, and the order of the backward messages follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .collectives import PlacementError
from .operators import Operator
from .placements import Partial, Partitioned
from .tensor import Tensor

OnGradient = Callable[[Tensor], None]


@dataclass(frozen=True)
class _Entry:
    inputs: tuple[Tensor, ...]
    output: Tensor | None
    backward: Callable[[Tensor], Sequence[Tensor | None]]


class Tape:
    """Records one microbatch's forward pass on one rank."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._uses: dict[int, int] = {}
        self._watched: dict[int, OnGradient] = {}
        self._gradients: dict[int, Tensor] = {}

    def watch(self, leaf: Tensor, on_gradient: OnGradient) -> Tensor:
        """Ask for the whole gradient of a tensor, at the moment when its last term is there."""
        self._watched[id(leaf)] = on_gradient
        return leaf

    def apply(self, operator: Operator, *inputs: Tensor, **attributes: Any) -> Tensor:
        """Compute an operator and record it."""
        output = operator.forward(*inputs, **attributes)

        def backward(gradient: Tensor) -> Sequence[Tensor | None]:
            found = operator.backward(output, gradient, *inputs, **attributes)
            return [one and _terms(one, gradient) for one in found]

        return self.record(inputs, output, backward)

    def record(self, inputs: tuple[Tensor, ...], output: Tensor,
               backward: Callable[[Tensor], Sequence[Tensor | None]]) -> Tensor:
        """Record an output with the function from its gradient to those of the inputs."""
        for tensor in inputs:
            self._uses[id(tensor)] = self._uses.get(id(tensor), 0) + 1
        self._entries.append(_Entry(inputs, output, backward))
        return output

    def mark(self, action: Callable[[], None]) -> None:
        """Do something when the backward pass comes by here: all that was recorded later is then done."""

        def backward(_: Tensor) -> Sequence[Tensor | None]:
            action()
            return ()

        self._entries.append(_Entry((), None, backward))

    def backward(self, output: Tensor, gradient: Tensor) -> None:
        """Walk back from an output, given its gradient. A tape is walked once."""
        self._gradients[id(output)] = gradient
        while self._entries:
            entry = self._entries.pop()
            arrived = gradient if entry.output is None else self._gradients.pop(id(entry.output), None)
            found = entry.backward(arrived) if arrived is not None else [None] * len(entry.inputs)
            for tensor, term in zip(entry.inputs, found, strict=True):
                self._accumulate(tensor, term)

    def _accumulate(self, tensor: Tensor, term: Tensor | None) -> None:
        key = id(tensor)
        if term is not None:
            so_far = self._gradients.get(key)
            if so_far is not None and dict(so_far.placements) != dict(term.placements):
                raise PlacementError(f"gradient terms of one tensor lie differently: {dict(so_far.placements)} and "
                                     f"{dict(term.placements)}")
            self._gradients[key] = term
        self._uses[key] -= 1
        if self._uses[key] == 0 and key in self._watched and key in self._gradients:
            self._watched.pop(key)(self._gradients.pop(key))


def _terms(found: Tensor, gradient: Tensor) -> Tensor:
    """Differentiation is linear: from a term of a sum comes a term of a sum."""
    axes = tuple(axis for axis, placement in gradient.placements.items() if isinstance(placement, Partial))
    for axis in axes:
        if isinstance(found.on(axis), Partitioned):
            raise PlacementError(f"a gradient that is only a term on {axis} meets a tensor that is cut there")
    return found.placed(axes, Partial()) if axes else replace(found)
