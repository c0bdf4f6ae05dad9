"""MPI's own collectives, called as one kind of function, to check and time ours against."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI

from ..core.collective import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    EXSCAN,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    SCATTER,
    Collective,
)
from ..running.kinds import kind_of
from . import inputs

Own: TypeAlias = Callable[[MPI.Intracomm, Any, Any, int, MPI.Op], None]
"""``own(comm, sendbuf, recvbuf, root, op)``; what a collective does not take is ignored."""


def _exscan(comm: MPI.Intracomm, send: Any, recv: Any, root: int, op: MPI.Op) -> None:
    """Rank 0, which has nothing to receive, must still show MPI a buffer as long as the others'."""
    if comm.rank == 0:
        recv = [np.empty_like(send[0]), send[1]] if isinstance(send, list) else np.empty_like(send)
    comm.Exscan(send, recv, op)


OWN: dict[Collective, Own] = {
    BROADCAST: lambda comm, send, recv, root, op: comm.Bcast(recv, root),
    SCATTER: lambda comm, send, recv, root, op: comm.Scatter(send, recv, root),
    GATHER: lambda comm, send, recv, root, op: comm.Gather(send, recv, root),
    REDUCE: lambda comm, send, recv, root, op: comm.Reduce(send, recv, op, root),
    ALL_GATHER: lambda comm, send, recv, root, op: comm.Allgather(send, recv),
    ALL_REDUCE: lambda comm, send, recv, root, op: comm.Allreduce(send, recv, op),
    REDUCE_SCATTER: lambda comm, send, recv, root, op: comm.Reduce_scatter_block(send, recv, op),
    ALL_TO_ALL: lambda comm, send, recv, root, op: comm.Alltoall(send, recv),
    SCAN: lambda comm, send, recv, root, op: comm.Scan(send, recv, op),
    EXSCAN: _exscan,
}
"""For the collectives that leave a result, MPI's own; it has none for users' collectives."""

PAIRS: dict[str, MPI.Datatype] = {
    "f4": MPI.FLOAT_INT, "f8": MPI.DOUBLE_INT, "i2": MPI.SHORT_INT, "i4": MPI.INT_INT, "i8": MPI.LONG_INT}
"""MPI's types of a value with an int as index, by the type of the value."""


def as_message(array: np.ndarray[Any, Any], reduces: bool) -> Any:
    """An array in the form in which MPI's own collectives take it: by its bytes where it is only moved."""
    if not reduces:
        return array.view(np.uint8)
    if kind_of(array.dtype) == "pair":
        return [array.view(np.uint8), PAIRS[array.dtype[0].str[1:]]]
    return array


OPERATORS: dict[str, MPI.Op] = {name: getattr(MPI, name.upper()) for name in inputs.OPERATORS}
"""MPI's operators by the names that users give."""


@cache
def defines(operator: str, dtype: np.dtype[Any]) -> bool:
    """Whether the MPI library at hand, through mpi4py, reduces this type with the operator of this name."""
    send, recv = (as_message(np.ones(1, dtype), reduces=True) for _ in range(2))
    try:
        MPI.COMM_SELF.Allreduce(send, recv, OPERATORS[operator])
    except (MPI.Exception, BufferError, KeyError, NotImplementedError, TypeError, ValueError):
        return False
    return True
