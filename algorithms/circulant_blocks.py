"""Round-optimal pipelines over circulant graphs: a payload in n blocks reaches everyone in n - 1 + ⌈log2 p⌉ rounds.

No schedule can do with fewer. In every round every rank sends one block to a rank a skip ahead and receives one from a skip
behind; the skips take turns. Which block goes is the difficulty: every rank must receive every block once, and only send what
it has. It needs a table with one line for each skip, the same for every turn; see `received`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from itertools import pairwise

from treering.core import (
    ALL_GATHER,
    BROADCAST,
    IN,
    OUT,
    REDUCE,
    REDUCE_SCATTER,
    Copy,
    Parameter,
    Recv,
    Round,
    Send,
    Slot,
    algorithm,
    transpose,
)

from .circulant import skips

TRAEFF = "Träff, Optimal broadcast schedules in logarithmic time, arXiv 2407.18004; MPICH"
SEGMENTS = Parameter(
    "segments", default=8, minimum=1, meaning="slices of the payload that follow each other",
    best=lambda size, weight: math.sqrt(max((size - 1).bit_length() - 1, 0) * weight))
PARTS = Parameter(
    "segments", default=1, minimum=1, meaning="slices of each rank's part; more of them pay where parts differ much in size")


def segments_of(size: int, segments: int) -> int:
    """As many blocks as segments."""
    return segments


def parts_of(size: int, segments: int) -> int:
    """As many blocks of each rank as segments."""
    return size * segments


def base(place: int, distances: list[int]) -> int:
    """The last skip on the way from the root to a place, if the largest that fits is always taken; which is its first block.

    Examples
    --------
    >>> [base(place, [1, 2, 3, 6, 11, 22]) for place in range(8)]
    [5, 0, 1, 2, 0, 1, 3, 0]
    """
    last = len(distances) - 1
    for k in reversed(range(last)):
        if distances[k] <= place:
            last, place = k, place - distances[k]
    return last


def nearest(value: int, place: int, distances: list[int]) -> int:
    """The last place, up to the given one, whose base is a value less than the root's; -1 if there is none."""
    while place >= 0:
        rest = place
        for distance in reversed(distances[value + 1:-1]):
            rest -= distance if distance <= rest else 0
        if distances[value] <= rest:
            return place - rest + distances[value]
        place -= rest + 1
    return -1


def occurs(value: int, low: int, high: int, distances: list[int]) -> bool:
    """Whether a place from low to high, which may be below 0 and then counts from the end, has a value as its base."""
    size = distances[-1]
    if value == len(distances) - 1:
        return low <= 0 <= high
    if low < 0 <= high:
        return occurs(value, low, -1, distances) or occurs(value, 0, high, distances)
    return nearest(value, high % size, distances) >= low % size


@functools.lru_cache(maxsize=4096)
def received(place: int, size: int) -> tuple[int, ...]:
    """For each skip, the block that a place, counted from the root, receives over it in the first turn; those below 0 later.

    Its own base comes in the first turn. All else comes a turn later: over a skip the largest base that is not taken yet of
    the places from this skip to the next behind; if all of them are taken, that of the place at the next skip.
    """
    distances = skips(size)
    turn = len(distances) - 1
    first = base(place, distances)
    free = [value for value in reversed(range(turn + 1)) if value != first]
    table: list[int] = []
    for skip, beyond in pairwise(distances):
        behind = (value for value in free if occurs(value, place - beyond + 1, place - skip, distances))
        found = next(behind, base((place - beyond) % size, distances))
        free.remove(found)
        table.append(first if found == turn else found - turn)
    return tuple(table)


def turns(size: int, segments: int) -> Iterator[tuple[int, int]]:
    """For each round, which skip has its turn, and how many blocks have gone before this turn.

    The first turn is cut at its start, so that the last one is complete.
    """
    turn = len(skips(size)) - 1
    cut = (1 - segments) % turn
    for i in range(cut, segments - 1 + turn + cut):
        yield i % turn, i // turn * turn - cut


@algorithm(BROADCAST, "circulant", family="circulant", blocks=segments_of, parameters=[SEGMENTS], source=TRAEFF)
def broadcast(rank: int, size: int, root: int, segments: int) -> Iterator[Round]:
    """Send a segment a skip ahead and receive one from a skip behind, over one skip after the other, in the fewest rounds.

    Rounds: ``segments - 1 + ceil_log2(size)``. Sent: ``(segments - 1 + ceil_log2(size)) / segments``.
    """
    place, distances = (rank - root) % size, skips(size)
    come = received(place, size)
    go = [received((place + skip) % size, size)[k] for k, skip in enumerate(distances[:-1])]
    for k, before in turns(size, segments):
        to, back = (place + distances[k]) % size, (place - distances[k]) % size
        out, new = (min(table[k] + before, segments - 1) for table in (go, come))
        send = [Send((to + root) % size, OUT(out))] if to and out >= 0 else []
        receive = [Recv((back + root) % size, OUT(new))] if place and new >= 0 else []
        yield Round(*send, *receive)


@algorithm(REDUCE, "circulant", family="circulant", blocks=segments_of, parameters=[SEGMENTS], source=TRAEFF)
def reduce(rank: int, size: int, root: int, segments: int) -> Iterator[Round]:
    """Add up every segment along the ways of the broadcast, backwards.

    Rounds: ``segments - 1 + ceil_log2(size)``. Sent: ``1``.
    """
    yield from transpose(rank, broadcast(rank, size, root, segments=segments))


@algorithm(ALL_GATHER, "circulant-pipelined", family="circulant", blocks=parts_of, parameters=[PARTS], source=TRAEFF)
def all_gather(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Broadcast from all ranks at once: a message has a segment of nearly everyone's.

    With one segment it takes the fewest rounds. More of them even out parts of very different size.

    Rounds: ``segments - 1 + ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    distances, tables = skips(size), [received(place, size) for place in range(size)]

    def slots(at: int, k: int, before: int) -> list[Slot]:
        """What a rank receives over a skip, from all roots but itself."""
        segment = {root: min(tables[at - root][k] + before, segments - 1) for root in range(size) if root != at}
        return [OUT(root * segments + some) for root, some in segment.items() if some >= 0]

    yield Round(*(Copy(OUT(b), IN(b)) for b in range(rank * segments, (rank + 1) * segments)))
    for k, before in turns(size, segments):
        to, back = (rank + distances[k]) % size, (rank - distances[k]) % size
        yield Round(Send(to, *slots(to, k, before)), Recv(back, *slots(rank, k, before)))


@algorithm(REDUCE_SCATTER, "circulant-pipelined", family="circulant", blocks=parts_of, parameters=[PARTS], source=TRAEFF)
def reduce_scatter(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Reduce to all ranks at once: the all-gather, backwards.

    Rounds: ``segments - 1 + ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield from transpose(rank, all_gather(rank, size, segments=segments))
