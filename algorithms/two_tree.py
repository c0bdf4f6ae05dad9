"""Two binary trees at once: a rank that has children in one has none in the other, so every link is busy both ways.

Members have labels from 1; 0 stands for the source above both trees. The first tree is in order: a label with its lowest set
bit at place h is h levels above the leaves. The second is its mirror image, in which odd labels have the children. Messages
have two colours, so that in no round a rank sends twice or receives twice; rounds take turns between the colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from treering.core import (
    ALL_REDUCE,
    BROADCAST,
    OUT,
    REDUCE,
    Parameter,
    Recv,
    Round,
    Send,
    Slot,
    algorithm,
    named,
    then,
    transpose,
)

SANDERS = "Sanders, Speck & Träff, Two-tree algorithms, Parallel Computing 35(12), 2009"

SEGMENTS = Parameter(
    "segments", default=4, minimum=1, meaning="slices of each half of the payload that follow each other",
    best=lambda size, weight: math.sqrt((size.bit_length() - 1) * weight / 2))


def halves_of(size: int, segments: int) -> int:
    """Twice as many blocks as segments: one half of the payload goes through each tree."""
    return 2 * segments


def parent(label: int, members: int) -> int:
    """The parent of a label in the first tree, 0 for its top."""
    bit = label & -label
    above = label ^ bit | bit << 1
    return above if above <= members else label ^ bit


def children(label: int, members: int) -> list[int]:
    """The children of a label in the first tree."""
    if label == 0:
        return [1 << members.bit_length() - 1]
    step = (label & -label) >> 1
    left = [label - step] if step else []
    while step and label + step > members:
        step >>= 1
    return [*left, label + step] if step else left


def mirrored(label: int, members: int) -> int:
    """The label in the second tree of a label in the first, and the other way round. An odd one out is the last in both."""
    even = members & ~1
    return even + 1 - label if 0 < label <= even else label


def colour(label: int, members: int) -> int:
    """The colour of the message from its parent that a label takes in the first tree; in the second it is the other one.

    A label and its mirror image have the same colour, as they must. So a leaf looks up that of an inner place; there
    the two children of a parent differ by what their side and the parent's own colour say.
    """
    even = members & ~1
    if label > even:  # the odd one out, beside the left child of the label before it
        return 1 - colour(children(even, members)[0], members) if even else 1
    if label % 2:
        label = even + 1 - label
    above = parent(label, members)
    return colour(above, members) ^ (above > label) ^ (even // 2 % 2) if above else 1


def first_round(label: int, members: int, tree: int) -> int:
    """The round in which a label takes the first segment in one of the trees: after its parent, at its colour's turn."""
    if label == 0:
        return -1
    soonest = first_round(parent(label, members), members, tree) + 1
    return soonest + (soonest + colour(label, members) + tree) % 2


def pour(label: int, members: int, segments: int, rank: Callable[[int], int]) -> Iterator[Round]:
    """Hand half of the segments down each tree, as one of the members or as the source, if that is a rank."""
    takes: list[tuple[int, int, int]] = []
    gives: list[tuple[int, int, int]] = []
    for tree in (0, 1):
        place = mirrored(label, members) if tree else label
        near = [(first_round(child, members, tree), child, gives) for child in children(place, members)]
        near += [(first_round(place, members, tree), parent(place, members), takes)] if place else []
        for start, other, messages in near:
            messages.append((start, tree, rank(mirrored(other, members) if tree else other)))

    def due(messages: list[tuple[int, int, int]], now: int) -> Iterator[tuple[int, Slot]]:
        for start, tree, peer in messages:
            segment, wait = divmod(now - start, 2)
            if not wait and 0 <= segment < segments and peer >= 0:
                yield peer, OUT(tree * segments + segment)

    for now in range(max(start for start, *_ in takes + gives) + 2 * segments):
        yield Round(*(Send(*message) for message in due(gives, now)), *(Recv(*message) for message in due(takes, now)))


@algorithm(BROADCAST, "two-tree", family="tree", blocks=halves_of, parameters=[SEGMENTS], source=SANDERS)
def broadcast(rank: int, size: int, root: int, segments: int) -> Iterator[Round]:
    """Hand one half of the payload down each of two binary trees over the others, in segments.

    Rounds: at most ``2 * (segments + floor_log2(size - 1))``. Sent: at most ``1``.
    """
    yield from pour((rank - root) % size, size - 1, segments, lambda label: (label + root) % size)


@algorithm(REDUCE, "two-tree", family="tree", blocks=halves_of, parameters=[SEGMENTS], source=SANDERS)
def reduce(rank: int, size: int, root: int, segments: int) -> Iterator[Round]:
    """Add up each half of the payload on its way to the root of one of two binary trees: the broadcast, transposed.

    Rounds: at most ``2 * (segments + floor_log2(size - 1))``. Sent: ``1``.
    """
    yield from transpose(rank, broadcast(rank, size, root, segments))


@algorithm(
    ALL_REDUCE, "two-tree", family="tree", in_order=True, blocks=halves_of, parameters=[SEGMENTS],
    source=f"{SANDERS}; NCCL, double binary tree")
def all_reduce(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Reduce each half of the payload to the top of one of two binary trees, then broadcast it down the same tree.

    An even number of ranks are all members, each tree with a top of its own; of an odd number rank 0 is above both. Either
    way both trees keep rank order.

    Rounds: at most ``4 * (segments + floor_log2(size))``. Sent: at most ``2``.
    """
    first = 1 - size % 2  # the label of rank 0
    down = list(pour(rank + first, size - size % 2, segments, lambda label: label - first))
    yield from then(named("reduce", transpose(rank, down)), named("broadcast", down))
