"""Reduce-scatter for operators that do not commute: near partners first, so that sums are always over neighbouring ranks.

Recursive halving starts with far partners and mixes up the ranks. MPICH's recursive doubling for such operators comes to the
same as this, once the blocks are left out that nobody needs any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import IN, OUT, REDUCE_SCATTER, Fold, Recv, Reduce, Round, Send, Space, algorithm

from .halving import folded, unfold

PARTIAL, ARRIVED = Space("partial"), Space("arrived")


def mirrored(place: int, places: int) -> Iterator[Round]:
    """Swap halves of the vector with the near partner, then halves of what is left with one twice as far, and so on.

    Who started on the side of the lower half is left with the block that has the bits of its place in mirror order.
    """
    start, stop, distance, source = 0, places, 1, IN
    while distance < places:
        middle = (start + stop) // 2
        low, high = range(start, middle), range(middle, stop)
        kept, given = (high, low) if place & distance else (low, high)
        peer, total = place ^ distance, OUT if len(kept) == 1 else PARTIAL
        yield Round(
            Send(peer, *map(source, given)), Recv(peer, *map(ARRIVED, kept)),
            *(Reduce(total(b), ARRIVED(b), source(b)) if place & distance else Reduce(total(b), source(b), ARRIVED(b))
              for b in kept))
        start, stop, distance, source = kept.start, kept.stop, 2 * distance, PARTIAL


def mirror(place: int, places: int) -> int:
    """A place with its bits in mirror order.

    Examples
    --------
    >>> [mirror(place, 8) for place in range(8)]
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    return sum(places >> 1 >> bit for bit in range(place.bit_length()) if place >> bit & 1)


@algorithm(
    REDUCE_SCATTER, "mirrored", family="halving", in_order=True,
    source="Träff, An improved algorithm for (non-commutative) reduce-scatter, Euro PVM/MPI 2005; MPICH")
def reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Recursive halving with near partners first, on blocks in an order that brings each home.

    Rounds: ``floor_log2(size)`` for a power of two, else ``floor_log2(size) + 2``.
    Sent: ``(size - 1) / size`` for a power of two, else ``1``.
    """
    fold = Fold(size)
    yield from folded(rank, fold, size, mirrored, lambda block: fold.members(mirror(block, fold.active)))
    yield from unfold(rank, fold, lambda leaning: [leaning])
