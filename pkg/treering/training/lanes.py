"""Two ways to carry out the same collective, to be timed side by side: treering's and the MPI library's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from .ledger import Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

NATIVE: dict[str, np.dtype[Any]] = {"fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64)}
"""The dtypes that MPI can reduce. It has no sum of bfloat16, and a float16 only as an extension of some libraries."""

OPERATORS = {"sum": MPI.SUM, "max": MPI.MAX, "": None}


class Arena:
    """One send and one receive buffer for all messages: what is in them is of no meaning, only that it moves.

    Parameters
    ----------
    capacity
        Bytes of each.
    """

    def __init__(self, capacity: int) -> None:
        # Written to, so that the memory is really there: pages of untouched zeros are all the same page.
        self._send = np.full(capacity, 0, np.uint8)
        self._receive = np.full(capacity, 0, np.uint8)

    def send(self, dtype: np.dtype[Any], elements: int) -> NDArray[Any]:
        """Return the start of the send buffer as elements of a dtype."""
        return self._send[: elements * dtype.itemsize].view(dtype)

    def receive(self, dtype: np.dtype[Any], elements: int) -> NDArray[Any]:
        """Return the start of the receive buffer as elements of a dtype."""
        return self._receive[: elements * dtype.itemsize].view(dtype)


@dataclass(frozen=True)
class Lane:
    """A communicator for a group, and how its collectives are called.

    Attributes
    ----------
    communicator
        An mpi4py communicator, or one with the same interface.
    choice
        Keyword arguments that choose the algorithm by collective; nothing for MPI's own.
    native
        Whether 16-bit floats are sent as what they are. Otherwise integers of the same size stand in for them.
    """

    communicator: Any
    choice: dict[str, str]
    native: bool

    def run(self, message: Message, elements: int, arena: Arena) -> None:
        """Carry out one collective with a payload of ``elements``, of a message that may be larger."""
        communicator, size, op = self.communicator, message.size, OPERATORS[message.operator]
        dtype = self.dtype(message)
        choice = {"algorithm": self.choice[message.operation]} if message.operation in self.choice else {}
        if message.operation == "all-gather":
            communicator.Allgather(arena.send(dtype, elements // size), arena.receive(dtype, elements), **choice)
        elif message.operation == "reduce-scatter":
            communicator.Reduce_scatter_block(
                arena.send(dtype, elements), arena.receive(dtype, elements // size), op=op, **choice)
        elif message.operation == "all-reduce":
            communicator.Allreduce(MPI.IN_PLACE, arena.receive(dtype, elements), op=op, **choice)
        elif message.operation == "all-to-all":
            communicator.Alltoall(arena.send(dtype, elements), arena.receive(dtype, elements), **choice)
        elif message.operation == "broadcast":
            communicator.Bcast(arena.receive(dtype, elements), root=0, **choice)
        else:
            raise ValueError(f"no collective {message.operation!r}")

    def dtype(self, message: Message) -> np.dtype[Any]:
        """Return the numpy dtype in which this lane sends a message."""
        if message.dtype in NATIVE:
            return NATIVE[message.dtype]
        if not self.native:
            return np.dtype(f"int{8 * message.itemsize}")
        if message.dtype == "bf16":
            import ml_dtypes

            bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        return np.dtype(np.float16)
