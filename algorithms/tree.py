"""Binomial and k-nomial trees, and the textbook's compositions of rooted collectives."""

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
    RADICES,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    Copy,
    Parameter,
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

PARTIAL = Space("partial")
BINOMIAL = "binomial tree, textbook; as in MPICH and Open MPI"
K_NOMIAL = "k-nomial tree, as in MPICH, Open MPI and UCC"

RADIX = Parameter(
    "radix", default=4, minimum=2, meaning="how many times as many ranks a level of the tree reaches",
    best=lambda size, weight: 2, choices=RADICES)


def span(place: int, size: int, radix: int) -> int:
    """The power of the radix that bounds the subtree below a place: that of its lowest digit, or for the root of any place."""
    power = 1
    while power < size and not place % (power * radix):
        power *= radix
    return power


def children(place: int, size: int, radix: int) -> list[list[int]]:
    """The children of a place in the tree rooted at 0, level by level, those with the largest subtree first."""
    power, levels = span(place, size, radix), []
    while power > 1:
        power //= radix
        levels.append([place + i * power for i in range(1, radix) if place + i * power < size])
    return levels


def parent(place: int, size: int, radix: int) -> int:
    """The place that a place hangs from: without its lowest digit."""
    return place - place % (span(place, size, radix) * radix)


@algorithm(BROADCAST, "k-nomial", family="tree", parameters=[RADIX], source=K_NOMIAL)
def broadcast_k(rank: int, size: int, root: int, radix: int) -> Iterator[Round]:
    """Whoever has the payload sends it to radix - 1 others, then these do, and so on.

    Rounds: at most ``(radix - 1) * ceil_log(size, radix)``. Sent: at most ``(radix - 1) * ceil_log(size, radix)``.
    """
    place = (rank - root) % size
    if place:
        yield Round(Recv((parent(place, size, radix) + root) % size, OUT(0)))
    for level in children(place, size, radix):
        yield Round(*(Send((child + root) % size, OUT(0)) for child in level))


@algorithm(BROADCAST, "binomial", family="tree", source=BINOMIAL)
def broadcast(rank: int, size: int, root: int) -> Iterator[Round]:
    """Whoever has the payload sends it on, so that those who have it double in every round.

    Rounds: ``ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    yield from broadcast_k(rank, size, root, radix=2)


@algorithm(SCATTER, "k-nomial", family="tree", parameters=[RADIX], source=K_NOMIAL)
def scatter_k(rank: int, size: int, root: int, radix: int) -> Iterator[Round]:
    """Send every child the blocks of its whole subtree, to radix - 1 of them at a time.

    Rounds: at most ``(radix - 1) * ceil_log(size, radix)``. Sent: ``(size - 1) / size``.
    """
    def subtree(place: int) -> list[int]:
        return [(q + root) % size for q in range(place, min(place + span(place, size, radix), size))]

    place = (rank - root) % size
    if place:
        yield Round(Recv((parent(place, size, radix) + root) % size, *map(OUT, subtree(place))))
    else:
        yield Round(Copy(OUT(rank), IN(rank)))
    for level in children(place, size, radix):
        yield Round(*(Send((child + root) % size, *map(OUT if place else IN, subtree(child))) for child in level))


@algorithm(SCATTER, "binomial", family="tree", source=BINOMIAL)
def scatter(rank: int, size: int, root: int) -> Iterator[Round]:
    """Send every child the blocks of its whole subtree.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    yield from scatter_k(rank, size, root, radix=2)


@algorithm(GATHER, "k-nomial", family="tree", parameters=[RADIX], source=K_NOMIAL)
def gather_k(rank: int, size: int, root: int, radix: int) -> Iterator[Round]:
    """Collect the blocks of whole subtrees, of radix - 1 at a time: the scatter, backwards.

    Rounds: at most ``(radix - 1) * ceil_log(size, radix)``. Sent: ``largest_branch(size, radix) / size``.
    """
    yield from reverse(scatter_k(rank, size, root, radix))


@algorithm(GATHER, "binomial", family="tree", source=BINOMIAL)
def gather(rank: int, size: int, root: int) -> Iterator[Round]:
    """Collect the blocks of whole subtrees: the scatter, backwards.

    Rounds: ``ceil_log2(size)``. Sent: ``branch / size``.
    """
    yield from reverse(scatter(rank, size, root))


@algorithm(REDUCE, "k-nomial", family="tree", parameters=[RADIX], source=K_NOMIAL)
def reduce_k(rank: int, size: int, root: int, radix: int) -> Iterator[Round]:
    """Add up the partial sums of the children, radix - 1 at a time, and send the sum to the parent.

    With root 0 ranks are combined in order; another root turns the tree, and with it the order.

    Rounds: at most ``(radix - 1) * ceil_log(size, radix)``. Sent: ``1``.
    """
    place = (rank - root) % size
    total = PARTIAL if place else OUT
    source = IN
    for level in reversed(children(place, size, radix)):
        arriving = {(child + root) % size: Space(f"arrived {i}")(0) for i, child in enumerate(level)}
        sums = []
        for slot in arriving.values():
            sums.append(Reduce(total(0), source(0), slot))
            source = total
        yield Round(*(Recv(child, slot) for child, slot in arriving.items()), *sums)
    if place:
        yield Round(Send((parent(place, size, radix) + root) % size, source(0)))


@algorithm(REDUCE, "binomial", family="tree", source=BINOMIAL)
def reduce(rank: int, size: int, root: int) -> Iterator[Round]:
    """Add up the partial sums of the children, smallest subtree first, and send the sum to the parent.

    With root 0 ranks are combined in order; another root turns the tree, and with it the order.

    Rounds: ``ceil_log2(size)``. Sent: ``1``.
    """
    yield from reduce_k(rank, size, root, radix=2)


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


@algorithm(ALL_REDUCE, "k-nomial", family="tree", in_order=True, parameters=[RADIX], source="MPICH, tree")
def all_reduce_k(rank: int, size: int, radix: int) -> Iterator[Round]:
    """Reduce to rank 0 by a k-nomial tree, then broadcast the result.

    Rounds: at most ``2 * (radix - 1) * ceil_log(size, radix)``. Sent: at most ``(radix - 1) * ceil_log(size, radix)``.
    """
    yield from then(named("reduce", reduce_k(rank, size, 0, radix)), named("broadcast", broadcast_k(rank, size, 0, radix)))


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
