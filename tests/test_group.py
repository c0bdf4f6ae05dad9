"""Folding any number of ranks to a power of two."""

from __future__ import annotations

import pytest

from treering.core import Fold


@pytest.mark.parametrize("size", range(1, 66))
def test_every_rank_is_a_member_once_and_in_order(size: int) -> None:
    fold = Fold(size)
    assert [rank for place in range(fold.active) for rank in fold.members(place)] == list(range(size))
    assert all(1 <= len(fold.members(place)) <= 2 for place in range(fold.active))


@pytest.mark.parametrize("size", range(1, 66))
def test_active_is_the_largest_power_of_two(size: int) -> None:
    active = Fold(size).active
    assert active & (active - 1) == 0 and active <= size < 2 * active


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 8, 13])
def test_position_and_rank_are_inverse(size: int) -> None:
    fold = Fold(size)
    for place in range(fold.active):
        assert fold.position(fold.rank(place)) == place
        assert not fold.leans(fold.rank(place))
        for rank in fold.members(place)[1:]:
            assert fold.leans(rank) and fold.position(rank) == place


def test_a_span_is_the_members_of_its_places() -> None:
    fold = Fold(7)
    assert fold.span(1, 4) == range(fold.members(1).start, fold.members(3).stop) == range(2, 7)
