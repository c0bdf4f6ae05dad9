"""The collectives that a step program may use, over the axes of a mesh: one interface, several ways to carry it out.

Every collective checks that it is a legal transition between placements, so a strategy that reduces what is already
whole, or forgets to reduce what is not, fails when its program is walked, on shapes alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from .ledger import Ledger, Message
from .mesh import Group, Mesh
from .placements import Centralized, Partial, Partitioned, Placement, Replicated
from .tensor import Tensor


class PlacementError(AssertionError):
    """A step program that uses a tensor as something that it is not: a fault of the strategy, not of the user."""


class Collectives(ABC):
    """Collectives as transitions between placements.

    Parameters
    ----------
    mesh
        The axes.

    Attributes
    ----------
    phase
        The part of the step that messages are entered under.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.phase = "forward"

    @abstractmethod
    def move(self, message: Message, tensor: Tensor, result: Tensor) -> Tensor:
        """Carry out a message: return ``result``, with its values where there are any."""

    @abstractmethod
    def take(self, message: Message, result: Tensor) -> Tensor:
        """Receive what the neighbour at ``-shift`` sends with the same message; return ``result`` with its values."""

    def all_reduce(self, group: Group, tensor: Tensor, label: str) -> Tensor:
        """Partial → Replicated."""
        before = _partial(tensor, group)
        result = tensor.placed(group.axes, Replicated())
        return self._collective("all-reduce", group, label, tensor.elements, tensor, result, before.op)

    def reduce_scatter(self, group: Group, tensor: Tensor, label: str, dim: int = 0) -> Tensor:
        """Partial → Partitioned(dim)."""
        before = _partial(tensor, group)
        length = _divided(tensor.shape[dim], self.mesh.group_size(group))
        result = tensor.resized(dim, length).placed(group.axes, Partitioned(dim))
        return self._collective("reduce-scatter", group, label, tensor.elements, tensor, result, before.op)

    def all_gather(self, group: Group, tensor: Tensor, label: str, dim: int = 0) -> Tensor:
        """Partitioned(dim) → Replicated."""
        _expect(tensor, group, Partitioned(dim))
        result = tensor.resized(dim, tensor.shape[dim] * self.mesh.group_size(group)).placed(group.axes, Replicated())
        return self._collective("all-gather", group, label, result.elements, tensor, result)

    def all_to_all(self, group: Group, tensor: Tensor, label: str, source: int, target: int) -> Tensor:
        """Partitioned(source) → Partitioned(target)."""
        _expect(tensor, group, Partitioned(source))
        size = self.mesh.group_size(group)
        result = tensor.resized(target, _divided(tensor.shape[target], size))
        result = result.resized(source, tensor.shape[source] * size).placed(group.axes, Partitioned(target))
        return self._collective("all-to-all", group, label, tensor.elements, tensor, result)

    def broadcast(self, group: Group, tensor: Tensor, label: str, root: int = 0) -> Tensor:
        """Centralized(root) → Replicated."""
        _expect(tensor, group, Centralized(root))
        result = tensor.placed(group.axes, Replicated())
        return self._collective("broadcast", group, label, tensor.elements, tensor, result)

    def send(self, group: Group, tensor: Tensor, label: str, shift: int) -> None:
        """Send to the rank ``shift`` further along the axis, and go on."""
        self.move(self._shift(group, tensor, label, shift), tensor, tensor)

    def receive(self, group: Group, like: Tensor, label: str, shift: int) -> Tensor:
        """Receive what the rank ``shift`` further back along the axis sends with the same label."""
        return self.take(self._shift(group, like, label, shift), replace(like, data=None))

    def _shift(self, group: Group, tensor: Tensor, label: str, shift: int) -> Message:
        size = self.mesh.group_size(group)
        return Message(self.phase, "send", group, size, label, tensor.dtype, tensor.elements, "", shift)

    def _collective(self, operation: str, group: Group, label: str, elements: int, tensor: Tensor, result: Tensor,
                    operator: str = "") -> Tensor:
        size = self.mesh.group_size(group)
        if size == 1:
            return replace(result, data=tensor.data)
        message = Message(self.phase, operation, group, size, label, tensor.dtype, elements, operator)
        return self.move(message, tensor, result)


class Tracer(Collectives):
    """Enters every message of one rank in a ledger and moves nothing."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(mesh)
        self.ledger = Ledger()

    def move(self, message: Message, tensor: Tensor, result: Tensor) -> Tensor:
        """Enter the message."""
        self.ledger.add(message)
        return result

    def take(self, message: Message, result: Tensor) -> Tensor:
        """Enter nothing: a message is the sender's."""
        return result


def _partial(tensor: Tensor, group: Group) -> Partial:
    before = tensor.on(group.axes[0])
    if not isinstance(before, Partial):
        raise PlacementError(f"cannot reduce over {group} what is {before} there")
    _expect(tensor, group, before)
    return before


def _expect(tensor: Tensor, group: Group, placement: Placement) -> None:
    for axis in group.axes:
        if tensor.on(axis) != placement:
            raise PlacementError(f"over {group}: {placement} is needed, but the tensor is {tensor.on(axis)} on {axis}")


def _divided(length: int, size: int) -> int:
    if length % size:
        raise PlacementError(f"a length of {length} cannot be cut into {size} equal parts")
    return length // size
