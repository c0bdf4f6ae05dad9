"""Dissemination: every rank sends to the same distances, so that what each has grows by the same factor in every round.

Bruck's algorithms start with near partners and end with far ones that get most; sparbit and PAT start far away with one block
and end with neighbours, where the many blocks go. All of them take any number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treering.core import (
    ALL_GATHER,
    ALL_TO_ALL,
    IN,
    OUT,
    RADICES,
    REDUCE_SCATTER,
    Copy,
    Parameter,
    Recv,
    Round,
    Send,
    Slot,
    Space,
    algorithm,
    transpose,
)

HELD = Space("held")
BRUCK = "Bruck, Ho, Kipnis, Upfal & Weathersby, IEEE TPDS 8(11), 1997"
PAT = "Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter operations at scale, arXiv 2506.20252; NCCL"


def best_radix(size: int, weight: float) -> float:
    """Choose the radix of Bruck's all-to-all: of the least radices with 1, 2, 3, … digits the one that costs least."""
    def cost(radix: int) -> float:
        rounds, sent, place = 0, 0.0, 1
        while place < size:
            rounds, sent, place = rounds + min(radix, -(-size // place)) - 1, sent + 1 - 1 / radix, place * radix
        return rounds + weight * sent

    return min({max(2, -int(-(size ** (1 / digits)) // 1)) for digits in range(1, size.bit_length() + 1)}, key=cost)


RADIX = Parameter("radix", default=2, minimum=2, meaning="by which factor the distance grows")
RADIX_TO_ALL = Parameter("radix", 2, 2, "the base in whose digits blocks walk their way", best_radix, RADICES)
AGGREGATION = Parameter(
    "aggregation", default=4, minimum=1, meaning="the most blocks that go in one message, rounded down to a power of two",
    best=lambda size, weight: size)


def powers(base: int, size: int) -> Iterator[int]:
    """1, base, base², … below a size."""
    power = 1
    while power < size:
        yield power
        power *= base


@algorithm(ALL_GATHER, "bruck", family="halving", parameters=[RADIX], source=BRUCK)
def all_gather(rank: int, size: int, radix: int) -> Iterator[Round]:
    """Send all that one has to the rank at distance 1, 2, 4, … on the left; or to more of them, if the radix is larger.

    Rounds: ``sum(min(radix, -(-size // d)) - 1 for d in powers(radix, size))``. Sent: ``(size - 1) / size``.
    """
    yield Round(Copy(OUT(rank), IN(rank)))
    for distance in powers(radix, size):
        messages: list[Send | Recv] = []
        for way in range(distance, min(radix * distance, size), distance):
            right, left, many = (rank + way) % size, (rank - way) % size, range(min(distance, size - way))
            messages.append(Send(left, *(OUT((rank + i) % size) for i in many)))
            messages.append(Recv(right, *(OUT((right + i) % size) for i in many)))
        yield Round(*messages)


@algorithm(ALL_TO_ALL, "bruck", family="halving", parameters=[RADIX_TO_ALL], source=BRUCK)
def all_to_all(rank: int, size: int, radix: int) -> Iterator[Round]:
    """Send every block by the digits of its way: at distance 1 those with an odd way, then 2, 4, … for radix 2.

    Rounds: ``sum(min(radix, -(-size // d)) - 1 for d in powers(radix, size))``.
    Sent: ``sum(way // d % radix > 0 for d in powers(radix, size) for way in range(size)) / size``.
    """
    def place(block: tuple[int, int]) -> Slot:
        return IN(block) if block[0] == rank else OUT(block) if block[1] == rank else HELD(block)

    def lying(walked: int, ways: Iterable[int]) -> list[Slot]:
        """The blocks of some ways that lie here when of their ways they have walked the digits below a power."""
        return [place(((rank - way % walked) % size, (rank - way % walked + way) % size)) for way in ways]

    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    for distance in powers(radix, size):
        messages: list[Send | Recv] = []
        for step in range(distance, min(radix * distance, size), distance):
            ways = [way for way in range(step, size) if way // distance % radix == step // distance]
            messages.append(Send((rank + step) % size, *lying(distance, ways)))
            messages.append(Recv((rank - step) % size, *lying(radix * distance, ways)))
        yield Round(*messages)


@algorithm(ALL_GATHER, "pat", family="halving", parameters=[AGGREGATION], source=PAT)
def all_gather_tree(rank: int, size: int, aggregation: int) -> Iterator[Round]:
    """Send every block down a binomial tree of distances, far ranks first, in messages of as many blocks as allowed.

    The trees of all blocks are alike, turned. Once a message has as many blocks as it may, these walk the rest of their trees
    depth first, one edge a round. Run backwards, as a reduce-scatter, that needs room for few partial sums.

    Rounds: ``min(floor_log2(aggregation), ceil_log2(size))
    + min(2 ** max(ceil_log2(size) - floor_log2(aggregation), 0), size) - 1``. Sent: ``(size - 1) / size``.
    """
    def edge(to: int, distance: int, period: int) -> Round:
        """The edge over a distance to a place in the tree, and to those a multiple of a period further."""
        right, left = (rank + distance) % size, (rank - distance) % size
        places = range(to, size, period)
        return Round(
            Send(right, *(OUT((right - place) % size) for place in places)),
            Recv(left, *(OUT((rank - place) % size) for place in places)))

    levels = (size - 1).bit_length()
    period = 1 << levels - min(aggregation.bit_length() - 1, levels)
    yield Round(Copy(OUT(rank), IN(rank)))
    for level in reversed(range(period.bit_length() - 1, levels)):
        yield edge(1 << level, 1 << level, 2 << level)
    for place in range(1, min(period, size)):
        yield edge(place, place & -place, period)


@algorithm(REDUCE_SCATTER, "pat", family="halving", parameters=[AGGREGATION], source=PAT)
def reduce_scatter_tree(rank: int, size: int, aggregation: int) -> Iterator[Round]:
    """Add up every block along the tree of the all-gather, backwards.

    Rounds: ``min(floor_log2(aggregation), ceil_log2(size))
    + min(2 ** max(ceil_log2(size) - floor_log2(aggregation), 0), size) - 1``. Sent: ``(size - 1) / size``.
    """
    yield from transpose(rank, all_gather_tree(rank, size, aggregation=aggregation))


@algorithm(ALL_GATHER, "sparbit", family="halving", source="Loch & Koslovski, Sparbit, 2021; Open MPI")
def all_gather_near(rank: int, size: int) -> Iterator[Round]:
    """Send one block to half the circle away, then twice as many to a quarter, and so on, the most to the neighbour.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield from all_gather_tree(rank, size, aggregation=size)
