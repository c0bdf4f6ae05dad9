"""What dissemination chooses, and what its paper draws."""

from __future__ import annotations

import pytest
from treering.algorithms.dissemination import RADIX_TO_ALL

from treering.readers.count import count
from treering.table import schedule


@pytest.mark.parametrize("size", [2, 3, 7, 16, 27, 33])
@pytest.mark.parametrize("weight", [0.01, 1.0, 10.0, 1000.0])
def test_the_best_radix_costs_least_of_all(size: int, weight: float) -> None:
    def cost(radix: int) -> float:
        figures = count(schedule("all-to-all", "bruck", size, radix=radix))
        return figures.rounds + weight * float(figures.sent)

    best = RADIX_TO_ALL.value(size, weight)
    assert cost(best) <= 1.1 * min(cost(radix) for radix in range(2, size + 1))


def test_few_bytes_take_the_least_radix_and_many_the_largest() -> None:
    assert RADIX_TO_ALL.value(64, 1e-3) == 2
    assert RADIX_TO_ALL.value(64, 1e6) == 64
    assert RADIX_TO_ALL.value(64, None) == 2


@pytest.mark.parametrize("aggregation", [1, 2, 4, 8, 100])
def test_no_message_of_pat_has_more_blocks_than_allowed(aggregation: int) -> None:
    for size in range(2, 40):
        for round_ in schedule("all-gather", "pat", size, aggregation=aggregation).rounds(size // 2):
            assert all(len(send.slots) <= aggregation for send in round_.sends)


def test_sparbit_is_pat_that_aggregates_all() -> None:
    for size in range(2, 40):
        pat = schedule("all-gather", "pat", size, aggregation=64)
        assert schedule("all-gather", "sparbit", size).rounds(1) == pat.rounds(1)


def test_the_first_rounds_go_far_with_one_block_and_the_last_near_with_many() -> None:
    sends = [send for round_ in schedule("all-gather", "sparbit", 8).rounds(0) for send in round_.sends]
    assert [(send.peer, len(send.slots)) for send in sends] == [(4, 1), (2, 2), (1, 4)]
