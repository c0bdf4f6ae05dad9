"""Dual-root, doubly pipelined all-reduce: partial sums go up two trees while results come down the same links."""

from __future__ import annotations

import math
from collections.abc import Iterator

from treering.core import ALL_REDUCE, IN, OUT, Parameter, Recv, Reduce, Round, Send, Space, algorithm

from .pipeline import post_order
from .ring import segments_of

PARTIAL, ARRIVED = Space("partial"), Space("arrived")

SEGMENTS = Parameter(
    "segments", default=8, minimum=1, meaning="slices of the payload that follow each other",
    best=lambda size, weight: math.sqrt(max(0, 4 * size.bit_length() - 10) * weight / 3))


def place(rank: int, size: int) -> tuple[int, int, list[int]]:
    """A rank's depth in the tree of its half of the ranks, its parent or for a root the other root, and its children."""
    half = size // 2
    start, members = (0, half) if rank < half else (half, size - half)
    parent, children = post_order(rank - start, members)
    if parent is None:
        return 0, size - 1 if rank < half else half - 1, [start + child for child in children]
    depth, _, _ = place(start + parent, size)
    return depth + 1, start + parent, [start + child for child in children]


@algorithm(
    ALL_REDUCE, "dual-root", family="tree", in_order=True, blocks=segments_of, parameters=[SEGMENTS],
    source="Träff, arXiv 2109.12626, 2021")
def all_reduce(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Swap segments with each child and then the parent, partial sums for results; the two roots swap partial sums.

    Each half of the ranks has a tree in which every subtree is a run of ranks that ends with its root, so order is kept. A
    child gets a result in the round after its parent did.

    Rounds: at most ``4 * floor_log2((size + 1) // 2) + 3 * segments - 2``. Sent: at most ``3``.
    """
    depth, parent, children = place(rank, size)
    for i in range(segments + depth + 1):
        more, mine = i < segments, IN(i)
        for child in reversed(children):
            arrived = Space(f"from {child}")(i)
            give = [Send(child, OUT(i - depth - 1))] if i > depth else []
            yield Round(*give, *((Recv(child, arrived), Reduce(PARTIAL(i), arrived, mine)) if more else ()))
            mine = PARTIAL(i)
        give = [Send(parent, mine)] if more else []
        if depth:
            yield Round(*give, *([Recv(parent, OUT(i - depth))] if depth <= i < depth + segments else []))
        elif more:
            sides = (ARRIVED(i), mine) if parent < rank else (mine, ARRIVED(i))
            yield Round(*give, Recv(parent, ARRIVED(i)), Reduce(OUT(i), *sides))
