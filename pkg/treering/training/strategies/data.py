"""What the strategies over data axes have in common: they hold the weights, and end up with the whole batch's gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from ..collectives import Collectives
from ..model import Unit
from ..tape import Tape
from ..tensor import Tensor

Held = Mapping[str, Mapping[str, Tensor]]
"""For each unit of a stage, its weights by role, as tensor parallelism leaves them on this rank."""


class DataParallel(ABC):
    """A way to keep weights and gradients on ranks that work on different parts of the batch.

    Parameters
    ----------
    collectives
        Carries out the communication.
    held
        The weights of this rank's stage.
    grad_dtype
        In which gradients are reduced.

    Attributes
    ----------
    axes
        Axes of the mesh over which the batch is cut.
    gradients
        By the parameter's name, once `finish` was called: summed over the batch, as this rank keeps them.
    """

    axes: tuple[str, ...]

    def __init__(self, collectives: Collectives, held: Held, grad_dtype: str) -> None:
        self._collectives = collectives
        self._held = held
        self._grad_dtype = grad_dtype
        self._last = False
        self.gradients: dict[str, Tensor] = {}

    @abstractmethod
    def use(self, tape: Tape, unit: Unit) -> Mapping[str, Tensor]:
        """Return a unit's weights, ready for its forward pass."""

    @abstractmethod
    def used(self, tape: Tape, unit: Unit) -> None:
        """Learn that a unit's forward pass is over."""

    def begin_backward(self, *, last: bool) -> None:
        """Learn that a microbatch's backward pass begins, and whether it is the step's last."""
        self._last = last

    @abstractmethod
    def finish(self) -> None:
        """Finish what is under way when the last backward pass is over."""
