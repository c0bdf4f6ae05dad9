"""Rings and chains: every rank talks to its two neighbours only."""

from __future__ import annotations

import math
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
    Parameter,
    Recv,
    Reduce,
    Round,
    Send,
    Space,
    algorithm,
    named,
    per_rank,
    reverse,
    then,
)

PARTIAL, ARRIVED, TRANSIT = Space("partial"), Space("arrived"), Space("transit")

SEGMENTS = Parameter(
    "segments", default=8, minimum=1, meaning="slices of the payload that follow each other",
    best=lambda size, weight: math.sqrt((size - 2) * weight))
PATARASUK = "Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009"


def segments_of(size: int, segments: int, **others: int) -> int:
    """As many blocks as segments."""
    return segments


@algorithm(ALL_GATHER, "ring", family="ring", source=PATARASUK)
def all_gather(rank: int, size: int) -> Iterator[Round]:
    """Pass every block once around the ring.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    yield Round(Copy(OUT(rank), IN(rank)))
    for i in range(size - 1):
        yield Round(Send(right, OUT((rank - i) % size)), Recv(left, OUT((rank - i - 1) % size)))


@algorithm(REDUCE_SCATTER, "ring", family="ring", source=PATARASUK)
def reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Pass the partial sum of every block once around the ring, each rank adding its own, until it is home.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    for i in range(size - 1):
        sent, got = (rank - i - 1) % size, (rank - i - 2) % size
        source = PARTIAL(sent) if i else IN(sent)
        into = OUT(got) if got == rank else PARTIAL(got)
        yield Round(Send(right, source), Recv(left, PARTIAL(got)), Reduce(into, PARTIAL(got), IN(got)))


@algorithm(ALL_REDUCE, "ring", family="ring", blocks=per_rank, source=PATARASUK)
def all_reduce(rank: int, size: int) -> Iterator[Round]:
    """Reduce-scatter around the ring, then all-gather around the ring.

    Rounds: ``2 * (size - 1)``. Sent: ``2 * (size - 1) / size``.
    """
    yield from then(named("reduce-scatter", reduce_scatter(rank, size)), named("all-gather", all_gather(rank, size)))


@algorithm(ALL_TO_ALL, "ring", family="ring", source="textbook")
def all_to_all(rank: int, size: int) -> Iterator[Round]:
    """Pass bundles around the ring; every rank takes out what is for it and hands on the rest.

    Rounds: ``size - 1``. Sent: ``(size - 1) / 2``.
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    for i in range(size - 1):
        ours, theirs = (rank - i) % size, (rank - i - 1) % size
        onward = [(ours, (ours + j) % size) for j in range(i + 1, size)]
        home, *rest = [(theirs, (theirs + j) % size) for j in range(i + 1, size)]
        yield Round(
            Send(right, *map(TRANSIT if i else IN, onward)),
            Recv(left, OUT(home), *map(TRANSIT, rest)))


@algorithm(BROADCAST, "chain", family="ring", blocks=segments_of, parameters=[SEGMENTS], source="pipelined chain, textbook")
def broadcast(rank: int, size: int, root: int, segments: int) -> Iterator[Round]:
    """Pass the payload from neighbour to neighbour in segments: one is handed on while the next arrives.

    Rounds: ``size - 2 + segments``. Sent: ``1``.
    """
    place = (rank - root) % size
    right, left = (rank + 1) % size, (rank - 1) % size
    behind = 1 if place else 0  # what has just arrived is handed on in the round after
    for i in range(segments + behind):
        receive = [Recv(left, OUT(i))] if place and i < segments else []
        send = [Send(right, OUT(i - behind))] if place < size - 1 and i >= behind else []
        yield Round(*send, *receive)


@algorithm(REDUCE, "chain", family="ring", blocks=segments_of, parameters=[SEGMENTS], source="pipelined chain, textbook")
def reduce(rank: int, size: int, root: int, segments: int) -> Iterator[Round]:
    """Pass partial sums from neighbour to neighbour towards the root in segments, each rank adding its own.

    Rounds: ``size - 2 + segments``. Sent: ``1``.
    """
    place = (rank - root) % size
    right, left = (rank + 1) % size, (rank - 1) % size
    first = place == size - 1
    total = OUT if place == 0 else PARTIAL
    behind = 0 if first else 1
    for i in range(segments + behind):
        more = not first and i < segments
        receive = [Recv(right, ARRIVED(i))] if more else []
        add = [Reduce(total(i), IN(i), ARRIVED(i))] if more else []
        send = [Send(left, (IN if first else total)(i - behind))] if place and i >= behind else []
        yield Round(*send, *receive, *add)


@algorithm(SCATTER, "ring", family="ring", source="textbook")
def scatter(rank: int, size: int, root: int) -> Iterator[Round]:
    """Hand blocks along the ring from the root, the one with the longest way first.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    place = (rank - root) % size
    right, left = (rank + 1) % size, (rank - 1) % size
    passing = [(root + q) % size for q in range(size - 1, place, -1)]
    if place == 0:
        yield Round(Copy(OUT(rank), IN(rank)))
        for block in passing:
            yield Round(Send(right, IN(block)))
    else:
        for before, block in zip([None, *passing], [*passing, rank]):
            send = [] if before is None else [Send(right, OUT(before))]
            yield Round(*send, Recv(left, OUT(block)))


@algorithm(GATHER, "ring", family="ring", source="textbook")
def gather(rank: int, size: int, root: int) -> Iterator[Round]:
    """Hand blocks along the ring towards the root: the scatter, backwards.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    yield from reverse(scatter(rank, size, root))
