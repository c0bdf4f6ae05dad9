"""Lower bounds: their values, that nothing is below them, and who meets them."""

from __future__ import annotations

from fractions import Fraction

import pytest

import treering.table as table
from treering.core import COLLECTIVES, Collective
from treering.core.algorithm import TABLE, Algorithm
from treering.readers.bounds import TOGETHER, Bounds, bounds, met_by
from treering.readers.count import count


@pytest.mark.parametrize(("name", "expected"), [
    ("broadcast", Bounds(4, Fraction(1), Fraction(0))),
    ("reduce", Bounds(4, Fraction(1), Fraction(8, 9))),
    ("scatter", Bounds(4, Fraction(8, 9), Fraction(0))),
    ("gather", Bounds(4, Fraction(8, 9), Fraction(0))),
    ("all-gather", Bounds(4, Fraction(8, 9), Fraction(0))),
    ("reduce-scatter", Bounds(4, Fraction(8, 9), Fraction(8, 9))),
    ("all-reduce", Bounds(4, Fraction(16, 9), Fraction(8, 9))),
    ("all-to-all", Bounds(4, Fraction(8, 9), Fraction(0))),
    ("scan", Bounds(4, Fraction(1), Fraction(8, 9))),
    ("exscan", Bounds(4, Fraction(1), Fraction(7, 9))),
    ("barrier", Bounds(4, Fraction(1), Fraction(8, 9))),
])
def test_values_for_nine_ranks(name: str, expected: Bounds) -> None:
    assert bounds(table.find_collective(name), 9) == expected


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
def test_every_collective_has_bounds_and_one_rank_needs_nothing(collective: Collective) -> None:
    assert bounds(collective, 1) == Bounds(0, Fraction(0), Fraction(0))
    assert collective.name in TOGETHER


@pytest.mark.parametrize("algorithm", TABLE.values(), ids=str)
def test_no_algorithm_is_below_a_bound(algorithm: Algorithm) -> None:
    for size in (size for size in range(1, 18) if not algorithm.why_not(size)):
        figures, least = count(algorithm.schedule(size)), bounds(algorithm.collective, size)
        assert figures.rounds >= least.rounds
        assert figures.volume >= least.volume
        assert figures.reduced >= least.reduced


@pytest.mark.parametrize(("collective", "name", "met"), [
    ("all-reduce", "ring", {"volume": True, "reduced": True}),
    ("all-reduce", "doubling", {"rounds": False}),
    ("all-reduce", "halving-doubling", {"volume": False, "reduced": False}),
    ("all-reduce", "linear", {}),
    ("reduce-scatter", "halving", {"rounds": False, "volume": False, "reduced": False}),
    ("all-gather", "bruck", {"rounds": True, "volume": True}),
    ("scatter", "binomial", {"rounds": True, "volume": True}),
    ("broadcast", "binomial", {"rounds": True}),
    ("broadcast", "chain", {"volume": True}),
    ("all-to-all", "bruck", {"rounds": True}),
    ("all-to-all", "exchange", {"volume": True}),
])
def test_who_meets_which_bound(collective: str, name: str, met: dict[str, bool]) -> None:
    assert met_by(TABLE[collective, name]) == met
