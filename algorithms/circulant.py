"""Circulant graphs: every rank has the same neighbours, at distances that halve, rounded up, from the number of ranks to 1.

They give any number of ranks what powers of two have by halving and doubling: the least rounds, the least volume and, for
reductions, the least work, all at once. The reductions are for operators that commute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    IN,
    OUT,
    REDUCE_SCATTER,
    Copy,
    Recv,
    Round,
    Send,
    Slot,
    Space,
    algorithm,
    named,
    per_rank,
    then,
    transpose,
)

HELD = Space("held")
CIRCULANT = "Träff, Optimal, non-pipelined reduce-scatter and allreduce algorithms, arXiv 2410.14234"


def skips(size: int) -> list[int]:
    """The distances, ending with the size itself: each is half of the next, rounded up.

    Examples
    --------
    >>> skips(22)
    [1, 2, 3, 6, 11, 22]
    """
    found = [size]
    while found[0] > 1:
        found.insert(0, (found[0] + 1) // 2)
    return found


@algorithm(ALL_GATHER, "circulant", family="circulant", source=CIRCULANT)
def all_gather(rank: int, size: int) -> Iterator[Round]:
    """Send the blocks one has to the rank a skip to the left, as many as make the next skip.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    distances = skips(size)
    yield Round(Copy(OUT(rank), IN(rank)))
    for have, want in pairwise(distances):
        yield Round(
            Send((rank - have) % size, *(OUT((rank + i) % size) for i in range(want - have))),
            Recv((rank + have) % size, *(OUT((rank + i) % size) for i in range(have, want))))


@algorithm(REDUCE_SCATTER, "circulant", family="circulant", source=CIRCULANT)
def reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Send the partial sums for the farther half of the ranks ahead to the first of them, then half of what is left.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield from transpose(rank, all_gather(rank, size))


@algorithm(ALL_REDUCE, "circulant", family="circulant", blocks=per_rank, source=CIRCULANT)
def all_reduce(rank: int, size: int) -> Iterator[Round]:
    """Reduce-scatter and then all-gather over the same skips.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``2 * (size - 1) / size``.
    """
    yield from then(named("reduce-scatter", reduce_scatter(rank, size)), named("all-gather", all_gather(rank, size)))


@algorithm(ALL_TO_ALL, "circulant", family="circulant", source=CIRCULANT)
def all_to_all(rank: int, size: int) -> Iterator[Round]:
    """Send all blocks for the farther half of the ranks ahead to the first of them, wherever they came from.

    It is the reduce-scatter without the reduction: what would be added up is collected.

    Rounds: ``ceil_log2(size)``. Sent: ``ceil_log2(size) / 2`` for a power of two, else at most ``ceil_log2(size) / 2``.
    """
    def slots(ahead: int, behind: Iterable[int]) -> list[Slot]:
        """The blocks for a rank ahead that have come from ranks behind, which are this far away."""
        blocks = [((rank - way) % size, (rank + ahead) % size) for way in behind]
        return [IN(block) if block[0] == rank else OUT(block) if block[1] == rank else HELD(block) for block in blocks]

    distances = skips(size)
    came = [[0] for _ in range(size)]  # how far the blocks have come that a rank holds for the one so far ahead of it
    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    for skip, reach in reversed([*pairwise(distances)]):
        new = {i - skip: [way + skip for way in came[i]] for i in range(skip, reach)}
        yield Round(
            Send((rank + skip) % size, *(slot for i in range(skip, reach) for slot in slots(i, came[i]))),
            Recv((rank - skip) % size, *(slot for i in new for slot in slots(i, new[i]))))
        for i in new:
            came[i] += new[i]
