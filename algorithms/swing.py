"""Swing and Bine butterflies: partners to the right and to the left in turn, so that everyone stays nearer than in halving.

In step s even ranks go ``(1 - (-2) ** (s + 1)) / 3`` to the right and odd ranks as far to the left: 1, -1, 3, -5, 11, …
Swing reduces near first, with the most data between neighbours. Bine (binomial negabinary) is the same butterfly with the far
partners first. Both of them are for even numbers of ranks; for odd ones circulant graphs do the same in as few rounds.

There is no all-reduce by whole vectors over these partners: ranks would add up in different ways, and so end with different
bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    EVEN,
    IN,
    OUT,
    REDUCE_SCATTER,
    Copy,
    Recv,
    Round,
    Send,
    algorithm,
    named,
    per_rank,
    then,
    transpose,
)

SWING = "De Sensi et al., Swing: short-cutting rings for higher bandwidth allreduce, NSDI 2024"
BINE = "De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311"


def distances(size: int) -> list[int]:
    """How far an even rank's partner is to the right, for every step."""
    return [(1 - (-2) ** (step + 1)) // 3 for step in range((size - 1).bit_length())]


def parts(size: int, ways: list[int]) -> list[list[int]]:
    """For every step of a reduce-scatter, the blocks that rank 0 sends: all that its partner can still bring home.

    Of several steps in which a block could go, the latest counts; then it comes home once, for every even number of ranks.
    """
    reach = [0]  # where the blocks of an even rank can come to from the step on that is looked at
    found: list[list[int]] = []
    gone = {0}
    for way in reversed(ways):
        theirs = [(way - at) % size for at in reach]
        found.insert(0, sorted({block for block in theirs if block not in gone}))
        gone.update(theirs)
        reach = list(dict.fromkeys([*reach, *theirs]))
    return found


def butterfly(rank: int, size: int, ways: list[int]) -> Iterator[Round]:
    """All-gather along the ways of a reduce-scatter, the last one first."""
    def blocks(at: int, part: list[int]) -> list[int]:
        """A part as another rank has it; that of an odd rank is the mirror image."""
        return [(at - block if at % 2 else at + block) % size for block in part]

    yield Round(Copy(OUT(rank), IN(rank)))
    for way, part in zip(reversed(ways), reversed(parts(size, ways))):
        peer = (rank - way if rank % 2 else rank + way) % size
        yield Round(Send(peer, *map(OUT, blocks(peer, part))), Recv(peer, *map(OUT, blocks(rank, part))))


@algorithm(ALL_GATHER, "swing", family="swing", requires=[EVEN], source=SWING)
def all_gather(rank: int, size: int) -> Iterator[Round]:
    """Swap all that each has with partners that come nearer, to the right and to the left in turn.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield from butterfly(rank, size, distances(size))


@algorithm(REDUCE_SCATTER, "swing", family="swing", requires=[EVEN], source=SWING)
def reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Swap the parts in each other's reach with partners ever farther away, to the right and to the left in turn.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield from transpose(rank, all_gather(rank, size))


@algorithm(ALL_REDUCE, "swing", family="swing", blocks=per_rank, requires=[EVEN], source=SWING)
def all_reduce(rank: int, size: int) -> Iterator[Round]:
    """Reduce-scatter and then all-gather over the same partners.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``2 * (size - 1) / size``.
    """
    yield from then(named("reduce-scatter", reduce_scatter(rank, size)), named("all-gather", all_gather(rank, size)))


@algorithm(ALL_GATHER, "bine", family="swing", requires=[EVEN], source=BINE)
def all_gather_bine(rank: int, size: int) -> Iterator[Round]:
    """Swap all that each has with partners ever farther away, to the right and to the left in turn.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield from butterfly(rank, size, distances(size)[::-1])


@algorithm(REDUCE_SCATTER, "bine", family="swing", requires=[EVEN], source=BINE)
def reduce_scatter_bine(rank: int, size: int) -> Iterator[Round]:
    """Swap the parts in each other's reach with partners that come nearer, to the right and to the left in turn.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield from transpose(rank, all_gather_bine(rank, size))


@algorithm(ALL_REDUCE, "bine", family="swing", blocks=per_rank, requires=[EVEN], source=BINE)
def all_reduce_bine(rank: int, size: int) -> Iterator[Round]:
    """Reduce-scatter with far partners first, then all-gather with near partners first.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``2 * (size - 1) / size``.
    """
    yield from then(
        named("reduce-scatter", reduce_scatter_bine(rank, size)), named("all-gather", all_gather_bine(rank, size)))
