"""Compositions of collectives that are cheaper, or keep rank order, where neither part does so alone."""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import (
    ALL_REDUCE,
    BROADCAST,
    REDUCE,
    Parameter,
    Round,
    algorithm,
    in_result,
    named,
    on_group,
    per_rank,
    then,
)

from . import dissemination, linear, ring, tree

PHASES = Parameter(
    "segments", default=2, minimum=1, meaning="slices of every block that go around one after the other",
    best=lambda size, weight: 1, choices=(1,))


@algorithm(BROADCAST, "scatter-bruck", family="halving", blocks=per_rank, source="Barnett et al., 1994; here with Bruck")
def broadcast_bruck(rank: int, size: int, root: int) -> Iterator[Round]:
    """Scatter by a binomial tree, then all-gather by dissemination.

    Rounds: ``2 * ceil_log2(size)``. Sent: ``2 * (size - 1) / size``.
    """
    scattered = named("scatter", in_result(tree.scatter(rank, size, root)))
    yield from then(scattered, named("all-gather", dissemination.all_gather(rank, size, radix=2)))


@algorithm(BROADCAST, "scatter-linear", family="direct", blocks=per_rank, source="textbook")
def broadcast_two_shot(rank: int, size: int, root: int) -> Iterator[Round]:
    """The root sends every rank a part, which sends it on to all others.

    Rounds: at most ``2 * size - 1``. Sent: ``2 * (size - 1) / size``.
    """
    scattered = named("scatter", in_result(linear.scatter(rank, size, root)))
    yield from then(scattered, named("all-gather", linear.all_gather(rank, size)))


@algorithm(REDUCE, "scatter-linear", family="direct", in_order=True, blocks=per_rank, source="textbook")
def reduce_two_shot(rank: int, size: int, root: int) -> Iterator[Round]:
    """Everyone reduces a part in rank order, sent by all others, and sends it to the root.

    Rounds: ``2 * (size - 1)``. Sent: ``1``.
    """
    scattered = named("reduce-scatter", linear.reduce_scatter(rank, size))
    yield from then(scattered, named("gather", linear.gather(rank, size, root)))


@algorithm(ALL_REDUCE, "two-shot", family="direct", in_order=True, blocks=per_rank, source="TensorRT-LLM, two-shot all-reduce")
def all_reduce_two_shot(rank: int, size: int) -> Iterator[Round]:
    """Everyone reduces a part in rank order, sent by all others, and sends it to all others.

    Rounds: ``2 * (size - 1)``. Sent: ``2 * (size - 1) / size``.
    """
    scattered = named("reduce-scatter", linear.reduce_scatter(rank, size))
    yield from then(scattered, named("all-gather", linear.all_gather(rank, size)))


@algorithm(
    ALL_REDUCE, "chain", family="ring", in_order=True, blocks=ring.segments_of, parameters=[ring.SEGMENTS], source="textbook")
def all_reduce_chain(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Reduce along the chain to rank 0 in segments, then broadcast back along it in segments.

    Rounds: ``2 * (size - 2 + segments)``. Sent: at most ``2``.
    """
    up, down = ring.reduce(rank, size, 0, segments), ring.broadcast(rank, size, 0, segments)
    yield from then(named("reduce", up), named("broadcast", down))


@algorithm(
    ALL_REDUCE, "ring-segmented", family="ring", blocks=lambda size, segments: size * segments, parameters=[PHASES],
    source="Open MPI coll/base, segmented ring")
def all_reduce_segmented(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Reduce-scatter around the ring one slice of every block after the other, then all-gather whole blocks.

    Rounds: ``(segments + 1) * (size - 1)``. Sent: ``2 * (size - 1) / size``.
    """
    for phase in range(segments):
        scattered = on_group(ring.reduce_scatter(rank, size), blocks=lambda block: [block * segments + phase])  # noqa: B023
        yield from named("reduce-scatter", scattered)
    gathered = on_group(ring.all_gather(rank, size), blocks=lambda block: range(block * segments, (block + 1) * segments))
    yield from in_result(named("all-gather", gathered))
