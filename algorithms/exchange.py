"""Dissemination and pairwise exchange: Bruck's algorithms and the two orders of an all-to-all in pairs."""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import ALL_GATHER, ALL_TO_ALL, IN, OUT, POWER_OF_TWO, Copy, Recv, Round, Send, Slot, Space, algorithm

HELD = Space("held")
BRUCK = "Bruck, Ho, Kipnis, Upfal & Weathersby, IEEE TPDS 8(11), 1997"


@algorithm(ALL_GATHER, "bruck", family="halving", source=BRUCK)
def all_gather(rank: int, size: int) -> Iterator[Round]:
    """Send all that one has to the rank at distance 1, 2, 4, … on the left.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield Round(Copy(OUT(rank), IN(rank)))
    distance = 1
    while distance < size:
        right, left = (rank + distance) % size, (rank - distance) % size
        many = range(min(distance, size - distance))
        yield Round(
            Send(left, *(OUT((rank + i) % size) for i in many)), Recv(right, *(OUT((right + i) % size) for i in many)))
        distance *= 2


@algorithm(ALL_TO_ALL, "bruck", family="halving", source=BRUCK)
def all_to_all(rank: int, size: int) -> Iterator[Round]:
    """Send every block by the binary digits of its way: at distance 1 those with an odd way, then 2, 4, …

    Rounds: ``ceil_log2(size)``. Sent: ``sum(way.bit_count() for way in range(size)) / size``.
    """
    def passing(at: int, distance: int, walked: int) -> list[tuple[int, int]]:
        """The blocks, lying at a rank, that move by a distance; of their ways they have walked the digits below a mask."""
        ways = [way for way in range(size) if way & distance]
        return [((at - (way & walked)) % size, (at - (way & walked) + way) % size) for way in ways]

    def place(block: tuple[int, int]) -> Slot:
        return IN(block) if block[0] == rank else OUT(block) if block[1] == rank else HELD(block)

    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    distance = 1
    while distance < size:
        out = passing(rank, distance, distance - 1)
        arriving = passing(rank, distance, 2 * distance - 1)
        yield Round(
            Send((rank + distance) % size, *map(place, out)), Recv((rank - distance) % size, *map(place, arriving)))
        distance *= 2


@algorithm(ALL_TO_ALL, "pairwise", family="direct", source=BRUCK)
def all_to_all_shift(rank: int, size: int) -> Iterator[Round]:
    """In round i send to the rank i to the right and receive from the one i to the left.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    for i in range(1, size):
        to, back = (rank + i) % size, (rank - i) % size
        yield Round(Send(to, IN((rank, to))), Recv(back, OUT((back, rank))))


@algorithm(ALL_TO_ALL, "exchange", family="direct", requires=[POWER_OF_TWO], source="MPICH, pairwise for powers of two")
def all_to_all_swap(rank: int, size: int) -> Iterator[Round]:
    """In round i swap blocks with the rank whose number differs in the bits of i.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    for i in range(1, size):
        peer = rank ^ i
        yield Round(Send(peer, IN((rank, peer))), Recv(peer, OUT((peer, rank))))
