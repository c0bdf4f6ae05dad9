"""Which algorithm runs: the one asked for or none, and without being asked one that never refuses."""

from __future__ import annotations

import pytest

from treering.core.collective import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BARRIER, BROADCAST, COLLECTIVES, REDUCE, Collective
from treering.core.errors import Refused, UnknownName
from treering.running.select import SHORT, choose
from treering.table import TABLE, algorithms_of

collectives = pytest.mark.parametrize("collective", COLLECTIVES, ids=str)


@collectives
def test_the_default_serves_every_size_and_operator(collective: Collective) -> None:
    for size in range(1, 70):
        for nbytes in (0, 1, SHORT - 1, SHORT, 10**9):
            for in_order in (False, True) if collective.reduces and not collective.repeats else (False,):
                choice = choose(collective, size, nbytes, in_order)
                assert choice.algorithm.collective is collective
                assert choice.algorithm.why_not(size) is None
                assert choice.algorithm.in_order or not in_order


@collectives
def test_few_rounds_for_short_payloads_and_few_bytes_for_long_ones(collective: Collective) -> None:
    short, long = (choose(collective, 8, nbytes) for nbytes in (SHORT - 1, SHORT))
    assert short.name != long.name or collective is BARRIER  # whose payload is a token
    assert f"{SHORT - 1} bytes are short" in short.why
    assert f"{SHORT} bytes are long" in long.why


def test_the_choice_says_when_the_operator_made_it() -> None:
    choice = choose(REDUCE, 5, 100, in_order=True)
    assert (choice.name, choice.why) == ("binomial-in-order", "the operator does not commute")


@pytest.mark.parametrize("spelled", ["scatter-ring", "Scatter-Ring", "scatter_ring", "scatterring"])
def test_a_name_may_be_spelled_in_several_ways(spelled: str) -> None:
    choice = choose(BROADCAST, 4, 100, asked=spelled)
    assert (choice.algorithm, choice.why) == (TABLE["broadcast", "scatter-ring"], "asked for")


def test_a_name_may_set_parameters() -> None:
    choice = choose(BROADCAST, 4, 100, asked="chain:segments=3")
    assert (choice.name, choice.parameters) == ("chain:segments=3", (("segments", 3),))


def test_an_algorithm_may_be_asked_for_by_its_record() -> None:
    for record in TABLE.values():
        assert choose(record.collective, 8, 100, asked=record).algorithm is record


def test_the_one_asked_for_runs_whatever_the_size() -> None:
    assert {choose(ALL_REDUCE, 8, nbytes, asked="linear").name for nbytes in (0, SHORT, 10**9)} == {"linear"}


@pytest.mark.parametrize(("collective", "asked", "message"), [
    (ALL_REDUCE, "rnig", "all-reduce has no algorithm 'rnig'; it has ring, "),
    (ALL_REDUCE, "line:segments=2", "all-reduce has no algorithm 'line'"),
    (BROADCAST, "chain:slices=2", "broadcast chain has no parameter 'slices'; it has segments"),
    (BROADCAST, "chain:segments=0", "broadcast chain: segments=0 is less than 1"),
    (BROADCAST, "chain:segments=two", "name=number, not 'segments=two'"),
    (ALL_TO_ALL, "exchange", "all-to-all exchange needs a number of ranks that is a power of two, not 6"),
    (ALL_GATHER, TABLE["all-reduce", "ring"], "all-reduce ring is no algorithm for all-gather"),
    (ALL_GATHER, 42, "by its name or its record, not by 42"),
    (ALL_GATHER, ["ring"], r"by its name or its record, not by \['ring'\]"),
])
def test_what_cannot_run_is_refused_and_never_replaced(collective: Collective, asked: object, message: str) -> None:
    with pytest.raises((Refused, UnknownName), match=message):
        choose(collective, 6, 100, asked=asked)  # type: ignore[arg-type]


def test_an_algorithm_that_reorders_is_refused_to_an_operator_that_does_not_commute() -> None:
    for record in TABLE.values():
        if not record.collective.reduces or record.collective.repeats:
            continue
        if record.in_order:
            assert choose(record.collective, 8, 100, in_order=True, asked=record.name).algorithm is record
        else:
            fit = ", ".join(a.name for a in algorithms_of(record.collective) if a.in_order)
            with pytest.raises(Refused, match=f"{record} needs an operator that commutes; .* are {fit}"):
                choose(record.collective, 8, 100, in_order=True, asked=record.name)
