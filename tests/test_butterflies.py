"""Butterflies: what is near and far in them, what their best radix is, and why one of them is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cases import by_hand
from treering.algorithms.multiplying import RADIX, RADIX_OF_WHOLE, peers
from treering.algorithms.swing import distances

from treering.core import ALL_REDUCE, IN, OUT, Recv, Reduce, Round, Send, Space
from treering.readers.count import count
from treering.readers.match import Flaw
from treering.readers.verify import verify
from treering.table import schedule

ARRIVED = Space("arrived")


def whole_vectors(rank: int, size: int) -> Iterator[Round]:
    """Swing on whole vectors, the lower rank's to the left."""
    source = IN
    for way in distances(size):
        peer = (rank - way if rank % 2 else rank + way) % size
        sides = (source(0), ARRIVED(0)) if rank < peer else (ARRIVED(0), source(0))
        yield Round(Send(peer, source(0)), Recv(peer, ARRIVED(0)), Reduce(OUT(0), *sides))
        source = OUT


def test_swing_on_whole_vectors_gives_different_bits() -> None:
    verify(by_hand(ALL_REDUCE, 4, lambda rank: whole_vectors(rank, 4)))
    for size in (8, 16):
        with pytest.raises(Flaw, match="by another tree"):
            verify(by_hand(ALL_REDUCE, size, lambda rank, size=size: whole_vectors(rank, size)))


def ways(collective: str, name: str, size: int) -> list[int]:
    """How far rank 0 sends in each round, around the circle, and how many blocks."""
    sends = (send for round_ in schedule(collective, name, size).rounds(0) for send in round_.sends)
    return [(min(send.peer, size - send.peer), len(send.slots)) for send in sends]  # type: ignore[misc]


def test_swing_and_bine_have_the_same_partners_in_opposite_order() -> None:
    assert distances(64) == [1, -1, 3, -5, 11, -21]
    assert ways("reduce-scatter", "swing", 16) == [(1, 8), (1, 4), (3, 2), (5, 1)]
    assert ways("reduce-scatter", "bine", 16) == [(5, 8), (3, 4), (1, 2), (1, 1)]
    assert ways("all-gather", "swing", 16) == [(5, 1), (3, 2), (1, 4), (1, 8)]


def test_data_stays_nearer_than_in_recursive_halving() -> None:
    def carried(name: str) -> int:
        return sum(far * many for far, many in ways("reduce-scatter", name, 64))  # type: ignore[misc]

    assert carried("swing") < carried("mirrored") < carried("halving")


def test_the_cube_reduces_near_first_with_most_data() -> None:
    sends = [send for round_ in schedule("all-reduce", "bcube", 16).rounds(0) for send in round_.sends]
    assert [(send.peer, len(send.slots)) for send in sends[:6]] == [
        (1, 4), (2, 4), (3, 4), (4, 1), (8, 1), (12, 1)]


def test_the_others_of_a_group_differ_in_one_digit() -> None:
    assert peers(5, 1, 3) == [3, 4]
    assert peers(5, 3, 3) == [8, 2]


@pytest.mark.parametrize("size", [2, 5, 8, 9, 27, 26])
@pytest.mark.parametrize("weight", [0.01, 1.0, 100.0])
def test_the_best_radix_costs_least(size: int, weight: float) -> None:
    def cost(name: str, radix: int) -> float:
        figures = count(schedule("all-reduce", name, size, radix=radix))
        return figures.rounds + weight * float(figures.sent)

    radices = range(2, max(3, min(size + 1, 9)))
    best = RADIX_OF_WHOLE.value(size, weight)
    assert cost("multiplying", best) == pytest.approx(min(cost("multiplying", radix) for radix in radices))
    assert RADIX.value(27, 1.0) == 3 and RADIX.value(64, 1.0) == 2
