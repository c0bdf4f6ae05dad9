"""Barriers: a rank goes on when it holds the tokens of all, that is when it has heard of everyone's coming.

A token counts however often it comes, so some of these algorithms would make no all-reduce.
"""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import BARRIER, IN, OUT, RADICES, Parameter, Recv, Reduce, Round, Send, Space, algorithm, named, then

from . import halving, linear, tree

PARTIAL, ARRIVED = Space("partial"), Space("arrived")
RADIX = Parameter(
    "radix", default=2, minimum=2, meaning="how many times as many ranks one has heard of after every round",
    best=lambda size, weight: 2, choices=RADICES)


@algorithm(
    BARRIER, "dissemination", family="halving", parameters=[RADIX],
    source="Hensgen, Finkel & Manber, IJPP 17(1), 1988; with a radix as in MPICH")
def dissemination(rank: int, size: int, radix: int) -> Iterator[Round]:
    """Tell the ranks at distance 1, 2, 4, … to the right all that one has heard of.

    Rounds: at most ``(radix - 1) * ceil_log(size, radix)``. Sent: at most ``(radix - 1) * ceil_log(size, radix)``.
    """
    distance, known = 1, IN
    while distance < size:
        ways = [i * distance for i in range(1, radix) if i * distance < size]
        arriving = [Space(f"arrived {i}")(0) for i, _ in enumerate(ways)]
        sends = [Send((rank + way) % size, known(0)) for way in ways]
        takes = [Recv((rank - way) % size, slot) for way, slot in zip(ways, arriving)]
        yield Round(*sends, *takes, *(Reduce(OUT(0), (OUT if i else known)(0), slot) for i, slot in enumerate(arriving)))
        distance, known = distance * radix, OUT


@algorithm(BARRIER, "doubling", family="halving", source="Open MPI coll/base, recursive doubling")
def doubling(rank: int, size: int) -> Iterator[Round]:
    """Swap tokens with partners at distance 1, 2, 4, …: an all-reduce of tokens.

    Rounds: ``floor_log2(size)`` for a power of two, else ``floor_log2(size) + 2``.
    Sent: ``floor_log2(size)`` for a power of two, else ``floor_log2(size) + 1``.
    """
    yield from halving.all_reduce_doubling(rank, size)


@algorithm(BARRIER, "binomial", family="tree", source="Open MPI coll/base, tree")
def binomial(rank: int, size: int) -> Iterator[Round]:
    """Gather tokens at rank 0 by a binomial tree, then release everyone by the same tree.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    yield from then(named("gather", tree.reduce(rank, size, 0)), named("release", tree.broadcast(rank, size, 0)))


@algorithm(BARRIER, "linear", family="direct", source="Open MPI coll/base, basic linear")
def central(rank: int, size: int) -> Iterator[Round]:
    """Everyone reports to rank 0, which then releases everyone.

    Rounds: ``2 * (size - 1)``. Sent: ``size - 1``.
    """
    yield from then(named("gather", linear.reduce(rank, size, 0)), named("release", linear.broadcast(rank, size, 0)))


@algorithm(BARRIER, "ring", family="ring", source="Open MPI coll/base, double ring")
def ring(rank: int, size: int) -> Iterator[Round]:
    """Pass a token twice around the ring: when it is back everyone has come, and the second time it says so.

    Rounds: ``2 * size - 1``. Sent: ``2``.
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    if rank == 0:
        yield Round(Send(right, IN(0)), phase="gather")
        yield Round(Recv(left, OUT(0)), phase="gather")
        yield Round(Send(right, OUT(0)), phase="release")
        return
    yield Round(Recv(left, ARRIVED(0)), Reduce(PARTIAL(0), ARRIVED(0), IN(0)), phase="gather")
    yield Round(Send(right, PARTIAL(0)), phase="gather")
    yield Round(Recv(left, OUT(0)), phase="release")
    if right:
        yield Round(Send(right, OUT(0)), phase="release")
