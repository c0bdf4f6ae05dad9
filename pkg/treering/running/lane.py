"""A private communicator beside each of the caller's, so that our messages never meet theirs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .trace import Trace

Made = TypeVar("Made")

PROGRAMS_KEPT = 256
"""How many programs a lane remembers; the one not used for longest goes first."""


class Lane:
    """The private communicator of one of the caller's, with what is reused from call to call.

    It is made by the first use, which is collective, and goes when the caller's communicator is freed.
    """

    _key: int | None = None

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = MPI.Intracomm(comm).Dup()
        self.trace: Trace | None = None
        self.programs: OrderedDict[Hashable, Any] = OrderedDict()
        self.memory = np.empty(0, np.uint8)

    @classmethod
    def of(cls, comm: MPI.Comm) -> Lane:
        """The lane beside a communicator; collective over it the first time."""
        if cls._key is None:
            cls._key = MPI.Comm.Create_keyval(delete_fn=cls._freed)
        lane = comm.Get_attr(cls._key)
        if lane is None:
            lane = cls(comm)
            comm.Set_attr(cls._key, lane)
        assert isinstance(lane, cls)
        return lane

    @staticmethod
    def _freed(comm: MPI.Comm, key: int, lane: Lane) -> None:
        lane.comm.Free()

    def remembered(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made for a key before, or made now."""
        if key in self.programs:
            self.programs.move_to_end(key)
        else:
            self.programs[key] = make()
            if len(self.programs) > PROGRAMS_KEPT:
                self.programs.popitem(last=False)
        made: Made = self.programs[key]
        return made

    def scratch(self, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Memory for one call, the same from call to call, as calls on one communicator follow each other."""
        size = count * dtype.itemsize
        if self.memory.size < size:
            self.memory = np.empty(size, np.uint8)
        return self.memory[:size].view(dtype)
