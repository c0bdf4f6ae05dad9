"""Reading the formulas of docstrings."""

from __future__ import annotations

from fractions import Fraction

import pytest

from treering.core import ALL_REDUCE, ScheduleError
from treering.core.algorithm import Algorithm
from treering.readers.claims import Formula, claim


def documented(text: str) -> Algorithm:
    def function(rank: int, size: int) -> None: ...
    function.__doc__ = text
    return Algorithm("example", ALL_REDUCE, "ring", function, lambda size: size)  # type: ignore[arg-type]


def test_a_plain_formula_speaks_of_every_size() -> None:
    rounds = claim(documented("Do. Rounds: ``size - 1``. Sent: ``1``."), "Rounds")
    assert [rounds.at(size).value(size=size) for size in (4, 5)] == [3, 4]


def test_powers_of_two_may_have_their_own_formula_even_over_a_line_break() -> None:
    sent = claim(documented("Rounds: ``1``.\nSent: ``a`` for a power\n    of two, else at most ``b + 1``."), "Sent")
    assert sent.at(8) == Formula("a", at_most=False)
    assert sent.at(9) == Formula("b + 1", at_most=True)
    assert str(sent) == "a (p = 2^k), ≤ b + 1"


def test_at_most_bounds_and_a_plain_formula_equals() -> None:
    assert Formula("size", at_most=True).agrees(3, size=4)
    assert not Formula("size", at_most=True).agrees(5, size=4)
    assert not Formula("size", at_most=False).agrees(3, size=4)


def test_division_is_exact() -> None:
    assert Formula("(size - 1) / size / 3", at_most=False).value(size=7) == Fraction(2, 7)


@pytest.mark.parametrize(("size", "branch"), [(2, 1), (3, 1), (4, 2), (5, 2), (7, 3), (8, 4), (9, 4), (15, 7), (16, 8)])
def test_the_largest_branch_of_a_binomial_tree(size: int, branch: int) -> None:
    from treering.algorithms.tree import children, span

    assert max(min(span(place, size, 2), size - place) for level in children(0, size, 2) for place in level) == branch
    assert Formula("branch", at_most=False).value(size=size) == branch


def test_formulas_are_printed_as_people_write_them() -> None:
    assert str(Formula("2 * ceil_log2(size) + (root > 0)", at_most=False)) == "2⌈log2 p⌉ + (root > 0)"
    assert str(Formula("4 * (size - 1) / size", at_most=True)) == "≤ 4(p - 1)/p"


@pytest.mark.parametrize("text", ["Do.", "Sent: three. Rounds: ``1``.", "Rounds: ``1``. Sent: ``2`` mostly."])
def test_a_claim_that_is_missing_or_unclear_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError, match="must say Sent: ``formula``"):
        claim(documented(text), "Sent")
