"""What ranks do together in these tests: compare with MPI's own, agree, and refuse with one voice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from treering.core.algorithm import Algorithm
from treering.core.collective import Collective
from treering.core.errors import TreeringError
from treering.running.comm import Comm
from treering.table import algorithms_of


def own(comm: Comm) -> MPI.Intracomm:
    """The same ranks with MPI's own collectives."""
    return MPI.Intracomm(comm)


def like_mpi(ours: Comm, call: Callable[[Any], Any], asking: str | Algorithm | None = None) -> None:
    """Do the same with MPI's own collectives and with ours; what comes of it must be the same."""
    expected = call(own(ours))
    found = call(Asking(ours, asking))
    np.testing.assert_equal(found, expected)


def able(collective: Collective, size: int) -> list[Algorithm]:
    """The algorithms of a collective that run on so many ranks."""
    return [algorithm for algorithm in algorithms_of(collective) if algorithm.why_not(size) is None]


def fits(collective: Collective, name: str, size: int) -> bool:
    """Whether the algorithm of a name runs on so many ranks."""
    return name in {algorithm.name for algorithm in able(collective, size)}


class Asking:
    """A communicator all of whose collectives ask for one algorithm."""

    def __init__(self, comm: Comm, algorithm: str | Algorithm | None) -> None:
        self.comm, self.algorithm = comm, algorithm
        self.rank, self.size = comm.rank, comm.size

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return partial(getattr(self.comm, method), algorithm=self.algorithm)


@contextmanager
def refused(ours: Comm, match: str, alike: bool = True) -> Iterator[None]:
    """Every rank refuses, with the same words, before it has sent anything; and the communicator goes on working."""
    with ours.tracing() as trace, pytest.raises(TreeringError, match=match) as info:
        yield
    assert not trace.entries
    said = own(ours).allgather(str(info.value))
    assert len(set(said)) == 1 or not alike
    total = np.empty(1, np.int64)
    ours.Allreduce(np.array([ours.rank]), total)
    assert total == ours.size * (ours.size - 1) // 2


@contextmanager
def first(ours: Comm, size: int) -> Iterator[Comm | None]:
    """A communicator of the first few ranks, for them; None for the others, and for all if there are not so many."""
    member = ours.rank < size <= ours.size
    part = ours.Split(0 if member else MPI.UNDEFINED, ours.rank)
    yield part if member else None  # type: ignore[misc]
    if member:
        part.Free()


def is_mpich() -> bool:
    """Whether this is MPICH itself, whose supply of communicators is small."""
    return MPI.get_vendor()[0] == "MPICH"
