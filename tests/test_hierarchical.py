"""Hierarchical algorithms: right on any nodes, and between nodes no more is sent than must be."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
import treering.algorithms

import treering
from treering.core import TABLE, Nodes
from treering.core.algorithm import Algorithm
from treering.readers.count import count
from treering.readers.match import transfers
from treering.readers.verify import verify

HIERARCHICAL = [a for a in TABLE.values() if a.family == "hierarchical"]
algorithms = pytest.mark.parametrize("algorithm", HIERARCHICAL, ids=str)


@algorithms
@pytest.mark.parametrize("node", [1, 2, 3, 5, 8])
def test_proved_on_nodes_of_any_size(algorithm: Algorithm, node: int) -> None:
    for size in range(1, 14):
        for root in range(size) if algorithm.collective.rooted else [0]:
            verify(algorithm.schedule(size, root, node=node))


@pytest.mark.parametrize(("nodes", "each"), [(2, 2), (2, 4), (3, 3), (4, 2), (5, 3)])
def test_two_level_all_reduce_on_equal_nodes_is_the_2d_ring(nodes: int, each: int) -> None:
    size = nodes * each
    figures = count(treering.schedule("all-reduce", "two-level", size, node=each))
    assert figures.rounds == 2 * (each - 1) + 2 * (nodes - 1)
    assert figures.sent == Fraction(2 * (size - 1), size)


def between_nodes(algorithm: str, size: int, node: int) -> Counter[tuple[int, int]]:
    """How many messages go from node to node."""
    schedule, nodes = treering.schedule("all-to-all", algorithm, size, node=node), Nodes.of(size, node)
    ends = [(nodes.place(t.source)[0], nodes.place(t.destination)[0]) for t in transfers(schedule)]
    return Counter(pair for pair in ends if pair[0] != pair[1])


@pytest.mark.parametrize(("size", "node"), [(8, 4), (12, 3), (11, 4)])
def test_node_aware_all_to_alls_send_few_messages_between_nodes(size: int, node: int) -> None:
    pairs = {(a, b) for a in range(Nodes.of(size, node).count) for b in range(Nodes.of(size, node).count) if a != b}
    assert between_nodes("three-step", size, node) == dict.fromkeys(pairs, 1)
    assert between_nodes("leader", size, node) == dict.fromkeys(pairs, 1)
    for (source, _), messages in between_nodes("two-hop", size, node).items():
        assert messages == len(Nodes.of(size, node).members(source))


def test_three_step_spreads_the_messages_over_the_ranks_of_a_node() -> None:
    nodes = Nodes.of(20, 4)
    crossing = Counter(
        t.source for t in transfers(treering.schedule("all-to-all", "three-step", 20, node=4))
        if nodes.place(t.source)[0] != nodes.place(t.destination)[0])
    assert max(crossing.values()) == 1 + (nodes.count - 1 - 1) // 4


def test_nodes_of_several_sizes() -> None:
    nodes = Nodes((0, 3, 5, 9))
    assert [len(nodes.members(n)) for n in range(nodes.count)] == [3, 2, 4]
    assert [nodes.place(rank) for rank in (0, 2, 3, 4, 5, 8)] == [(0, 0), (0, 2), (1, 0), (1, 1), (2, 0), (2, 3)]
    assert nodes.leaders(root=4) == (0, 4, 5)
