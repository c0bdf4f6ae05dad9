"""Finding collectives and algorithms by name."""

from __future__ import annotations

import pytest

from treering.core import ALL_REDUCE, BROADCAST, COLLECTIVES, TABLE, Refused, UnknownName
from treering.table import algorithms_of, find_algorithm, find_collective


@pytest.mark.parametrize(("spelling", "name"), [
    ("allreduce", "all-reduce"), ("All_Reduce", "all-reduce"), ("all-reduce", "all-reduce"), ("bcast", "broadcast"),
    ("alltoall", "all-to-all"), ("reduce_scatter_block", "reduce-scatter"), ("REDUCE", "reduce")])
def test_any_spelling_of_a_collective(spelling: str, name: str) -> None:
    assert find_collective(spelling).name == name


def test_an_unknown_collective_is_answered_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match="'allreduced'; there are broadcast, scatter, gather"):
        find_collective("allreduced")


@pytest.mark.parametrize("algorithm", TABLE.values(), ids=str)
def test_every_algorithm_is_found_by_its_name(algorithm: object) -> None:
    name = algorithm.name  # type: ignore[attr-defined]
    collective = algorithm.collective  # type: ignore[attr-defined]
    assert find_algorithm(collective, name) == (algorithm, {})
    assert find_algorithm(collective, name.upper().replace("-", "_")) == (algorithm, {})


def test_a_name_may_set_parameters() -> None:
    found, given = find_algorithm(BROADCAST, "chain:segments=3")
    assert found.name == "chain" and given == {"segments": 3}


@pytest.mark.parametrize(("name", "error", "message"), [
    ("rings", UnknownName, "no algorithm 'rings'; it has ring,"),
    ("ring:radix=4", UnknownName, "no parameter 'radix'; it has none"),
])
def test_an_unknown_algorithm_is_answered_with_the_likeliest(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        find_algorithm(ALL_REDUCE, name)


@pytest.mark.parametrize("name", ["chain:segments", "chain:segments=x", "chain:segments=0"])
def test_a_parameter_without_a_sensible_number_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        find_algorithm(BROADCAST, name)


def test_every_collective_has_algorithms() -> None:
    assert sum(len(algorithms_of(collective)) for collective in COLLECTIVES) == len(TABLE)
    assert all(algorithms_of(collective) for collective in COLLECTIVES)
