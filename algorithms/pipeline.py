"""Pipelined trees: the payload goes down, or partial sums come up, in segments that follow each other.

Places are ranks counted from the root. The k-ary tree is Open MPI's: the place v of a level that is w places wide has the
children v + w, v + 2w, …, so that with two children the odd places are below the first and the even ones below the second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from treering.core import (
    ALL_REDUCE,
    BROADCAST,
    IN,
    OUT,
    REDUCE,
    Parameter,
    Recv,
    Reduce,
    Round,
    Send,
    Slot,
    Space,
    algorithm,
    named,
    then,
)

from .ring import segments_of

PARTIAL = Space("partial")


def segments_best(halves: int) -> Parameter:
    """The number of segments, of each of so many parts of the payload, that suits a binary tree."""
    return Parameter(
        "segments", default=8, minimum=1, meaning="slices of the payload that follow each other",
        best=lambda size, weight: math.sqrt(max(0, size.bit_length() - 2) * weight / halves))


SEGMENTS = segments_best(1)
FANOUT = Parameter("fanout", default=2, minimum=2, meaning="children of a place in the tree")
CHAINS = Parameter("fanout", default=4, minimum=1, meaning="chains that start at the root")
CHAIN_SEGMENTS = Parameter(
    "segments", default=8, minimum=1, meaning="slices of the payload that follow each other",
    best=lambda size, weight: math.sqrt(max(0, (size - 1) // 4 - 1) * weight / 4))


def k_ary(place: int, size: int, fanout: int) -> tuple[int | None, list[int]]:
    """The parent and the children of a place in the k-ary tree."""
    first, width, above = 0, 1, 0
    while place >= first + width:
        first, width, above = first + width, width * fanout, first
    parent = above + (place - first) % (width // fanout) if place else None
    return parent, [child for child in range(place + width, place + fanout * width + 1, width) if child < size]


def chains(place: int, size: int, fanout: int) -> tuple[int | None, list[int]]:
    """The parent and the child of a place in one of several chains of about equal length, and all their heads for the root."""
    shortest, longer = divmod(size - 1, fanout)
    heads = [1 + i * shortest + min(i, longer) for i in range(min(fanout, size - 1))]
    if place == 0:
        return None, heads
    last = place == size - 1 or place + 1 in heads
    return 0 if place in heads else place - 1, [] if last else [place + 1]


def from_root(rank: int, size: int, root: int, tree: tuple[int | None, list[int]]) -> tuple[int | None, list[int]]:
    """The same tree with ranks in place of places."""
    parent, children = tree
    return None if parent is None else (parent + root) % size, [(child + root) % size for child in children]


def pour(parent: int | None, children: Sequence[int], blocks: Sequence[int]) -> Iterator[Round]:
    """Hand blocks down a tree one after the other: each goes to the children while the next arrives."""
    behind = 0 if parent is None else 1
    for i in range(len(blocks) + behind):
        receive = [Recv(parent, OUT(blocks[i]))] if parent is not None and i < len(blocks) else []
        send = [Send(child, OUT(blocks[i - behind])) for child in children if i >= behind]
        yield Round(*send, *receive)


def collect(parent: int | None, lower: Sequence[int], upper: Sequence[int], segments: int) -> Iterator[Round]:
    """Add up what comes from below, one segment after the other: each goes to the parent while the next arrives.

    The ranks of the subtrees of ``lower`` come before the own in the order of operands, those of ``upper`` after it.
    """
    total = OUT if parent is None else PARTIAL
    children = [*lower, *upper]

    def arrived(child: int, segment: int) -> Slot:
        return Space(f"from {child}")(segment)

    def sums(segment: int) -> Iterator[Reduce]:
        mine = IN(segment)
        for child in [*upper, *reversed(lower)]:
            theirs = arrived(child, segment)
            yield Reduce(total(segment), *((mine, theirs) if child in upper else (theirs, mine)))
            mine = total(segment)

    behind = 1 if children else 0
    for i in range(segments + behind):
        more = i < segments and children
        send = [Send(parent, (total if children else IN)(i - behind))] if parent is not None and i >= behind else []
        yield Round(*send, *(Recv(child, arrived(child, i)) for child in children if more), *(sums(i) if more else ()))


@algorithm(
    BROADCAST, "k-ary", family="tree", blocks=segments_of, parameters=[SEGMENTS, FANOUT],
    source="Open MPI coll/base, binary tree; MPICH, kary")
def broadcast(rank: int, size: int, root: int, segments: int, fanout: int) -> Iterator[Round]:
    """Hand segments down a tree in which every rank has some children, two by default.

    Rounds: at most ``fanout * (levels(size, fanout) + segments - 1)``. Sent: ``min(fanout, size - 1)``.
    """
    tree = from_root(rank, size, root, k_ary((rank - root) % size, size, fanout))
    yield from pour(*tree, range(segments))


@algorithm(
    REDUCE, "k-ary", family="tree", blocks=segments_of, parameters=[SEGMENTS, FANOUT],
    source="Open MPI coll/base, binary tree; MPICH, kary")
def reduce(rank: int, size: int, root: int, segments: int, fanout: int) -> Iterator[Round]:
    """Add up segments on their way to the root of a tree in which every rank has some children, two by default.

    Rounds: at most ``fanout * (levels(size, fanout) + segments - 1)``. Sent: ``1``.
    """
    parent, children = from_root(rank, size, root, k_ary((rank - root) % size, size, fanout))
    yield from collect(parent, [], children, segments)


@algorithm(
    ALL_REDUCE, "k-ary", family="tree", blocks=segments_of, parameters=[SEGMENTS, FANOUT],
    source="MPICH, tree, pipelined")
def all_reduce(rank: int, size: int, segments: int, fanout: int) -> Iterator[Round]:
    """Reduce to rank 0 in segments, then broadcast the result in segments.

    Rounds: at most ``2 * fanout * (levels(size, fanout) + segments - 1)``. Sent: at most ``fanout + 1``.
    """
    up, down = reduce(rank, size, 0, segments, fanout), broadcast(rank, size, 0, segments, fanout)
    yield from then(named("reduce", up), named("broadcast", down))


@algorithm(
    BROADCAST, "k-chain", family="ring", blocks=segments_of, parameters=[CHAIN_SEGMENTS, CHAINS],
    source="Open MPI coll/base, chain with a fan-out")
def broadcast_chains(rank: int, size: int, root: int, segments: int, fanout: int) -> Iterator[Round]:
    """Hand segments along several chains that start at the root.

    Rounds: ``min(fanout, size - 1) * segments - 1 + (size - 1) // min(fanout, size - 1)``. Sent: ``min(fanout, size - 1)``.
    """
    tree = from_root(rank, size, root, chains((rank - root) % size, size, fanout))
    yield from pour(*tree, range(segments))


@algorithm(
    REDUCE, "k-chain", family="ring", blocks=segments_of, parameters=[CHAIN_SEGMENTS, CHAINS],
    source="Open MPI coll/base, chain with a fan-out")
def reduce_chains(rank: int, size: int, root: int, segments: int, fanout: int) -> Iterator[Round]:
    """Add up segments along several chains that end at the root.

    Rounds: at most ``min(fanout, size - 1) * segments + (size - 1) // min(fanout, size - 1)``. Sent: ``1``.
    """
    parent, children = from_root(rank, size, root, chains((rank - root) % size, size, fanout))
    yield from collect(parent, [], children, segments)


@algorithm(
    BROADCAST, "split-binary", family="tree", blocks=lambda size, segments: 2 * segments, parameters=[segments_best(2)],
    source="Open MPI coll/base, split binary tree")
def broadcast_split(rank: int, size: int, root: int, segments: int) -> Iterator[Round]:
    """Hand one half of the payload down the left subtree and one down the right, then swap halves between the two.

    Rounds: at most ``2 * (levels(size, 2) + segments - 1) + 1``. Sent: at most ``3 / 2``.
    """
    left, right = range(segments), range(segments, 2 * segments)
    place = (rank - root) % size
    parent, children = from_root(rank, size, root, k_ary(place, size, 2))
    alone = size - 1 if size % 2 == 0 else None  # the place that has nobody to swap with, so that the root serves it
    if place == 0:
        for pair in zip(left, right):
            yield Round(*(Send(child, OUT(segment)) for child, segment in zip(children, pair)), phase="halves")
        if alone:
            yield Round(Send((root + alone) % size, *map(OUT, right)), phase="swap")
        return
    mine, other, peer = (left, right, rank + 1) if place % 2 else (right, left, rank - 1)
    yield from named("halves", pour(parent, children, mine))
    if place == alone:
        yield Round(Recv(root, *map(OUT, other)), phase="swap")
    else:
        yield Round(Send(peer % size, *map(OUT, mine)), Recv(peer % size, *map(OUT, other)), phase="swap")


def post_order(rank: int, size: int) -> tuple[int | None, list[int]]:
    """The parent and the children of a rank in the binary tree whose root is the last rank, with halves of the rest below it.

    Every subtree is a run of ranks that ends with its own root.
    """
    start, stop, parent = 0, size, None
    while rank != stop - 1:
        parent, middle = stop - 1, start + (stop - start) // 2
        start, stop = (start, middle) if rank < middle else (middle, stop - 1)
    middle = start + (stop - start) // 2
    return parent, sorted({child for child in (middle - 1, rank - 1) if start <= child < rank})


@algorithm(
    REDUCE, "in-order-binary", family="tree", in_order=True, blocks=segments_of, parameters=[SEGMENTS],
    source="Open MPI coll/base, in-order binary tree")
def reduce_in_order(rank: int, size: int, root: int, segments: int) -> Iterator[Round]:
    """Add up segments to the last rank, by a tree that keeps rank order, then send the result to the root.

    Rounds: at most ``2 * (floor_log2(size) + segments - 1) + (root < size - 1)``. Sent: ``1``.
    """
    parent, children = post_order(rank, size)
    yield from named("reduce", collect(parent, children, [], segments))
    if rank == size - 1 != root:
        yield Round(Send(root, *map(OUT, range(segments))), phase="forward")
    elif rank == root != size - 1:
        yield Round(Recv(size - 1, *map(OUT, range(segments))), phase="forward")
