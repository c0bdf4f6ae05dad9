"""Exchange with one partner after the other: an all-gather between neighbours, and the orders of an all-to-all in pairs."""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import ALL_GATHER, ALL_TO_ALL, EVEN, IN, OUT, POWER_OF_TWO, Copy, Parameter, Recv, Round, Send, algorithm

WINDOW = Parameter("window", default=32, minimum=1, meaning="how many ranks to exchange with at once")
BRUCK = "Bruck, Ho, Kipnis, Upfal & Weathersby, IEEE TPDS 8(11), 1997"


@algorithm(ALL_GATHER, "neighbour-exchange", family="ring", requires=[EVEN], source="Chen et al., CLUSTER 2005; Open MPI")
def all_gather(rank: int, size: int) -> Iterator[Round]:
    """Swap with the two neighbours in turn, handing on the pair of blocks that came last.

    Rounds: ``size / 2``. Sent: ``(size - 1) / size``.
    """
    def pair(i: int) -> list[int]:
        """The blocks that this rank has got in round i; at first those of itself and its neighbour."""
        away = (i + 1) // 2 * (-1 if (i + rank) % 2 else 1)
        first = 2 * (rank // 2 + away) % size
        return [first, first + 1]

    peers = [rank + 1, rank - 1] if rank % 2 == 0 else [rank - 1, rank + 1]
    yield Round(Copy(OUT(rank), IN(rank)))
    yield Round(Send(peers[0], OUT(rank)), Recv(peers[0], OUT(peers[0])))
    for i in range(1, size // 2):
        peer = peers[i % 2] % size
        yield Round(Send(peer, *map(OUT, pair(i - 1))), Recv(peer, *map(OUT, pair(i))))


@algorithm(ALL_TO_ALL, "scattered", family="direct", parameters=[WINDOW], source="MPICH, scattered")
def all_to_all_scattered(rank: int, size: int, window: int) -> Iterator[Round]:
    """Send to everyone and receive from everyone, to and from no more ranks at once than the window allows.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    for first in range(1, size, window):
        pairs = [((rank + i) % size, (rank - i) % size) for i in range(first, min(first + window, size))]
        yield Round(
            *(Send(to, IN((rank, to))) for to, _ in pairs), *(Recv(back, OUT((back, rank))) for _, back in pairs))


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
