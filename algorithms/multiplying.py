"""Recursive multiplying and dividing: groups of k ranks exchange at once, where doubling and halving have pairs.

The fewer rounds have more messages each, which pays on ranks that send several at a time. Numbers of ranks that are no power
of k are folded to one (MPICH), or the groups have different sizes (bcube). A radix of more than the number of ranks makes one
group of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    IN,
    OUT,
    RADICES,
    REDUCE_SCATTER,
    Copy,
    Fold,
    Parameter,
    Recv,
    Reduce,
    Round,
    Send,
    Space,
    algorithm,
    factors,
    named,
    per_rank,
    then,
    transpose,
)

from .halving import folded, gathered, unfold

SUM = Space("sum")
RECEXCH = "MPICH, recexch; UCC, knomial"


def best_radix(cost: Callable[[Fold, float], float]) -> Callable[[int, float], float]:
    """Choose the radix that costs least of the small ones, on ranks that send one message at a time."""
    return lambda size, weight: min(range(2, max(3, min(size + 1, 9))), key=lambda radix: cost(Fold(size, radix), weight))


def cost_of_whole(fold: Fold, weight: float) -> float:
    """The cost of exchanging whole vectors, in latencies."""
    messages = (fold.radix - 1) * fold.digits + fold.leaning
    return messages + fold.leaning + weight * messages


def cost_of_parts(fold: Fold, weight: float) -> float:
    """The cost of exchanging parts of the vector, in latencies, but for what does not depend on the radix."""
    return (fold.radix - 1) * fold.digits + 2 * fold.leaning + weight * fold.leaning


RADIX_OF_WHOLE = Parameter("radix", 4, 2, "how many ranks exchange with each other", best_radix(cost_of_whole), RADICES)
RADIX = Parameter("radix", 4, 2, "how many ranks exchange with each other", best_radix(cost_of_parts), RADICES)
BASE = Parameter("base", 4, 2, "how many ranks exchange with each other at most, if their number has such factors",
                 lambda size, weight: 2)


def peers(place: int, distance: int, radix: int) -> list[int]:
    """The other places of a group: those that differ in one digit, from the next one around."""
    digit = place // distance % radix
    return [place + ((digit + i) % radix - digit) * distance for i in range(1, radix)]


def exchange(place: int, places: int, radix: int) -> Iterator[Round]:
    """All-reduce on a power of a radix: swap whole vectors within groups, and reduce them in the order of ranks."""
    distance, source = 1, IN
    while distance < places:
        others = peers(place, distance, radix)
        values = {place: source(0)} | {peer: Space(f"arrived over {peer - place}")(0) for peer in others}
        left, *rest = (values[at] for at in sorted(values))
        sums: list[Reduce] = []
        for i, right in enumerate(rest):
            sums.append(Reduce(OUT(0) if i == len(rest) - 1 else SUM(0), left, right))
            left = SUM(0)
        yield Round(
            *(Send(peer, source(0)) for peer in others), *(Recv(peer, values[peer]) for peer in reversed(others)), *sums)
        distance, source = distance * radix, OUT


def multiply(place: int, places: int, radix: int) -> Iterator[Round]:
    """All-gather on a power of a radix: swap all that each has within groups, near ones first."""
    yield Round(Copy(OUT(place), IN(place)))
    distance = 1
    while distance < places:
        others = peers(place, distance, radix)
        run = {at: range(at // distance * distance, (at // distance + 1) * distance) for at in [place, *others]}
        yield Round(
            *(Send(peer, *map(OUT, run[place])) for peer in others),
            *(Recv(peer, *map(OUT, run[peer])) for peer in reversed(others)))
        distance *= radix


def multiply_far_first(place: int, radices: Iterable[int]) -> Iterator[Round]:
    """All-gather on a product of radices: swap all that each has within groups, far ones first and most between near ones."""
    radices = tuple(radices)
    places = period = prod(radices)
    yield Round(Copy(OUT(place), IN(place)))
    for radix in radices:
        others = peers(place, period // radix, radix)
        yield Round(
            *(Send(peer, *map(OUT, range(place % period, places, period))) for peer in others),
            *(Recv(peer, *map(OUT, range(peer % period, places, period))) for peer in reversed(others)))
        period //= radix


def fold_of(size: int, radix: int) -> Fold:
    """The fold to a power of a radix, or of the number of ranks if that is less."""
    return Fold(size, max(2, min(radix, size)))


@algorithm(ALL_REDUCE, "multiplying", family="halving", in_order=True, parameters=[RADIX_OF_WHOLE], source=RECEXCH)
def all_reduce_multiplying(rank: int, size: int, radix: int) -> Iterator[Round]:
    """Swap whole vectors within groups of ranks at distance 1, k, k², …

    Rounds: ``(min(radix, size) - 1) * digits(size, radix) + 2 * leaning(size, radix)``.
    Sent: ``(min(radix, size) - 1) * digits(size, radix) + leaning(size, radix)``.
    """
    fold = fold_of(size, radix)
    yield from folded(rank, fold, 1, lambda place, places: exchange(place, places, fold.radix))
    yield from unfold(rank, fold, lambda _: [0])


@algorithm(ALL_GATHER, "multiplying", family="halving", parameters=[RADIX], source=RECEXCH)
def all_gather(rank: int, size: int, radix: int) -> Iterator[Round]:
    """Swap all that each has within groups of ranks at distance 1, k, k², …

    Rounds: ``(min(radix, size) - 1) * digits(size, radix) + 2 * leaning(size, radix)``.
    Sent: at most ``(size - 1) / size * (2 * (leaning(size, radix) > 0) + 1 + leaning(size, radix))``.
    """
    fold = fold_of(size, radix)
    yield from gathered(rank, fold, lambda place, places: multiply(place, places, fold.radix))


@algorithm(REDUCE_SCATTER, "dividing", family="halving", parameters=[RADIX], source=RECEXCH)
def reduce_scatter(rank: int, size: int, radix: int) -> Iterator[Round]:
    """Swap the parts in each other's care within groups of ranks at distance …, k², k, 1: the all-gather, backwards.

    Rounds: ``(min(radix, size) - 1) * digits(size, radix) + 2 * leaning(size, radix)``.
    Sent: at most ``(size - 1 + leaning(size, radix)) / size``.
    """
    yield from transpose(rank, all_gather(rank, size, radix=radix))


@algorithm(
    ALL_REDUCE, "dividing-multiplying", family="halving", blocks=lambda size, radix: fold_of(size, radix).active,
    parameters=[RADIX], source="MPICH, k_reduce_scatter_allgather")
def all_reduce(rank: int, size: int, radix: int) -> Iterator[Round]:
    """Reduce-scatter by recursive dividing, then all-gather by recursive multiplying.

    Rounds: ``2 * (min(radix, size) - 1) * digits(size, radix) + 2 * leaning(size, radix)``.
    Sent: ``2 - 2 / min(radix, size) ** digits(size, radix) + leaning(size, radix)``.
    """
    fold = fold_of(size, radix)

    def core(place: int, places: int) -> Iterator[Round]:
        gather = multiply(place, places, fold.radix)
        return then(
            named("reduce-scatter", transpose(place, multiply(place, places, fold.radix))), named("all-gather", gather))

    yield from folded(rank, fold, fold.active, core)
    yield from unfold(rank, fold, lambda _: range(fold.active))


@algorithm(ALL_REDUCE, "bcube", family="halving", blocks=per_rank, parameters=[BASE], source="Gloo; Guo et al., BCube, 2009")
def all_reduce_cube(rank: int, size: int, base: int) -> Iterator[Round]:
    """Reduce-scatter and then all-gather within groups of ranks, one after the other in each direction of a cube.

    The cube has as many directions as the number of ranks has factors; no rank is left over.

    Rounds: ``2 * sum(factor - 1 for factor in factors(size, base))``. Sent: ``2 * (size - 1) / size``.
    """
    yield from then(
        named("reduce-scatter", transpose(rank, multiply_far_first(rank, factors(size, base)))),
        named("all-gather", multiply_far_first(rank, factors(size, base))))
