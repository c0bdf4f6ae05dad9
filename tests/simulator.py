"""Programs of all ranks run in one process: an executor without MPI that is as unkind as MPI may be.

Sends are synchronous: they end when the peer receives. Their data are read as late as that, and what a round receives into is
spoilt when the round starts, since a message may arrive at any moment from then on.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treering.running.program import Message, Move, Program, Stage, Work
from treering.running.scratch import Run

Array = NDArray[Any]
Kernel = Callable[[Array, Array], Array]
Memory = dict[str, Array]


@dataclass
class Posted:
    """A message that one side has posted."""

    data: Array
    done: bool = False


class Network:
    """Pairs the k-th send between two ranks with the k-th receive."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[str, int, int], deque[Posted]] = defaultdict(deque)
        self.moved: dict[int, int] = defaultdict(int)
        """Elements that each rank has sent."""

    def post(self, side: str, source: int, destination: int, data: Array) -> Posted:
        posted = Posted(data)
        others = self.waiting["recv" if side == "send" else "send", source, destination]
        if others:
            other = others.popleft()
            sent, received = (posted, other) if side == "send" else (other, posted)
            assert sent.data.size == received.data.size, f"{source} sends {destination} another length than is received"
            received.data[...] = sent.data
            self.moved[source] += sent.data.size
            sent.done = received.done = True
        else:
            self.waiting[side, source, destination].append(posted)
        return posted


def run(programs: Sequence[Program], memories: Sequence[Memory], kernel: Kernel) -> Network:
    """Run the programs of all ranks to their end.

    Parameters
    ----------
    memories
        The buffers ``in`` and ``out`` of every rank; the same one twice in place.
    kernel
        Gives ``left ⊕ right``.
    """
    network = Network()
    running = {rank: _rank(rank, p, memory, kernel, network) for rank, (p, memory) in enumerate(zip(programs, memories))}
    blocked: dict[int, list[Posted]] = {rank: [] for rank in running}
    while running:
        ready = [rank for rank in running if all(posted.done for posted in blocked[rank])]
        assert ready, f"deadlock of ranks {sorted(running)}"
        for rank in ready:
            blocked[rank] = next(running[rank], [])
            if not blocked[rank]:
                del running[rank]
    assert not any(network.waiting.values()), "a message is left over"
    return network


def _rank(rank: int, program: Program, memory: Memory, kernel: Kernel, network: Network) -> Iterator[list[Posted]]:
    """Run one rank; yield the messages that it waits for."""
    given = next(iter(memory.values()))
    memory = {**memory, "scratch": _spoilt(np.empty(program.scratch, given.dtype))}
    for stage in program.stages:
        for work in stage.pack:
            _do(work, memory, kernel)
        for message in stage.recvs:
            _spoilt(_slice(memory, message.run))
        waiting = [network.post("recv", m.peer, rank, _slice(memory, m.run)) for m in stage.recvs]
        waiting += [network.post("send", rank, m.peer, _slice(memory, m.run)) for m in stage.sends]
        if waiting:
            yield waiting
        for work in stage.local:
            _do(work, memory, kernel)


def _spoilt(array: Array) -> Array:
    array.view(np.uint8)[...] = 0xA5
    return array


def _do(work: Work, memory: Memory, kernel: Kernel) -> None:
    into = _slice(memory, work.into)
    sources = [work.source] if isinstance(work, Move) else [work.left, work.right]
    values = [_slice(memory, source) for source in sources]
    into[...] = values[0].copy() if isinstance(work, Move) else kernel(*values)


def _slice(memory: Memory, run: Run) -> Array:
    return memory[run.buffer][run.start:run.stop]


def messages(stage: Stage) -> tuple[Message, ...]:
    return (*stage.sends, *stage.recvs)


def runs(program: Program) -> Iterator[Run]:
    """All runs that a program names."""
    for stage in program.stages:
        yield from (message.run for message in messages(stage))
        for work in (*stage.pack, *stage.local):
            yield from (work.into, work.source) if isinstance(work, Move) else (work.into, work.left, work.right)
