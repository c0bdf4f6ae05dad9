"""Two trees: the colours of messages keep every port free, at whatever size, and cost little to find."""

from __future__ import annotations

import pytest
from treering.algorithms import two_tree

from treering.core import Algorithm

SIZES = [*range(2, 41), 63, 64, 65, 127, 128, 129, 1000]


@pytest.mark.parametrize("algorithm", [two_tree.broadcast, two_tree.reduce, two_tree.all_reduce], ids=str)
def test_nobody_sends_or_receives_twice_in_a_round(algorithm: Algorithm) -> None:
    for size in SIZES:
        schedule = algorithm.schedule(size, segments=2)
        for rank in range(size):
            assert all(len(round_.sends) <= 1 and len(round_.recvs) <= 1 for round_ in schedule.rounds(rank))


@pytest.mark.parametrize("members", [*range(1, 70), 128, 129, 254, 255, 256])
def test_messages_that_share_a_port_differ_in_colour(members: int) -> None:
    """Those that one takes in the two trees, those to two children, and those from the source."""
    for label in range(1, members + 1):
        first = two_tree.colour(label, members)
        second = 1 - two_tree.colour(two_tree.mirrored(label, members), members)
        assert first != second
    for label in range(members + 1):
        inner = two_tree.children(label, members)
        colours = [two_tree.colour(child, members) for child in inner]
        assert len(set(colours)) == len(colours)
        mirror = two_tree.children(two_tree.mirrored(label, members), members)
        assert not (inner and mirror) or label == 0


def test_a_rank_of_a_large_number_finds_its_rounds_by_itself() -> None:
    rounds = two_tree.all_reduce.schedule(2**40).rounds(12345)
    assert 10 < len(rounds) < 60
