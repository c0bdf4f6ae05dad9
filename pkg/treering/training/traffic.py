"""Send the messages of a step over MPI, in the step's own order, and time them beside MPI's own collectives.

The same program that makes the ledger is walked; there is no computation between the messages, and nothing overlaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI

from .collectives import Collectives
from .job import Job
from .lanes import Arena, Lane
from .ledger import Ledger, Message, StepLedger
from .mesh import Group
from .step import Step
from .tensor import Tensor
from .volume import ALGORITHMS

MEMORY_BYTES = 8 * 10**9
"""What the buffers of all ranks together may take."""

SHORT_BYTES = 64 * 1024
"""Messages so short that what is made at their first use would show in their time."""

BUFFERS = 3
"""Send, receive, and what an algorithm needs for itself."""

Role = tuple[str, ...]
Seconds = dict[tuple[Message, bool], float]
"""Seconds in all of a step's messages that are equal; sends and receives apart."""

Wrap = Callable[[MPI.Intracomm], Any]


@dataclass(frozen=True)
class Times:
    """Seconds a step spends in messages of one role: on the slowest rank, median over the iterations.

    Attributes
    ----------
    treering
        With treering's algorithms; of sends, which are MPI's own either way, the time in receives and their waiting.
    mpi
        With the MPI library's collectives; None of sends.
    """

    treering: float
    mpi: float | None


@dataclass(frozen=True)
class Outcome:
    """What a run of the traffic found.

    Attributes
    ----------
    times
        By role.
    ledger_bytes
        What all ranks together should have sent.
    traced_bytes
        What they did send, as treering's executor and the sends counted it.
    largest_piece
        Bytes of the largest piece that a message was sent in; messages beyond it were cut to bound the memory.
    cut
        Whether any was.
    sample
        Whether each distinct message was sent once and its time multiplied.
    iters
        How many steps were run.
    """

    times: dict[Role, Times]
    ledger_bytes: int
    traced_bytes: int
    largest_piece: int
    cut: bool
    sample: bool
    iters: int


