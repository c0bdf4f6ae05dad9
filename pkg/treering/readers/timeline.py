"""When everything happens: the longest path through transfers, on ranks with one port or with any number.

Rounds complete on their rank alone, so "round 3" of one rank may run beside "round 5" of another. A common clock puts them
side by side again: a transfer takes one unit of time and starts no earlier than both rounds it belongs to; a rank enters a
round when its round before is complete; copies and reductions take no time. `count` reads lengths from it, `show` pictures.

On one-ported, full-duplex ranks a rank sends one message and receives one message at a time. Of the sends of a round the
first in the list whose receiver is ready and free goes first, so no port is idle that has something to do.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .match import Completed, Started, Transfer


class Link(NamedTuple):
    """A transfer without its slots: which round waits for which.

    Attributes
    ----------
    place
        Where the send stands among those of its round.
    """

    source: int
    source_round: int
    destination: int
    destination_round: int
    place: int


@dataclass(frozen=True)
class Timeline:
    """The times of a schedule's transfers and rounds, in units of one transfer.

    Attributes
    ----------
    starts
        When each transfer starts, in the order in which the clock was told of them; None for one that never does.
    begins, ends
        For every rank, when each of its rounds begins and is complete; a round that never is has no end.
    """

    starts: tuple[int | None, ...]
    begins: tuple[tuple[int, ...], ...]
    ends: tuple[tuple[int, ...], ...]

    @property
    def length(self) -> int:
        """The end of the last transfer."""
        return max((start + 1 for start in self.starts if start is not None), default=0)


@dataclass
class Clock:
    """Is told the events of a schedule as `match` finds them, then tells the time of each.

    A transfer that it is not told of takes no time and nobody waits for it, as executors treat messages of no elements.
    """

    size: int
    links: list[Link] = field(default_factory=list)
    rounds: list[list[list[int]]] = field(init=False)
    """For each rank and round, the indices of its links."""
    complete: list[int] = field(init=False)
    """How many rounds each rank completes."""

    def __post_init__(self) -> None:
        self.rounds = [[] for _ in range(self.size)]
        self.complete = [0] * self.size
        self._places: list[dict[int, int]] = [{} for _ in range(self.size)]

    def started(self, event: Started) -> None:
        self.rounds[event.rank].append([])
        self._places[event.rank] = {id(send): place for place, send in enumerate(event.round.sends)}

    def transfer(self, event: Transfer) -> None:
        ends = (event.source, event.source_round), (event.destination, event.destination_round)
        for rank, index in ends:
            self.rounds[rank][index].append(len(self.links))
        self.links.append(Link(*ends[0], *ends[1], self._places[event.source][id(event.sent)]))

    def completed(self, event: Completed) -> None:
        self.complete[event.rank] += 1

    def timeline(self, one_ported: bool = True) -> Timeline:
        """Let time run, with one port a rank and direction, or with as many as there are messages."""
        return _Run(self, one_ported).run()


class _Run:
    def __init__(self, clock: Clock, one_ported: bool) -> None:
        self.clock, self.choose = clock, self.one_each if one_ported else self.all_at_once
        self.now = 0
        self.starts: list[int | None] = [None] * len(clock.links)
        self.begins: list[list[int]] = [[] for _ in range(clock.size)]
        self.ends: list[list[int]] = [[] for _ in range(clock.size)]
        self.missing = [0] * clock.size  # transfers that a rank's present round still waits for
        self.met = bytearray(len(clock.links))  # how many of the two rounds of a link have begun
        self.ready: list[list[tuple[int, int]]] = [[] for _ in range(clock.size)]  # of each source: (place, link)

    def run(self) -> Timeline:
        for rank in range(self.clock.size):
            self.enter_next(rank)
        while chosen := self.choose():
            for link in chosen:
                self.starts[link] = self.now
            self.now += 1
            for link in chosen:
                for rank in (self.clock.links[link].source, self.clock.links[link].destination):
                    self.missing[rank] -= 1
                    if not self.missing[rank]:
                        self.leave(rank)
        return Timeline(tuple(self.starts), tuple(map(tuple, self.begins)), tuple(map(tuple, self.ends)))

    def enter_next(self, rank: int) -> None:
        """Enter the next round, and those after it as long as they wait for nothing."""
        rounds, complete = self.clock.rounds[rank], self.clock.complete[rank]
        while len(self.begins[rank]) < len(rounds):
            index = len(self.begins[rank])
            self.begins[rank].append(self.now)
            for link in rounds[index]:
                self.met[link] += 1
                if self.met[link] == 2:
                    insort(self.ready[self.clock.links[link].source], (self.clock.links[link].place, link))
            self.missing[rank] = len(rounds[index])
            if self.missing[rank] or index >= complete:
                return
            self.ends[rank].append(self.now)

    def leave(self, rank: int) -> None:
        if len(self.ends[rank]) < self.clock.complete[rank]:
            self.ends[rank].append(self.now)
            self.enter_next(rank)

    def all_at_once(self) -> Sequence[int]:
        chosen = [link for queue in self.ready for _, link in queue]
        for queue in self.ready:
            queue.clear()
        return chosen

    def one_each(self) -> Sequence[int]:
        """For every source the first message whose receiver takes no other."""
        chosen: list[int] = []
        taken: set[int] = set()
        for queue in self.ready:
            for at, (_, link) in enumerate(queue):
                destination = self.clock.links[link].destination
                if destination not in taken:
                    taken.add(destination)
                    chosen.append(link)
                    del queue[at]
                    break
        return chosen
