"""An operator that does not commute: the product of 2×2 integer matrices, as a user would write it (case C01)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np
from mpi4py import MPI


def _multiply(left: Any, right: Any, datatype: MPI.Datatype) -> None:
    """As MPI calls it: ``right = left · right``."""
    a, b = (np.frombuffer(buffer, np.int64).reshape(-1, 2, 2) for buffer in (left, right))
    b[...] = a @ b


@contextmanager
def product() -> Iterator[tuple[MPI.Op, MPI.Datatype]]:
    """The operator and the datatype of one matrix."""
    op = MPI.Op.Create(_multiply, commute=False)
    matrix = MPI.INT64_T.Create_contiguous(4).Commit()
    yield op, matrix
    op.Free()
    matrix.Free()


def contribution(rank: int, count: int = 1) -> np.ndarray[Any, Any]:
    """Some matrices, all different; the first is that of the case."""
    return np.array([[[1, rank + 1 + k], [rank, 1]] for k in range(count)], np.int64).reshape(count, 2, 2)


def in_rank_order(size: int, count: int = 1) -> np.ndarray[Any, Any]:
    """The product of what all ranks contribute."""
    return reduce(np.matmul, [contribution(rank, count) for rank in range(size)])
