"""Circulant graphs: the tables of the round-optimal pipelines against a plain search, and their conditions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from treering.algorithms.circulant import skips
from treering.algorithms.circulant_blocks import base, nearest, received

from treering.readers.count import count
from treering.readers.verify import verify
from treering.table import schedule

SIZES = [*range(2, 40), 63, 64, 65, 100, 127, 128, 129, 255, 257]


def searched(place: int, size: int) -> tuple[int, ...]:
    """Träff's rule, by looking at all places."""
    distances = skips(size)
    turn = len(distances) - 1
    bases = [base(at, distances) for at in range(size)]
    taken = {bases[place]}
    table: list[int] = []
    for skip, beyond in pairwise(distances):
        left = [value for at in range(place - beyond + 1, place - skip + 1) if (value := bases[at % size]) not in taken]
        value = max(left, default=bases[(place - beyond) % size])
        assert value not in taken
        taken.add(value)
        table.append(bases[place] if value == turn else value - turn)
    return tuple(table)


@pytest.mark.parametrize("size", SIZES)
def test_the_fast_tables_are_those_of_the_search(size: int) -> None:
    assert [received(place, size) for place in range(size)] == [searched(place, size) for place in range(size)]


def test_a_table_of_many_ranks_is_that_of_the_search() -> None:
    assert received(12345, 20011) == searched(12345, 20011)


@pytest.mark.parametrize("size", [2, 3, 9, 22, 33, 64])
def test_the_nearest_place_of_a_base_is_found(size: int) -> None:
    distances = skips(size)
    for value in range(len(distances) - 1):
        places = [place for place in range(size) if base(place, distances) == value]
        for place in range(size):
            assert nearest(value, place, distances) == max((p for p in places if p <= place), default=-1)


@pytest.mark.parametrize("size", [2, 3, 5, 9, 20])
def test_every_rank_receives_every_segment_once_in_the_fewest_rounds(size: int) -> None:
    for segments in (1, 2, 3, 7, 16):
        for root in (0, size - 1):
            figures = count(schedule("broadcast", "circulant", size, root, segments=segments))
            assert figures.rounds == segments - 1 + (size - 1).bit_length()
            assert all(load.blocks_received == segments for at, load in enumerate(figures.ranks) if at != root)


@pytest.mark.parametrize("segments", [1, 2, 5])
def test_broadcasts_from_all_ranks_at_once_are_proved(segments: int) -> None:
    for size in (2, 3, 7, 16, 33):
        verify(schedule("all-gather", "circulant-pipelined", size, segments=segments))
        verify(schedule("reduce-scatter", "circulant-pipelined", size, segments=segments))


def test_an_all_to_all_on_33_ranks_sends_less_than_by_bits() -> None:
    circulant, bruck = (count(schedule("all-to-all", name, 33)) for name in ("circulant", "bruck"))
    assert (circulant.rounds, circulant.sent * 33) == (6, 73)
    assert (bruck.rounds, bruck.sent * 33) == (6, 81)
