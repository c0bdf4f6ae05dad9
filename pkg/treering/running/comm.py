"""The communicator: mpi4py's, with its collectives running on treering's schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI

from ..core.algorithm import Algorithm
from ..core.collective import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    EXSCAN,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    SCATTER,
    Collective,
)
from ..core.errors import Refused
from ..table import find_collective
from .buffers import written
from .call import Arguments, Call
from .lane import Lane
from .plan import Plan
from .program import Program, lower
from .select import Choice, choose, understood
from .trace import Trace

Name: TypeAlias = str | Algorithm | None
"""How a caller names an algorithm; None leaves the choice to treering."""


class Comm(MPI.Intracomm):
    """An mpi4py communicator whose collectives on buffers run on treering; all else is mpi4py's.

    Broadcast, scatter, gather, reduce, all-gather, all-reduce, reduce-scatter, all-to-all, scan, exscan and barrier take,
    besides mpi4py's arguments, ``algorithm=``: a name such as ``"ring"`` or ``"chain:segments=16"``, or the algorithm itself.
    Without it one is chosen that suits the size; `explain` says which.

    Parameters
    ----------
    comm
        The communicator to build on. The messages of collectives go over a private duplicate of it, which is made by the
        first collective and freed with ``comm``.

    Examples
    --------
    >>> comm = treering.Comm(MPI.COMM_WORLD)                      # doctest: +SKIP
    >>> comm.Allreduce(send, recv, op=MPI.SUM, algorithm="ring")  # doctest: +SKIP
    """

    def __new__(cls, comm: MPI.Comm | None = None) -> Comm:
        if comm is None:  # mpi4py makes the results of Dup and the like of the same class, and fills them in
            return super().__new__(cls)
        if comm == MPI.COMM_NULL:
            raise Refused("treering.Comm needs a communicator, not MPI.COMM_NULL")
        if comm.Is_inter():
            raise Refused("treering.Comm works within one group of ranks; an intercommunicator has two")
        return super().__new__(cls, comm)

    def Bcast(self, buf: Any, root: int = 0, *, algorithm: Name = None) -> None:
        """Send what the root's buffer holds to all others'."""
        self._run(BROADCAST, None, buf, root, algorithm=algorithm)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, *, algorithm: Name = None) -> None:
        """Send each rank its part of the root's buffer; at the root ``recvbuf`` may be ``MPI.IN_PLACE``."""
        self._run(SCATTER, sendbuf, recvbuf, root, algorithm=algorithm)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0, *, algorithm: Name = None) -> None:
        """Collect everyone's part in the root's buffer; at the root ``sendbuf`` may be ``MPI.IN_PLACE``."""
        self._run(GATHER, sendbuf, recvbuf, root, algorithm=algorithm)

    def Reduce(
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0, *, algorithm: Name = None,
    ) -> None:
        """Reduce everyone's vector into the root's buffer; at the root ``sendbuf`` may be ``MPI.IN_PLACE``."""
        self._run(REDUCE, sendbuf, recvbuf, root, op, algorithm=algorithm)

    def Allgather(self, sendbuf: Any, recvbuf: Any, *, algorithm: Name = None) -> None:
        """Collect everyone's part in everyone's buffer; ``sendbuf`` may be ``MPI.IN_PLACE``."""
        self._run(ALL_GATHER, sendbuf, recvbuf, algorithm=algorithm)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, *, algorithm: Name = None) -> None:
        """Reduce everyone's vector into everyone's buffer; ``sendbuf`` may be ``MPI.IN_PLACE``."""
        self._run(ALL_REDUCE, sendbuf, recvbuf, op=op, algorithm=algorithm)

    def Reduce_scatter_block(
        self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, *, algorithm: Name = None,
    ) -> None:
        """Reduce everyone's vector and leave each rank an equal part; ``sendbuf`` may be ``MPI.IN_PLACE``."""
        self._run(REDUCE_SCATTER, sendbuf, recvbuf, op=op, algorithm=algorithm)

    def Reduce_scatter(
        self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: MPI.Op = MPI.SUM, *,
        algorithm: Name = None,
    ) -> None:
        """Reduce everyone's vector and leave each rank the part that ``recvcounts`` gives it.

        Without counts, each rank's part is as long as its receive buffer.
        """
        if recvcounts is None:
            mine = Arguments(REDUCE_SCATTER, self.rank, self.size, 0)
            recvcounts = self._everyones(mine.own_count(sendbuf, recvbuf))
        self._run(REDUCE_SCATTER, sendbuf, recvbuf, op=op, counts=recvcounts, algorithm=algorithm)

    def Alltoall(self, sendbuf: Any, recvbuf: Any, *, algorithm: Name = None) -> None:
        """Send each rank a part of one's own buffer, and receive one of each; ``sendbuf`` may be ``MPI.IN_PLACE``."""
        self._run(ALL_TO_ALL, sendbuf, recvbuf, algorithm=algorithm)

    def Scan(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, *, algorithm: Name = None) -> None:
        """Reduce the vectors of this rank and all before it; ``sendbuf`` may be ``MPI.IN_PLACE``."""
        self._run(SCAN, sendbuf, recvbuf, op=op, algorithm=algorithm)

    def Exscan(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, *, algorithm: Name = None) -> None:
        """Reduce the vectors of all ranks before this one; rank 0's ``recvbuf`` stays. ``sendbuf`` may be ``MPI.IN_PLACE``."""
        self._run(EXSCAN, sendbuf, recvbuf, op=op, algorithm=algorithm)

    def Barrier(self, *, algorithm: Name = None) -> None:
        """Wait until all ranks have come here."""
        # Who has come says so by a true byte; only when the bytes of all are in one does a rank go on.
        self._run(BARRIER, np.ones(1, np.bool_), np.empty(1, np.bool_), op=MPI.LAND, algorithm=algorithm)

    def Split(self, color: int = 0, key: int = 0) -> MPI.Comm:
        """As mpi4py's; the new communicator has treering's collectives too, as have those of `Dup` and the like."""
        return _ours(super().Split(color, key))

    def Split_type(self, split_type: int, key: int = 0, info: MPI.Info = MPI.INFO_NULL) -> MPI.Comm:
        return _ours(super().Split_type(split_type, key, info))

    def Create(self, group: MPI.Group) -> MPI.Comm:
        return _ours(super().Create(group))

    def Create_group(self, group: MPI.Group, tag: int = 0) -> MPI.Intracomm:
        return _ours(super().Create_group(group, tag))

    def plan(
        self, collective: str | Collective, sendbuf: Any, recvbuf: Any, root: int = 0, op: MPI.Op | None = None, *,
        algorithm: Name = None,
    ) -> Plan:
        """Bind a collective to buffers, to be run as often as wanted with `Plan.execute`.

        Parameters
        ----------
        collective
            Its name, e.g. ``"all-reduce"``; broadcast has its one buffer as ``recvbuf``.
        sendbuf, recvbuf, root, op
            As the method of that collective takes them. A reduction without operator sums.
        """
        found = find_collective(collective) if isinstance(collective, str) else collective
        if op is None and found.reduces:
            op = MPI.SUM
        call = Arguments(found, self.rank, self.size, root).call(sendbuf, recvbuf, op)
        if found.one_buffer:
            written(recvbuf)  # a plan cannot send a copy of what is read-only: it may have changed
        program, lane = self._program(call, algorithm)
        return self._plan(call, program, lane, np.empty(program.scratch, call.given.dtype))

    def explain(
        self, collective: str | Collective, nbytes: int, op: MPI.Op | None = None, *, algorithm: Name = None,
    ) -> Choice:
        """Say which algorithm would run for a payload of so many bytes, and why.

        For all-gather, reduce-scatter, scatter and gather the payload is the parts of all ranks together.
        """
        found = find_collective(collective) if isinstance(collective, str) else collective
        return choose(found, self.size, nbytes, op is not None and not op.Is_commutative(), algorithm)

    @contextmanager
    def tracing(self) -> Iterator[Trace]:
        """Record what this rank's collectives on this communicator send and receive while the context lasts."""
        lane = Lane.of(self)
        before, lane.trace = lane.trace, Trace()
        try:
            yield lane.trace
        finally:
            lane.trace = before

    def _run(
        self, collective: Collective, sendbuf: Any, recvbuf: Any, root: Any = 0, op: MPI.Op | None = None, *,
        algorithm: Name, counts: Sequence[int] | None = None,
    ) -> None:
        call = Arguments(collective, self.rank, self.size, root, counts).call(sendbuf, recvbuf, op)
        program, lane = self._program(call, algorithm)
        self._plan(call, program, lane, lane.scratch(program.scratch, call.given.dtype)).execute()

    def _program(self, call: Call, algorithm: Name) -> tuple[Program, Lane]:
        """The rank's part, made once for all calls that differ in nothing but their buffers."""
        in_order = call.operator is not None and not call.operator.commutes
        lane = Lane.of(self)
        key = (
            call.collective.name, understood(algorithm), call.root, call.counts, call.given.itemsize, call.in_place, in_order)

        def make() -> Program:
            choice = choose(call.collective, self.size, call.nbytes, in_order, algorithm)
            schedule = choice.algorithm.schedule(self.size, call.root, **dict(choice.parameters))
            return lower(schedule, self.rank, call.counts, call.in_place)

        return lane.remembered(key, make), lane

    def _plan(self, call: Call, program: Program, lane: Lane, scratch: Any) -> Plan:
        kernel = call.operator.kernel if call.operator else None
        return Plan(program, lane, call.given, call.result, scratch, kernel)

    def _everyones(self, count: int) -> list[int]:
        """The numbers of all ranks."""
        counts = np.empty(self.size, np.int64)
        self._run(ALL_GATHER, np.array([count], np.int64), counts, algorithm=None)
        return counts.tolist()


def _ours(comm: MPI.Comm) -> Any:
    """A new communicator as one of ours; a rank that is not in it has none."""
    return comm if comm == MPI.COMM_NULL else Comm(comm)
