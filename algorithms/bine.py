"""Bine trees: binomial trees whose distances alternate in direction, so that messages stay closer to home.

In step s, which counts down, an even place has its partner σ(s) to the right and an odd one as far to the left, where σ is 1,
-1, 3, -5, 11, …: sums of powers of -2. Distances are a third shorter than those of a binomial tree, which eases networks whose
links are fewer towards the top.
"""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import (
    BROADCAST,
    GATHER,
    IN,
    OUT,
    POWER_OF_TWO,
    REDUCE,
    SCATTER,
    Copy,
    Recv,
    Round,
    Send,
    algorithm,
    reverse,
    transpose,
)

SENSI = "De Sensi et al., Bine trees, arXiv 2508.17311, 2025"


def partner(place: int, step: int, size: int) -> int:
    """The place with which a place talks in a step."""
    distance: int = (1 - (-2) ** (step + 1)) // 3
    return (place + (-distance if place % 2 else distance)) % size


def joins(place: int, size: int) -> int:
    """The step in which a place joins the tree: its digits to base -2 say it, by how many equal ones they end with.

    The root has its first child in step ``log2(size) - 1`` and joins, as it were, one step before.
    """
    if place == 0:
        return size.bit_length() - 1
    even_digits = int("10" * size.bit_length(), 2)
    negabinary = (place + even_digits ^ even_digits) % size
    ending = negabinary ^ negabinary >> 1 | size >> 1  # its lowest set bit is where digits change
    return (ending & -ending).bit_length() - 1


def children(place: int, size: int) -> list[int]:
    """The children of a place, the one with the largest subtree first."""
    return [partner(place, step, size) for step in reversed(range(joins(place, size)))]


def subtree(place: int, size: int) -> Iterator[int]:
    """A place and all below it."""
    yield place
    for child in children(place, size):
        yield from subtree(child, size)


@algorithm(BROADCAST, "bine", family="tree", requires=[POWER_OF_TWO], source=SENSI)
def broadcast(rank: int, size: int, root: int) -> Iterator[Round]:
    """Whoever has the payload sends it on, by distances that halve and change direction.

    Rounds: ``ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    place = (rank - root) % size
    if place:
        yield Round(Recv((partner(place, joins(place, size), size) + root) % size, OUT(0)))
    for child in children(place, size):
        yield Round(Send((child + root) % size, OUT(0)))


@algorithm(REDUCE, "bine", family="tree", requires=[POWER_OF_TWO], source=SENSI)
def reduce(rank: int, size: int, root: int) -> Iterator[Round]:
    """Add up the partial sums of the children, smallest subtree first: the broadcast, transposed.

    Rounds: ``ceil_log2(size)``. Sent: ``1``.
    """
    yield from transpose(rank, broadcast(rank, size, root))


@algorithm(SCATTER, "bine", family="tree", requires=[POWER_OF_TWO], source=SENSI)
def scatter(rank: int, size: int, root: int) -> Iterator[Round]:
    """Send every child the blocks of its whole subtree, by distances that halve and change direction.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    def blocks(place: int) -> list[int]:
        return [(q + root) % size for q in subtree(place, size)]

    place = (rank - root) % size
    if place:
        parent = (partner(place, joins(place, size), size) + root) % size
        yield Round(Recv(parent, *map(OUT, blocks(place))))
    else:
        yield Round(Copy(OUT(rank), IN(rank)))
    for child in children(place, size):
        yield Round(Send((child + root) % size, *map(OUT if place else IN, blocks(child))))


@algorithm(GATHER, "bine", family="tree", requires=[POWER_OF_TWO], source=SENSI)
def gather(rank: int, size: int, root: int) -> Iterator[Round]:
    """Collect the blocks of whole subtrees: the scatter, backwards.

    Rounds: ``ceil_log2(size)``. Sent: ``1 / 2``.
    """
    yield from reverse(scatter(rank, size, root))
