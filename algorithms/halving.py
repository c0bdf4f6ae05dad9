"""Recursive halving and doubling: the distance to the partner, or the part of the payload, halves or doubles in every round.

The pure forms run on a power of two of ranks. Another number is folded to one: the ranks beyond the largest power of two
each lean on a neighbour, which acts for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    BROADCAST,
    GATHER,
    IN,
    OUT,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    Copy,
    Fold,
    Recv,
    Reduce,
    Round,
    Send,
    Space,
    algorithm,
    in_result,
    moved,
    named,
    on_group,
    reverse,
    then,
)

from . import ring, tree

PARTIAL, ARRIVED, FOLDED = Space("partial"), Space("arrived"), Space("folded")
RABENSEIFNER = "Rabenseifner, Optimization of collective reduction operations, ICCS 2004"
THAKUR = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"


def halve(place: int, places: int) -> Iterator[Round]:
    """Reduce-scatter on a power of two: swap with the partner the half that is in its care, then halve again."""
    start, stop, source = 0, places, IN
    while stop - start > 1:
        middle = (start + stop) // 2
        low, high = range(start, middle), range(middle, stop)
        upper = place >= middle
        kept, given = (high, low) if upper else (low, high)
        peer = place - len(low) if upper else place + len(low)
        total = OUT if len(kept) == 1 else PARTIAL
        yield Round(
            Send(peer, *map(source, given)), Recv(peer, *map(ARRIVED, kept)),
            *(Reduce(total(b), source(b), ARRIVED(b)) for b in kept))
        start, stop, source = kept.start, kept.stop, PARTIAL


def double(place: int, places: int) -> Iterator[Round]:
    """All-gather on a power of two: swap with the partner all that each has, twice as much in every round."""
    yield Round(Copy(OUT(place), IN(place)))
    distance = 1
    while distance < places:
        peer = place ^ distance
        mine, theirs = (range(q & -distance, (q & -distance) + distance) for q in (place, peer))
        yield Round(Send(peer, *map(OUT, mine)), Recv(peer, *map(OUT, theirs)))
        distance *= 2


def exchange(place: int, places: int) -> Iterator[Round]:
    """All-reduce on a power of two: swap whole vectors with partners twice as far in every round; the lower rank's is left."""
    distance, source = 1, IN
    while distance < places:
        peer = place ^ distance
        sides = (source(0), ARRIVED(0)) if place < peer else (ARRIVED(0), source(0))
        yield Round(Send(peer, source(0)), Recv(peer, ARRIVED(0)), Reduce(OUT(0), *sides))
        distance, source = 2 * distance, OUT


def folded(
    rank: int, fold: Fold, blocks: int, core: Callable[[int, int], Iterable[Round]],
    members: Callable[[int], Iterable[int]] | None = None,
) -> Iterator[Round]:
    """Run a reduction of a power of two of ranks on any number: those that lean give their vector to their neighbour first."""
    everything, place = range(blocks), fold.position(rank)
    first, *others = fold.members(place)
    if rank != first:
        yield Round(Send(first, *map(IN, everything)), phase="fold")
        return
    rounds = on_group(core(place, fold.active), fold.rank, members)
    if others:
        arrived = {other: Space(f"arrived from {other - first} after") if other - first > 1 else ARRIVED for other in others}
        yield Round(
            *(Recv(other, *map(arrived[other], everything)) for other in others),
            *(Reduce(FOLDED(b), (IN if other == others[0] else FOLDED)(b), arrived[other](b))
              for other in others for b in everything), phase="fold")
        rounds = moved(rounds, IN, FOLDED)
    yield from rounds


def unfold(rank: int, fold: Fold, blocks: Callable[[int], Iterable[int]]) -> Iterator[Round]:
    """Bring results to ranks that lean from the neighbour that acted for them: to each the blocks that it wants."""
    first, *others = fold.members(fold.position(rank))
    if rank != first:
        yield Round(Recv(first, *map(OUT, blocks(rank))), phase="unfold")
    elif others:
        yield Round(*(Send(other, *map(OUT, blocks(other))) for other in others), phase="unfold")


def gathered(rank: int, fold: Fold, core: Callable[[int, int], Iterable[Round]]) -> Iterator[Round]:
    """Run an all-gather of a power of two of ranks on any number: those that lean give a block first and get the others."""
    first, *others = fold.members(fold.position(rank))
    yield Round(Copy(OUT(rank), IN(rank)))
    if rank != first:
        yield Round(Send(first, OUT(rank)), phase="fold")
    else:
        yield Round(*(Recv(other, OUT(other)) for other in others), phase="fold")
        yield from in_result(on_group(core(fold.position(rank), fold.active), fold.rank, fold.members))
    yield from unfold(rank, fold, lambda other: [b for b in range(fold.size) if b != other])


@algorithm(ALL_REDUCE, "doubling", family="halving", in_order=True, source=THAKUR)
def all_reduce_doubling(rank: int, size: int) -> Iterator[Round]:
    """Recursive doubling: swap whole vectors with partners at distance 1, 2, 4, …

    Rounds: ``floor_log2(size)`` for a power of two, else ``floor_log2(size) + 2``.
    Sent: ``floor_log2(size)`` for a power of two, else ``floor_log2(size) + 1``.
    """
    fold = Fold(size)
    yield from folded(rank, fold, 1, exchange)
    yield from unfold(rank, fold, lambda _: [0])


