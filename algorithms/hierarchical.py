"""Hierarchical algorithms: within nodes first, then between them. All are compositions of algorithms for flat groups.

Ranks stand on nodes one after the other, ``node`` of them on each, and the rest on the last. Nodes of different sizes cut the
payload at different places; where they must meet, it is cut at all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import TypeAlias

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
    Block,
    Copy,
    Nodes,
    Parameter,
    Recv,
    Round,
    Send,
    Slot,
    Space,
    algorithm,
    merge,
    named,
    on_group,
    then,
)

from . import exchange, halving, ring, tree

NODE = Parameter("node", default=4, minimum=1, meaning="ranks on a node, one after the other")
HAN = "hierarchical, as Open MPI's han and UCC's cl/hier"
HELD = Space("held")
Pair: TypeAlias = tuple[int, int]


def cuts(nodes: Nodes) -> int:
    """Into how many blocks a vector is cut so that every node can deal them out evenly, and all nodes each of those parts."""
    return nodes.count * math.lcm(*(len(nodes.members(n)) for n in range(nodes.count)))


def part(nodes: Nodes, node: int, local: int, blocks: int) -> range:
    """The blocks that are in the care of one rank of a node."""
    size = len(nodes.members(node))
    return range(local * blocks // size, (local + 1) * blocks // size)


def meetings(nodes: Nodes, rank: int, blocks: int) -> Iterator[tuple[range, list[int]]]:
    """The blocks in a rank's care, in runs that are together on every node, each with those who have it in their care."""
    node, local = nodes.place(rank)
    mine = part(nodes, node, local, blocks)
    edges = {part(nodes, n, k, blocks).start for n in range(nodes.count) for k in range(len(nodes.members(n)))}
    inner = sorted(edge for edge in edges if mine.start <= edge < mine.stop)
    for start, stop in zip(inner, [*inner[1:], mine.stop]):
        yield range(start, stop), [
            nodes.members(n)[start * len(nodes.members(n)) // blocks] for n in range(nodes.count)]


@algorithm(
    ALL_REDUCE, "two-level", family="hierarchical", parameters=[NODE], source="2-D ring; NCCL, UCC rab",
    blocks=lambda size, node: cuts(Nodes.of(size, node)))
def all_reduce(rank: int, size: int, node: int) -> Iterator[Round]:
    """Reduce-scatter within each node, all-reduce every part between the nodes, all-gather within each node.

    Rounds: at most ``2 * (node - 1) + 2 * (ceil(size / node) - 1) * node``. Sent: at most ``2``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members, blocks = nodes.members(here), cuts(nodes)

    def mine(k: int) -> range:
        return part(nodes, here, k, blocks)

    def between(run: range, group: list[int]) -> Iterator[Round]:
        share = len(run) // nodes.count
        return on_group(ring.all_reduce(here, nodes.count), group, lambda k: run[k * share:(k + 1) * share])

    yield from then(
        named("within nodes", on_group(ring.reduce_scatter(local, len(members)), members, mine)),
        named("between nodes", merge(*(between(*meeting) for meeting in meetings(nodes, rank, blocks)))),
        named("within nodes", on_group(ring.all_gather(local, len(members)), members, mine)))


@algorithm(ALL_REDUCE, "leader", family="hierarchical", in_order=True, parameters=[NODE], source=HAN)
def all_reduce_leader(rank: int, size: int, node: int) -> Iterator[Round]:
    """Reduce to the first rank of each node, all-reduce between these leaders, broadcast on each node.

    Rounds: at most ``2 * ceil_log2(min(node, size)) + ceil_log2(ceil(size / node)) + 2``.
    Sent: at most ``ceil_log2(min(node, size)) + ceil_log2(ceil(size / node)) + 1``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members = nodes.members(here)
    between = on_group(halving.all_reduce_doubling(here, nodes.count), nodes.leaders()) if local == 0 else ()
    yield from then(
        named("to leaders", on_group(tree.reduce(local, len(members), 0), members)),
        named("between leaders", between),
        named("from leaders", on_group(tree.broadcast(local, len(members), 0), members)))


@algorithm(BROADCAST, "leader", family="hierarchical", parameters=[NODE], source=HAN)
def broadcast(rank: int, size: int, root: int, node: int) -> Iterator[Round]:
    """Broadcast from the root to a leader of every node, then on each node.

    Rounds: at most ``ceil_log2(min(node, size)) + ceil_log2(ceil(size / node))``.
    Sent: at most ``ceil_log2(min(node, size)) + ceil_log2(ceil(size / node))``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members, leaders = nodes.members(here), nodes.leaders(root)
    if rank == leaders[here]:
        yield from named(
            "between leaders", on_group(tree.broadcast(here, nodes.count, nodes.place(root)[0]), leaders))
    first = nodes.place(leaders[here])[1]
    yield from named("from leaders", on_group(tree.broadcast(local, len(members), first), members))


@algorithm(REDUCE, "leader", family="hierarchical", in_order=True, parameters=[NODE], source=HAN)
def reduce(rank: int, size: int, root: int, node: int) -> Iterator[Round]:
    """Reduce to the first rank of each node, then to rank 0, in rank order, and send the result to the root.

    Rounds: at most ``ceil_log2(min(node, size)) + ceil_log2(ceil(size / node)) + (root > 0)``. Sent: ``1``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members = nodes.members(here)
    between = on_group(tree.reduce(here, nodes.count, 0), nodes.leaders()) if local == 0 else ()
    yield from then(
        named("to leaders", on_group(tree.reduce(local, len(members), 0), members)),
        named("between leaders", between))
    if rank == 0 != root:
        yield Round(Send(root, OUT(0)), phase="to the root")
    elif rank == root != 0:
        yield Round(Recv(0, OUT(0)), phase="to the root")


@algorithm(GATHER, "leader", family="hierarchical", parameters=[NODE], source=HAN)
def gather(rank: int, size: int, root: int, node: int) -> Iterator[Round]:
    """Gather on a leader of each node, then from the leaders to the root.

    Rounds: at most ``ceil_log2(min(node, size)) + ceil_log2(ceil(size / node))``. Sent: at most ``1``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members, leaders = nodes.members(here), nodes.leaders(root)
    first = nodes.place(leaders[here])[1]
    between = on_group(tree.gather(here, nodes.count, nodes.place(root)[0]), leaders, nodes.members)
    yield from then(
        named("to leaders", on_group(tree.gather(local, len(members), first), members, lambda k: [members[k]])),
        named("between leaders", between if rank == leaders[here] else ()))


@algorithm(SCATTER, "leader", family="hierarchical", parameters=[NODE], source=HAN)
def scatter(rank: int, size: int, root: int, node: int) -> Iterator[Round]:
    """Scatter from the root to a leader of every node, then on each node.

    Rounds: at most ``ceil_log2(min(node, size)) + ceil_log2(ceil(size / node))``. Sent: at most ``1``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members, leaders = nodes.members(here), nodes.leaders(root)
    first = nodes.place(leaders[here])[1]
    between = on_group(tree.scatter(here, nodes.count, nodes.place(root)[0]), leaders, nodes.members)
    yield from then(
        named("between leaders", between if rank == leaders[here] else ()),
        named("from leaders", on_group(tree.scatter(local, len(members), first), members, lambda k: [members[k]])))


@algorithm(ALL_GATHER, "leader", family="hierarchical", parameters=[NODE], source=HAN)
def all_gather(rank: int, size: int, node: int) -> Iterator[Round]:
    """Gather on the first rank of each node, all-gather between these leaders, broadcast everything on each node.

    Rounds: at most ``2 * ceil_log2(min(node, size)) + ceil(size / node) - 1``.
    Sent: at most ``ceil_log2(min(node, size)) + 1``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members = nodes.members(here)
    between = on_group(ring.all_gather(here, nodes.count), nodes.leaders(), nodes.members) if local == 0 else ()
    yield from then(
        named("to leaders", on_group(tree.gather(local, len(members), 0), members, lambda k: [members[k]])),
        named("between leaders", between),
        named("from leaders", on_group(tree.broadcast(local, len(members), 0), members, lambda _: range(size))))


@algorithm(REDUCE_SCATTER, "leader", family="hierarchical", parameters=[NODE], source=HAN)
def reduce_scatter(rank: int, size: int, node: int) -> Iterator[Round]:
    """Reduce to the first rank of each node, reduce-scatter between these leaders, scatter on each node.

    Rounds: at most ``2 * ceil_log2(min(node, size)) + ceil(size / node) - 1``. Sent: at most ``2``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members = nodes.members(here)
    between = on_group(ring.reduce_scatter(here, nodes.count), nodes.leaders(), nodes.members) if local == 0 else ()
    yield from then(
        named("to leaders", on_group(tree.reduce(local, len(members), 0), members, lambda _: range(size))),
        named("between leaders", between),
        named("from leaders", on_group(tree.scatter(local, len(members), 0), members, lambda k: [members[k]])))


@algorithm(ALL_TO_ALL, "leader", family="hierarchical", parameters=[NODE], source=HAN)
def all_to_all(rank: int, size: int, node: int) -> Iterator[Round]:
    """Gather on the first rank of each node, all-to-all between these leaders, scatter on each node.

    Rounds: at most ``2 * ceil_log2(min(node, size)) + ceil(size / node) - 1``. Sent: at most ``3 * node``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members, everyone = nodes.members(here), range(size)

    def pairs(between: Block) -> list[Block]:
        source, target = between  # type: ignore[misc]
        return [(s, d) for s in nodes.members(source) for d in nodes.members(target)]

    between = on_group(exchange.all_to_all_shift(here, nodes.count), nodes.leaders(), pairs) if local == 0 else ()
    yield from then(
        named("to leaders", on_group(
            tree.gather(local, len(members), 0), members, lambda k: [(members[k], d) for d in everyone])),
        named("between leaders", between),
        named("from leaders", on_group(
            tree.scatter(local, len(members), 0), members, lambda k: [(s, members[k]) for s in everyone])))


def at(rank: int, blocks: Iterable[Pair]) -> list[Slot]:
    """Where blocks of an all-to-all lie on a rank: its own in its input, those for it in its result, others in passing."""
    return [(IN if block[0] == rank else OUT if block[1] == rank else HELD)(block) for block in blocks]


def on_node(
    rank: int, nodes: Nodes, give: Callable[[int], list[Pair]], take: Callable[[int], list[Pair]], phase: str,
) -> Iterator[Round]:
    """A pairwise exchange on a node: which blocks go to its k-th rank, and which come from there."""
    node, local = nodes.place(rank)
    members = nodes.members(node)
    for j in range(1, len(members)):
        to, back = (local + j) % len(members), (local - j) % len(members)
        send = [Send(members[to], *at(rank, given))] if (given := give(to)) else []
        receive = [Recv(members[back], *at(rank, taken))] if (taken := take(back)) else []
        yield Round(*send, *receive, phase=phase)


@algorithm(ALL_TO_ALL, "two-hop", family="hierarchical", parameters=[NODE], source="node-aware, as 2DH in Tutel; Bienz et al.")
def all_to_all_two_hop(rank: int, size: int, node: int) -> Iterator[Round]:
    """Send to every node what is for it, to the rank there that stands as one's own here; then exchange within the node.

    Rounds: at most ``2 * size``. Sent: at most ``2``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members, everywhere = nodes.members(here), range(nodes.count)

    def entering(k: int, origins: Iterable[int]) -> list[int]:
        """The ranks of some nodes that send to ours by way of our k-th; on ours, each by its own."""
        return [s for n in origins for s in ([members[k]] if n == here else nodes.members(n)[k::len(members)])]

    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    for i in range(1, nodes.count):
        to, back = nodes.members((here + i) % nodes.count), (here - i) % nodes.count
        yield Round(
            Send(to[local % len(to)], *at(rank, [(rank, d) for d in to])),
            *(Recv(s, *at(rank, [(s, d) for d in members])) for s in entering(local, [back])), phase="between nodes")
    yield from on_node(
        rank, nodes, lambda k: [(s, members[k]) for s in entering(local, everywhere)],
        lambda k: [(s, rank) for s in entering(k, everywhere)], "within nodes")


@algorithm(ALL_TO_ALL, "three-step", family="hierarchical", parameters=[NODE], source="node-aware, Bienz et al.")
def all_to_all_three_step(rank: int, size: int, node: int) -> Iterator[Round]:
    """Collect what is for a node on one rank of ours, send it as one message to one rank there, and deal it out.

    Rounds: at most ``3 * size``.
    Sent: at most ``1 + 2 * node * node * ceil((ceil(size / node) - 1) / node) / size``.
    """
    nodes = Nodes.of(size, node)
    here, local = nodes.place(rank)
    members = nodes.members(here)

    def remote(k: int) -> list[int]:
        """The ranks of the nodes with which our k-th rank deals for us: those k + 1, k + 1 + our size, … further on."""
        return [r for i in range(k + 1, nodes.count, len(members)) for r in nodes.members((here + i) % nodes.count)]

    def deals(i: int) -> bool:
        """Whether this rank deals with the node that is i further on."""
        return (i - 1) % len(members) == local

    def dealer(n: int) -> int:
        """The rank of another node that deals with ours."""
        return nodes.members(n)[((here - n) % nodes.count - 1) % len(nodes.members(n))]

    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    yield from on_node(
        rank, nodes, lambda k: [(rank, d) for d in (members[k], *remote(k))],
        lambda k: [(members[k], d) for d in (rank, *remote(local))], "to who deals with a node")
    for i in range(1, nodes.count):
        to, back = (here + i) % nodes.count, (here - i) % nodes.count
        send = [Send(dealer(to), *at(rank, product(members, nodes.members(to))))] if deals(i) else []
        take = [Recv(dealer(back), *at(rank, product(nodes.members(back), members)))] if deals(nodes.count - i) else []
        yield Round(*send, *take, phase="between nodes")
    yield from on_node(
        rank, nodes, lambda k: [(s, members[k]) for s in remote(local)], lambda k: [(s, rank) for s in remote(k)],
        "to whom it is for")
