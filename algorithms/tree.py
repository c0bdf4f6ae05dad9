"""Binomial trees, and the textbook's compositions of rooted collectives."""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    GATHER,
    IN,
    OUT,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    Copy,
    Recv,
    Reduce,
    Round,
    Send,
    Space,
    algorithm,
    named,
    on_group,
    reverse,
    then,
)

PARTIAL, ARRIVED = Space("partial"), Space("arrived")
BINOMIAL = "binomial tree, textbook; as in MPICH and Open MPI"


def span(place: int, size: int) -> int:
    """The power of two that bounds the subtree below a place: its lowest set bit, or for the root more than any place."""
    return place & -place or 1 << (size - 1).bit_length()


def children(place: int, size: int) -> list[int]:
    """The children of a place in the tree rooted at 0, those with the largest subtree first."""
    below = span(place, size).bit_length() - 1
    return [place + (1 << k) for k in reversed(range(below)) if place + (1 << k) < size]


def parent(place: int) -> int:
    """The place that a place hangs from: without its lowest set bit."""
    return place & (place - 1)


@algorithm(BROADCAST, "binomial", family="tree", source=BINOMIAL)
def broadcast(rank: int, size: int, root: int) -> Iterator[Round]:
    """Whoever has the payload sends it on, so that those who have it double in every round.

    Rounds: ``ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    place = (rank - root) % size
    if place:
        yield Round(Recv((parent(place) + root) % size, OUT(0)))
    for child in children(place, size):
        yield Round(Send((child + root) % size, OUT(0)))


@algorithm(SCATTER, "binomial", family="tree", source=BINOMIAL)
def scatter(rank: int, size: int, root: int) -> Iterator[Round]:
    """Send every child the blocks of its whole subtree.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    def subtree(place: int) -> list[int]:
        return [(q + root) % size for q in range(place, min(place + span(place, size), size))]

    place = (rank - root) % size
    if place:
        yield Round(Recv((parent(place) + root) % size, *map(OUT, subtree(place))))
    else:
        yield Round(Copy(OUT(rank), IN(rank)))
    for child in children(place, size):
        yield Round(Send((child + root) % size, *map(OUT if place else IN, subtree(child))))


@algorithm(GATHER, "binomial", family="tree", source=BINOMIAL)
def gather(rank: int, size: int, root: int) -> Iterator[Round]:
    """Collect the blocks of whole subtrees: the scatter, backwards.

    Rounds: ``ceil_log2(size)``. Sent: ``branch / size``.
    """
    yield from reverse(scatter(rank, size, root))


@algorithm(REDUCE, "binomial", family="tree", source=BINOMIAL)
def reduce(rank: int, size: int, root: int) -> Iterator[Round]:
    """Add up the partial sums of the children, smallest subtree first, and send the sum to the parent.

    With root 0 ranks are combined in order; another root turns the tree, and with it the order.

    Rounds: ``ceil_log2(size)``. Sent: ``1``.
    """
    place = (rank - root) % size
    total = PARTIAL if place else OUT
    source = IN
    for child in reversed(children(place, size)):
        yield Round(Recv((child + root) % size, ARRIVED(0)), Reduce(total(0), source(0), ARRIVED(0)))
        source = total
    if place:
        yield Round(Send((parent(place) + root) % size, source(0)))


@algorithm(REDUCE, "binomial-in-order", family="tree", in_order=True, source="MPICH, for operators that do not commute")
def reduce_in_order(rank: int, size: int, root: int) -> Iterator[Round]:
    """Reduce to rank 0, where the tree keeps rank order, then send the result to the root.

    Rounds: ``ceil_log2(size) + (root > 0)``. Sent: ``1``.
    """
    yield from reduce(rank, size, 0)
    if rank == 0 != root:
        yield Round(Send(root, OUT(0)))
    elif rank == root != 0:
        yield Round(Recv(0, OUT(0)))


@algorithm(ALL_GATHER, "gather-broadcast", family="tree", source="textbook")
def all_gather(rank: int, size: int) -> Iterator[Round]:
    """Gather at rank 0, then broadcast all of it.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    everything = on_group(broadcast(rank, size, 0), blocks=lambda _: range(size))
    yield from then(named("gather", gather(rank, size, 0)), named("broadcast", everything))


@algorithm(ALL_REDUCE, "reduce-broadcast", family="tree", in_order=True, source="textbook")
def all_reduce(rank: int, size: int) -> Iterator[Round]:
    """Reduce to rank 0, then broadcast the result.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    yield from then(named("reduce", reduce(rank, size, 0)), named("broadcast", broadcast(rank, size, 0)))


@algorithm(REDUCE_SCATTER, "reduce-then-scatter", family="tree", in_order=True, source="textbook")
def reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Reduce everything to rank 0, then scatter the result.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``1 + (branch - 1) / size``.
    """
    everything = on_group(reduce(rank, size, 0), blocks=lambda _: range(size))
    yield from then(named("reduce", everything), named("scatter", scatter(rank, size, 0)))


@algorithm(ALL_TO_ALL, "gather-scatter", family="tree", source="textbook")
def all_to_all(rank: int, size: int) -> Iterator[Round]:
    """Gather everything of everyone at rank 0, then scatter to each what is for it.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``size - 1``.
    """
    given = on_group(gather(rank, size, 0), blocks=lambda source: [(source, d) for d in range(size)])
    wanted = on_group(scatter(rank, size, 0), blocks=lambda target: [(s, target) for s in range(size)])
    yield from then(named("gather", given), named("scatter", wanted))
