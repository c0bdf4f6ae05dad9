"""Folding any number of ranks to a power of two."""

from __future__ import annotations

import pytest

from treering.core import Fold, factors


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


@pytest.mark.parametrize("radix", [2, 3, 4, 7])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 26, 27, 28, 60, 64])
def test_a_fold_of_any_radix_has_runs_of_nearly_equal_length(size: int, radix: int) -> None:
    fold = Fold(size, radix)
    runs = [fold.members(place) for place in range(fold.active)]
    assert [rank for run in runs for rank in run] == list(range(size))
    assert len(runs[0]) == fold.leaning + 1 and len(runs[-1]) >= len(runs[0]) - 1
    assert fold.active == radix ** fold.digits <= size < radix * fold.active
    for place, run in enumerate(runs):
        assert [fold.position(rank) for rank in run] == [place] * len(run)
        assert [fold.leans(rank) for rank in run] == [False] + [True] * (len(run) - 1)


@pytest.mark.parametrize(("size", "most", "expected"), [(1, 4, []), (64, 4, [4, 4, 4]), (12, 2, [2, 2, 3]), (13, 5, [13])])
def test_factors_are_as_large_as_allowed(size: int, most: int, expected: list[int]) -> None:
    assert list(factors(size, most)) == expected
