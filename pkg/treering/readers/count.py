"""Counting: how many rounds, messages, blocks and bytes a schedule takes, for each rank and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from ..core.algorithm import Schedule
from ..core.collective import Collective
from ..core.layout import Counts, balanced, elements
from ..core.schedule import Block, Reduce, Slot
from .match import Completed, Started, Transfer, events
from .timeline import Clock

MEANING = {
    "broadcast": "the whole vector", "reduce": "the whole vector", "all-reduce": "the whole vector",
    "scan": "the whole vector", "exscan": "the whole vector", "barrier": "the token that says a rank has come",
    "all-to-all": "what one rank has for all",
}
"""What the size of a payload means where it is not the parts of all ranks together."""


@dataclass
class Load:
    """What one rank does, or all of them together.

    Attributes
    ----------
    rounds
        When its last message is through, in messages that follow each other.
    messages_sent, messages_received
        Messages with at least one element.
    blocks_sent, blocks_received, blocks_reduced, blocks_copied
        Blocks, however large.
    bytes_sent, bytes_received, bytes_reduced, bytes_copied
        Bytes; zero if no counts were given.
    """

    rounds: int = 0
    messages_sent: int = 0
    messages_received: int = 0
    blocks_sent: int = 0
    blocks_received: int = 0
    blocks_reduced: int = 0
    blocks_copied: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    bytes_reduced: int = 0
    bytes_copied: int = 0


@dataclass(frozen=True)
class Pair:
    """How much goes from one rank to another."""

    source: int
    destination: int
    blocks: int
    bytes: int


@dataclass(frozen=True)
class Figures:
    """The figures of a schedule.

    Attributes
    ----------
    schedule
        What was counted.
    rounds
        The longest path through transfers on ranks that send one message and receive one message at a time.
    depth
        The longest path through transfers on ranks with any number of ports.
    ranks
        What each rank does.
    pair
        The ordered pair of ranks with most to carry; None if nothing is sent.
    """

    schedule: Schedule
    rounds: int
    depth: int
    ranks: tuple[Load, ...]
    pair: Pair | None

    @property
    def total(self) -> Load:
        """All ranks together; its rounds are those of the whole, since ranks run side by side."""
        sums = {name: sum(getattr(load, name) for load in self.ranks) for name in vars(Load())}
        return Load(**{**sums, "rounds": self.rounds})

    def most(self, figure: str) -> int:
        """The figure of the rank that has most of it, e.g. ``most("bytes_sent")``."""
        return max(int(getattr(load, figure)) for load in self.ranks)

    def busiest(self) -> int:
        """The rank with most to send or receive, whichever is more on it; of several the first."""
        return max(range(len(self.ranks)), key=lambda rank: (_traffic(self.ranks[rank]), -rank))

    @property
    def sent(self) -> Fraction:
        """What the rank that sends most sends, in units of the payload m, for blocks of equal size."""
        return self._in_payloads("blocks_sent")

    @property
    def volume(self) -> Fraction:
        """What the busiest rank sends or receives, whichever is more, in units of m. Lower bounds speak of this."""
        return max(self.sent, self._in_payloads("blocks_received"))

    @property
    def reduced(self) -> Fraction:
        """What the rank that reduces most reduces, in units of m, for blocks of equal size."""
        return self._in_payloads("blocks_reduced")

    def _in_payloads(self, figure: str) -> Fraction:
        return Fraction(self.most(figure), blocks_of_payload(self.schedule))


def count(schedule: Schedule, counts: Counts | None = None, itemsize: int = 1) -> Figures:
    """Count what a schedule takes.

    Parameters
    ----------
    schedule
        Of any algorithm; all its ranks are run.
    counts
        Elements of each unit of the payload, as `treering.core.layout.elements` takes them. With counts, bytes are counted
        too, and messages without elements are not, since none is sent.
    itemsize
        Bytes of one element.

    Returns
    -------
    Figures

    Raises
    ------
    Flaw
        If the schedule's messages do not match.
    Refused
        If the counts do not fit the collective.

    Examples
    --------
    >>> from treering.table import schedule
    >>> figures = count(schedule("all-reduce", "ring", size=4), counts=1000, itemsize=4)
    >>> figures.rounds, figures.sent, figures.ranks[0].bytes_sent
    (6, Fraction(3, 2), 6000)
    """
    weigh = _weight(schedule, counts, itemsize)
    clock = Clock(schedule.size)
    ranks = tuple(Load() for _ in range(schedule.size))
    pairs: Counter[tuple[int, int]] = Counter()
    pair_blocks: Counter[tuple[int, int]] = Counter()
    for event in events(schedule):
        if isinstance(event, Transfer):
            size = weigh(event.sent.slots)
            if counts is not None and not size:
                continue
            clock.transfer(event)
            _add_message(ranks[event.source], ranks[event.destination], len(event.sent.slots), size)
            pairs[event.source, event.destination] += size
            pair_blocks[event.source, event.destination] += len(event.sent.slots)
        elif isinstance(event, Started):
            clock.started(event)
        else:
            clock.completed(event)
            _add_local(ranks[event.rank], event, weigh)
    timeline = clock.timeline()
    for link, start in zip(clock.links, timeline.starts):
        assert start is not None  # otherwise the events would have ended in a Flaw
        for rank in (link.source, link.destination):
            ranks[rank].rounds = max(ranks[rank].rounds, start + 1)
    return Figures(schedule, timeline.length, clock.timeline(one_ported=False).length, ranks, _busiest(pairs, pair_blocks))


def sent_by(schedule: Schedule, rank: int, counts: Counts, itemsize: int = 1) -> int:
    """The exact bytes that one rank sends, found by a walk through its own rounds only.

    Costs no more on 100,000 ranks than that rank's operations.

    Examples
    --------
    >>> from treering.table import schedule
    >>> sent_by(schedule("broadcast", "chain", size=100_000), rank=7, counts=1000, itemsize=2)
    2000
    """
    weigh = _weight(schedule, counts, itemsize)
    return sum(weigh(send.slots) for round_ in schedule.program(rank) for send in round_.sends)


def spread(collective: Collective, size: int, total: int) -> Counts:
    """The counts that make a payload of a total size, as benchmarks name sizes; parts differ by one at most.

    The inverse of `treering.core.layout.total`: ``total`` is the whole vector, the parts of all ranks together, or for
    all-to-all what one rank has for all.
    """
    units = collective.units(size)
    return total if units == 1 else [balanced(total, size, unit % size) for unit in range(units)]


def meaning(collective: Collective) -> str:
    """What the size of a payload means for a collective."""
    return MEANING.get(collective.name, "the parts of all ranks together")


def blocks_of_payload(schedule: Schedule) -> int:
    """How many blocks make the payload m that figures are multiples of."""
    units = schedule.collective.units(schedule.size)
    return schedule.case.blocks * min(units, schedule.size) // units


def _weight(schedule: Schedule, counts: Counts | None, itemsize: int) -> Callable[[Iterable[Slot]], int]:
    """A function from slots to their bytes; to 0 where no counts are given."""
    if counts is None:
        return lambda slots: 0
    of: Callable[[Block], int] = cache(elements(schedule.collective, schedule.case, counts))
    return lambda slots: itemsize * sum(of(slot.block) for slot in slots)


def _add_message(source: Load, destination: Load, blocks: int, size: int) -> None:
    source.messages_sent += 1
    source.blocks_sent += blocks
    source.bytes_sent += size
    destination.messages_received += 1
    destination.blocks_received += blocks
    destination.bytes_received += size


def _add_local(load: Load, event: Completed, weigh: Callable[[Iterable[Slot]], int]) -> None:
    for op in event.round.local:
        size = weigh((op.into,))
        if isinstance(op, Reduce):
            load.blocks_reduced += 1
            load.bytes_reduced += size
        else:
            load.blocks_copied += 1
            load.bytes_copied += size


def _traffic(load: Load) -> tuple[int, int]:
    return max(load.bytes_sent, load.bytes_received), max(load.blocks_sent, load.blocks_received)


def _busiest(sizes: Counter[tuple[int, int]], blocks: Counter[tuple[int, int]]) -> Pair | None:
    if not sizes:
        return None
    source, destination = min(sizes, key=lambda pair: (-sizes[pair], -blocks[pair], pair))
    return Pair(source, destination, blocks[source, destination], sizes[source, destination])
