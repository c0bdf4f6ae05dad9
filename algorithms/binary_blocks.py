"""Binary blocks: any number of ranks as groups of powers of two, one for each binary digit, instead of folding it to one."""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import (
    ALL_REDUCE,
    IN,
    OUT,
    Copy,
    Fold,
    Recv,
    Reduce,
    Round,
    Send,
    Space,
    algorithm,
    in_result,
    named,
    on_group,
)

from .halving import double, halve

ARRIVED = Space("arrived")


def groups(size: int) -> list[range]:
    """Runs of ranks, the largest first, whose lengths are the powers of two in a number.

    Examples
    --------
    >>> groups(11)
    [range(0, 8), range(8, 10), range(10, 11)]
    """
    found, start = [], 0
    while start < size:
        found.append(range(start, start + Fold(size - start).active))
        start = found[-1].stop
    return found


@algorithm(
    ALL_REDUCE, "binary-blocks", family="halving", blocks=lambda size: Fold(size).active,
    source="Rabenseifner & Träff, Euro PVM/MPI 2004; Gloo, halving-doubling")
def all_reduce(rank: int, size: int) -> Iterator[Round]:
    """Reduce-scatter within groups, hand sums from the smallest group to the largest, results back, and gather them.

    A small group that follows a large one takes many messages: one to every rank of the large one.

    Rounds: ``2 * floor_log2(size)`` for a power of two, else at most ``2 * floor_log2(size) + 2 * active``.
    Sent: ``2 * (size - 1) / size`` for a power of two, else at most ``2``.
    """
    all_groups, blocks = groups(size), Fold(size).active
    level = next(i for i, run in enumerate(all_groups) if rank in run)
    run, place = all_groups[level], rank - all_groups[level].start

    def part(group: range, at: int) -> range:
        """The blocks in the care of a place of a group."""
        return range(at * blocks // len(group), (at + 1) * blocks // len(group))

    mine = part(run, place)
    smaller = [group[place * len(group) // len(run)] for group in all_groups[level + 1:level + 2]]
    larger = [(group[at], part(group, at)) for group in all_groups[:level][-1:]
              for at in range(place * len(group) // len(run), (place + 1) * len(group) // len(run))]
    if len(run) == 1:
        yield Round(*(Copy(OUT(b), IN(b)) for b in mine))
    yield from named("reduce-scatter", on_group(halve(place, len(run)), run, lambda b: part(run, b)))
    for peer in smaller:
        yield Round(Recv(peer, *map(ARRIVED, mine)), *(Reduce(OUT(b), OUT(b), ARRIVED(b)) for b in mine), phase="hand up")
    yield Round(*(Send(peer, *map(OUT, theirs)) for peer, theirs in larger), phase="hand up")
    yield Round(*(Recv(peer, *map(OUT, theirs)) for peer, theirs in larger), phase="hand down")
    yield from (Round(Send(peer, *map(OUT, mine)), phase="hand down") for peer in smaller)
    yield from named("all-gather", in_result(on_group(double(place, len(run)), run, lambda b: part(run, b))))
