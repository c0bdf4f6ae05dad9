"""How many elements each block has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treering.core import ALL_REDUCE, ALL_TO_ALL, GATHER, Case, Refused
from treering.core.layout import balanced, elements, total


@given(st.integers(0, 10**6), st.integers(1, 500))
def test_balanced_parts_make_the_whole_and_differ_by_one_at_most(whole: int, parts: int) -> None:
    sizes = [balanced(whole, parts, i) for i in range(parts)]
    assert sum(sizes) == whole
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_a_vector_is_cut_into_all_blocks() -> None:
    size_of = elements(ALL_REDUCE, Case(4, 0, 4), 10)
    assert [size_of(block) for block in range(4)] == [3, 3, 2, 2]


def test_each_unit_is_cut_by_itself() -> None:
    size_of = elements(GATHER, Case(3, 0, 6), [5, 0, 4])
    assert [size_of(block) for block in range(6)] == [3, 2, 0, 0, 2, 2]


def test_all_to_all_has_a_count_for_every_pair() -> None:
    size_of = elements(ALL_TO_ALL, Case(2, 0, 4), [1, 2, 3, 4])
    assert [size_of((s, d)) for s in range(2) for d in range(2)] == [1, 2, 3, 4]


@pytest.mark.parametrize(("counts", "message"), [(-1, "less than none"), ([1, -2, 3], "less than none"), ([1, 2], "takes 3")])
def test_impossible_counts_are_refused(counts: int | list[int], message: str) -> None:
    with pytest.raises(Refused, match=message):
        elements(GATHER, Case(3, 0, 3), counts)


def test_total_is_the_size_that_benchmarks_name() -> None:
    assert total(ALL_REDUCE, 4, 100) == 100
    assert total(GATHER, 4, 25) == 100
    assert total(GATHER, 4, [10, 20, 30, 40]) == 100
    assert total(ALL_TO_ALL, 4, 25) == 100  # what one rank has for all