class Traffic(Collectives):
    """Carries out messages with real buffers, each once with treering and once with MPI's own, by turns first.

    Parameters
    ----------
    job
        The step.
    world
        As many ranks as the mesh has.
    ledger
        What will be sent: from it come the communicators and the size of the buffers.
    wrap
        Makes treering's communicator from mpi4py's.
    sample
        Send each distinct message only the first time that it comes by.
    progress
        Called at every message.
    """

    def __init__(self, job: Job, world: MPI.Intracomm, ledger: StepLedger, wrap: Wrap, *, sample: bool = False,
                 progress: Callable[[], None] = lambda: None) -> None:
        super().__init__(job.mesh)
        self._world = world
        self._sample = sample
        self._progress = progress
        messages = {message for one in ledger.classes for message in one.ledger.times}
        self.limit = MEMORY_BYTES // (BUFFERS * world.size)
        self.largest = max((message.payload for message in messages), default=0)
        self._arena = Arena(min(self.limit, self.largest) // 16 * 16 + 16)
        self._mine: dict[Group, MPI.Intracomm] = {}
        self._lanes: dict[Group, tuple[Lane, Lane]] = {}
        for group in sorted({message.group for message in messages}, key=str):
            self._open(group, wrap)
        self._pending: list[MPI.Request] = []
        self._seen: set[tuple[Message, bool]] = set()
        self._turns = dict.fromkeys(self._lanes, 0)
        self.sends = 0
        self.treering: Seconds = {}
        self.mpi: Seconds = {}

    def _open(self, group: Group, wrap: Wrap) -> None:
        members = self.mesh.members(group, self.mesh.coordinates(self._world.rank))
        inside = self._world.rank in members
        mine = self._world.Split(members[0] if inside else MPI.UNDEFINED, self._world.rank)
        if inside and isinstance(mine, MPI.Intracomm):
            self._mine[group] = mine
            self._lanes[group] = (Lane(wrap(mine), ALGORITHMS, native=True), Lane(mine, {}, native=False))

    def warm_up(self, ledger: Ledger) -> None:
        """Open all connections, and send this rank's short messages, before anything is timed."""
        openers = [
            Message("", "all-reduce", group, self.mesh.group_size(group), "", "fp32", 1) for group in self._lanes]
        short = {m for m in ledger.times if m.operation != "send" and m.payload <= SHORT_BYTES}
        for message in [*openers, *sorted(short, key=repr)]:  # in one order on all ranks, so that none waits for another
            for lane in self._lanes[message.group]:
                for elements in self._pieces(message):
                    lane.run(message, elements, self._arena)

    def communicators(self) -> Iterator[Any]:
        """Yield treering's communicators."""
        return (lanes[0].communicator for lanes in self._lanes.values())

    def close(self) -> None:
        """Free the communicators; treering's are the same to MPI, and go with them."""
        for communicator in self._mine.values():
            communicator.Free()

    def start(self) -> None:
        """Begin another step."""
        self.treering, self.mpi = {}, {}
        self._seen.clear()

    def finish(self) -> None:
        """Wait until everything that was sent has left."""
        MPI.Request.Waitall(self._pending)
        self._pending.clear()

    def move(self, message: Message, tensor: Tensor, result: Tensor) -> Tensor:
        """Send a message, or take part in a collective."""
        if self._skip(message, sending=True):
            return result
        if message.operation == "send":
            self._send(message)
        else:
            lanes = list(zip(self._lanes[message.group], (self.treering, self.mpi), strict=True))
            self._turns[message.group] += 1  # counted by group, so that its ranks agree on who is first
            for lane, seconds in lanes if self._turns[message.group] % 2 else reversed(lanes):
                self._timed(lane, message, seconds)
        self._progress()
        return result

    def take(self, message: Message, result: Tensor) -> Tensor:
        """Receive what a neighbour sends."""
        if not self._skip(message, sending=False):
            communicator = self._mine[message.group]
            start = perf_counter()
            for elements in self._pieces(message):
                buffer = self._arena.receive(np.dtype(np.uint8), elements * message.itemsize)
                communicator.Recv(buffer, communicator.rank - message.shift, tag=message.shift + 1)
            _add(self.treering, (message, False), perf_counter() - start)
        return result

    def _skip(self, message: Message, *, sending: bool) -> bool:
        key = (message, sending)
        known = key in self._seen
        self._seen.add(key)
        return self._sample and known

    def _send(self, message: Message) -> None:
        communicator = self._mine[message.group]
        for elements in self._pieces(message):
            buffer = self._arena.send(np.dtype(np.uint8), elements * message.itemsize)
            self._pending.append(communicator.Isend(buffer, communicator.rank + message.shift, tag=message.shift + 1))
            self.sends += buffer.nbytes

    def _timed(self, lane: Lane, message: Message, seconds: Seconds) -> None:
        self._mine[message.group].Barrier()
        start = perf_counter()
        for elements in self._pieces(message):
            lane.run(message, elements, self._arena)
        _add(seconds, (message, True), perf_counter() - start)

    def _pieces(self, message: Message) -> Iterator[int]:
        """Yield the elements of each piece. All but the last divide by the ranks, so blocks add up to the whole's."""
        most = self.limit // message.itemsize // message.size * message.size
        whole, rest = divmod(message.elements, most)
        yield from [most] * whole
        if rest:
            yield rest


def run_traffic(job: Job, world: MPI.Intracomm, ledger: StepLedger, wrap: Wrap, *, sample: bool = False, iters: int = 1,
                progress: Callable[[], None] = lambda: None) -> Outcome:
    """Send a step's messages and say how long they took; every rank gets the outcome.

    Parameters
    ----------
    job, world, ledger, wrap, sample, progress
        As in `Traffic`.
    iters
        How many steps.
    """
    traffic = Traffic(job, world, ledger, wrap, sample=sample, progress=progress)
    stage = job.mesh.coordinates(world.rank)["pp"]
    traffic.warm_up(ledger.of_stage(stage).ledger)
    ours: list[Seconds] = []
    theirs: list[Seconds] = []
    with ExitStack() as stack:
        traces = [stack.enter_context(comm.tracing()) for comm in traffic.communicators()]
        for _ in range(iters):
            traffic.start()
            Step(job, stage, traffic).run()
            traffic.finish()
            ours.append(traffic.treering)
            theirs.append(traffic.mpi)
    sent = world.allreduce(traffic.sends + sum(trace.sent_bytes for trace in traces))
    factor = partial(_times, ledger, stage) if sample else lambda key: 1
    mine = [[_by_role(seconds, factor) for seconds in lane] for lane in (ours, theirs)]
    times = _slowest(world.allgather(mine))
    traffic.close()
    expected = (ledger.sampled() if sample else ledger).total_bytes() * iters
    return Outcome(times, expected, sent, traffic.limit, traffic.largest > traffic.limit, sample, iters)


def _times(ledger: StepLedger, stage: int, key: tuple[Message, bool]) -> int:
    """How often a message occurs for which one that was sampled stands. One that is received is in its sender's ledger."""
    message, sending = key
    return ledger.of_stage(stage if sending else stage - message.shift).ledger.times[message]


def _by_role(seconds: Seconds, factor: Callable[[tuple[Message, bool]], int]) -> dict[Role, float]:
    found: dict[Role, float] = {}
    for key, spent in seconds.items():
        found[key[0].role] = found.get(key[0].role, 0.0) + spent * factor(key)
    return found


def _slowest(ranks: list[list[list[dict[Role, float]]]]) -> dict[Role, Times]:
    """Per role and lane: of every iteration the slowest rank, of those the median."""
    columns = []
    for lane in (0, 1):
        steps = list(zip(*(rank[lane] for rank in ranks), strict=True))
        roles = {role for step in steps for spent in step for role in spent}
        columns.append({role: median(max(spent.get(role, 0.0) for spent in step) for step in steps) for role in roles})
    return {role: Times(spent, columns[1].get(role)) for role, spent in columns[0].items()}


def _add(seconds: Seconds, key: tuple[Message, bool], more: float) -> None:
    seconds[key] = seconds.get(key, 0.0) + more
