"""The executor: a program bound to a communicator and buffers, which can be run again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .lane import Lane
from .operators import Kernel
from .program import Message, Move, Program, Work
from .scratch import Run
from .trace import Entry

Array: TypeAlias = NDArray[Any]


class _Bound(NamedTuple):
    """A stage on real memory; ``number`` is that of the round in the schedule."""

    number: int
    pack: list[Callable[[], object]]
    sends: list[tuple[Array, int]]
    recvs: list[tuple[Array, int]]
    local: list[Callable[[], object]]


class Plan:
    """One rank's part of a collective on fixed buffers; every rank of the communicator runs its own.

    Parameters
    ----------
    program
        What to do.
    lane
        The private communicator that carries the messages.
    given, result
        The caller's buffers, flat; the same one twice when the program runs in place.
    scratch
        Memory of the program's number of scratch elements.
    kernel
        Of the operator, if the collective reduces.
    """

    def __init__(
        self, program: Program, lane: Lane, given: Array, result: Array, scratch: Array, kernel: Kernel | None = None,
    ) -> None:
        self.program, self.lane = program, lane
        memory = {"in": given, "out": result, "scratch": scratch}
        self.stages = [
            _Bound(
                stage.index, _bound(stage.pack, memory, kernel), _messages(stage.sends, memory),
                _messages(stage.recvs, memory), _bound(stage.local, memory, kernel))
            for stage in program.stages]

    def execute(self) -> None:
        """Run the collective once, to its end on this rank.

        Overflow and invalid operations of floating point numbers give infinities and NaN without a warning, as in MPI.
        """
        with np.errstate(all="ignore"):
            if self.lane.trace is None:
                for stage in self.stages:
                    self._run(stage)
            else:
                self._traced(self.lane.trace.entries)

    def _run(self, stage: _Bound) -> None:
        comm = self.lane.comm
        for work in stage.pack:
            work()
        requests = [comm.Irecv(data, peer) for data, peer in stage.recvs]
        requests += [comm.Isend(data, peer) for data, peer in stage.sends]
        MPI.Request.Waitall(requests)
        for work in stage.local:
            work()

    def _traced(self, entries: list[Entry]) -> None:
        for stage in self.stages:
            start = perf_counter()
            self._run(stage)
            sent, received = (tuple((peer, data.nbytes) for data, peer in m) for m in (stage.sends, stage.recvs))
            entries.append(Entry(self.program.name, stage.number, sent, received, start, perf_counter()))


def _messages(messages: Sequence[Message], memory: Mapping[str, Array]) -> list[tuple[Array, int]]:
    return [(_slice(memory, m.run).view(np.uint8), m.peer) for m in messages]


def _bound(works: Sequence[Work], memory: Mapping[str, Array], kernel: Kernel | None) -> list[Callable[[], object]]:
    bound: list[Callable[[], object]] = []
    for work in works:
        into = _slice(memory, work.into)
        if isinstance(work, Move):
            bound.append(partial(np.copyto, into, _slice(memory, work.source)))
        else:
            assert kernel is not None
            bound.append(partial(kernel, _slice(memory, work.left), _slice(memory, work.right), into))
    return bound


def _slice(memory: Mapping[str, Array], run: Run) -> Array:
    return memory[run.buffer][run.start:run.stop]