@algorithm(REDUCE_SCATTER, "halving", family="halving", source=THAKUR)
def reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Recursive halving: swap halves of the vector, of what is left, and so on.

    Rounds: ``floor_log2(size)`` for a power of two, else ``floor_log2(size) + 2``.
    Sent: ``(size - 1) / size`` for a power of two, else ``1``.
    """
    fold = Fold(size)
    yield from folded(rank, fold, size, halve, fold.members)
    yield from unfold(rank, fold, lambda leaning: [leaning])


@algorithm(ALL_REDUCE, "halving-doubling", family="halving", blocks=lambda size: Fold(size).active, source=RABENSEIFNER)
def all_reduce(rank: int, size: int) -> Iterator[Round]:
    """Reduce-scatter by recursive halving, then all-gather by recursive doubling.

    Rounds: ``2 * floor_log2(size)`` for a power of two, else ``2 * floor_log2(size) + 2``.
    Sent: ``2 * (size - 1) / size`` for a power of two, else ``1 + 2 * (active - 1) / active``.
    """
    fold = Fold(size)
    yield from folded(
        rank, fold, fold.active, lambda *at: then(named("reduce-scatter", halve(*at)), named("all-gather", double(*at))))
    yield from unfold(rank, fold, lambda _: range(fold.active))


@algorithm(ALL_GATHER, "doubling", family="halving", source=THAKUR)
def all_gather(rank: int, size: int) -> Iterator[Round]:
    """Recursive doubling: swap all that each has with partners at distance 1, 2, 4, …

    Rounds: ``floor_log2(size)`` for a power of two, else ``floor_log2(size) + 2``.
    Sent: ``(size - 1) / size`` for a power of two, else at most ``3 * (size - 1) / size``.
    """
    yield from gathered(rank, Fold(size), double)


@algorithm(SCATTER, "halving", family="halving", source="textbook")
def scatter(rank: int, size: int, root: int) -> Iterator[Round]:
    """Halve the run of ranks: the first of a run sends the blocks of its upper half to the first of that half.

    Rounds: ``ceil_log2(size)``. Sent: ``(size - 1) / size``.
    """
    def blocks(start: int, stop: int) -> list[int]:
        return [(q + root) % size for q in range(start, stop)]

    place = (rank - root) % size
    start, stop = 0, size
    if place == 0:
        yield Round(Copy(OUT(rank), IN(rank)))
    while stop - start > 1:
        middle = (start + stop + 1) // 2
        if place == start:
            yield Round(Send((middle + root) % size, *map(OUT if place else IN, blocks(middle, stop))))
        elif place == middle:
            yield Round(Recv((start + root) % size, *map(OUT, blocks(middle, stop))))
        start, stop = (middle, stop) if place >= middle else (start, middle)


@algorithm(GATHER, "halving", family="halving", source="textbook")
def gather(rank: int, size: int, root: int) -> Iterator[Round]:
    """Double the run of ranks whose blocks are together: the scatter, backwards.

    Rounds: ``ceil_log2(size)``. Sent: ``(size // 2) / size``.
    """
    yield from reverse(scatter(rank, size, root))


@algorithm(REDUCE, "halving", family="halving", blocks=lambda size: size, source=RABENSEIFNER)
def reduce(rank: int, size: int, root: int) -> Iterator[Round]:
    """Reduce-scatter by recursive halving, then gather by a binomial tree.

    Rounds: ``2 * floor_log2(size)`` for a power of two, else ``2 * floor_log2(size) + 3``.
    Sent: ``(size - 1 + branch) / size`` for a power of two, else at most ``(size + branch) / size``.
    """
    yield from then(named("reduce-scatter", reduce_scatter(rank, size)), named("gather", tree.gather(rank, size, root)))


@algorithm(BROADCAST, "scatter-doubling", family="halving", blocks=lambda size: size, source=THAKUR)
def broadcast(rank: int, size: int, root: int) -> Iterator[Round]:
    """Scatter by recursive halving, then all-gather by recursive doubling.

    Rounds: ``2 * floor_log2(size)`` for a power of two, else at most ``2 * floor_log2(size) + 3``.
    Sent: ``2 * (size - 1) / size`` for a power of two, else at most ``4 * (size - 1) / size``.
    """
    yield from then(named("scatter", in_result(scatter(rank, size, root))), named("all-gather", all_gather(rank, size)))


@algorithm(BROADCAST, "scatter-ring", family="ring", blocks=lambda size: size, source="van de Geijn; Barnett et al., 1994")
def broadcast_long(rank: int, size: int, root: int) -> Iterator[Round]:
    """Scatter by a binomial tree, then all-gather around the ring.

    Rounds: ``size - 1 + ceil_log2(size)``.
    Sent: ``2 * (size - 1) / size``.
    """
    scattered = named("scatter", in_result(tree.scatter(rank, size, root)))
    yield from then(scattered, named("all-gather", ring.all_gather(rank, size)))


@algorithm(REDUCE, "scatter-ring", family="ring", blocks=lambda size: size, source="textbook")
def reduce_long(rank: int, size: int, root: int) -> Iterator[Round]:
    """Reduce-scatter around the ring, then gather by a binomial tree.

    Rounds: ``size - 1 + ceil_log2(size)``.
    Sent: ``(size - 1 + branch) / size``.
    """
    scattered = named("reduce-scatter", ring.reduce_scatter(rank, size))
    yield from then(scattered, named("gather", tree.gather(rank, size, root)))
