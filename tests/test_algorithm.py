"""The record of an algorithm and the schedules it makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    BROADCAST,
    COLLECTIVES,
    IN,
    OUT,
    POWER_OF_TWO,
    SCATTER,
    Algorithm,
    Copy,
    Parameter,
    Refused,
    Round,
    Schedule,
    Send,
    UnknownName,
    algorithm,
)
from treering.readers.verify import verify
from treering.table import TABLE

DEPTH = Parameter("depth", default=4, minimum=2, meaning="how deep")


@pytest.fixture
def deep() -> Iterator[Algorithm]:
    @algorithm(
        SCATTER, "deep", family="tree", parameters=[DEPTH], requires=[POWER_OF_TWO], blocks=lambda size, depth: size * depth)
    def function(rank: int, size: int, root: int, depth: int) -> Iterator[Round]:
        """Go deep.

        Rounds: ``depth``.
        """
        yield Round()
        yield Round(Send((root + 1) % size, *(IN(b) for b in range(depth))))

    yield function
    del TABLE["scatter", "deep"]


def test_a_schedule_binds_size_root_and_parameters(deep: Algorithm) -> None:
    schedule = deep.schedule(4, 3, depth=2)
    assert schedule.name == "deep:depth=2"
    assert schedule.case.blocks == 8 and schedule.size == 4
    assert schedule.rounds(1) == (Round(Send(0, IN(0), IN(1))),), "without the idle round"


def test_defaults_are_filled_in_and_not_spelled(deep: Algorithm) -> None:
    assert deep.settings({}) == {"depth": 4}
    assert deep.schedule(4, depth=4).name == "deep"


@pytest.mark.parametrize(("size", "root", "parameters", "error", "message"), [
    (0, 0, {}, Refused, "at least 1"),
    (4, 4, {}, Refused, "root 4 is not one of the ranks 0 to 3"),
    (4, -1, {}, Refused, "root -1"),
    (3, 0, {}, Refused, "power of two, not 3"),
    (4, 0, {"depth": 1}, Refused, "depth=1 is less than 2"),
    (4, 0, {"width": 1}, UnknownName, "no parameter 'width'; it has depth"),
])
def test_what_makes_no_sense_is_refused(
    deep: Algorithm, size: int, root: int, parameters: dict[str, int], error: type[Exception], message: str,
) -> None:
    with pytest.raises(error, match=message):
        deep.schedule(size, root, **parameters)


def test_a_root_where_there_is_none_is_refused() -> None:
    with pytest.raises(Refused, match="all-reduce has no root"):
        TABLE["all-reduce", "ring"].schedule(4, 1)


def test_summary_and_claims_are_in_the_docstring(deep: Algorithm) -> None:
    assert deep.summary == "Go deep."


def test_a_name_can_be_taken_once(deep: Algorithm) -> None:
    source = "def f(rank, size, root):\n    yield\n"
    scope: dict[str, object] = {}
    exec(compile(source, "elsewhere.py", "exec"), scope)
    with pytest.raises(Refused, match="already in the table"):
        algorithm(SCATTER, "deep", family="tree")(scope["f"])  # type: ignore[arg-type]


def test_a_module_that_is_loaded_anew_replaces_its_algorithms(deep: Algorithm) -> None:
    again = algorithm(SCATTER, "deep", family="tree", parameters=[DEPTH])(deep.function)
    assert TABLE["scatter", "deep"] is again is not deep


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
def test_a_rank_alone_keeps_what_it_has(collective: object) -> None:
    for record in TABLE.values():
        if record.collective is collective:
            schedule = record.schedule(1)
            verify(schedule)
            assert all(isinstance(op, Copy) for round_ in schedule.rounds(0) for op in round_.operations)


def test_algorithms_can_be_called_by_others() -> None:
    ring = TABLE["all-gather", "ring"]
    assert list(ring(0, 3)) == list(ring.schedule(3).program(0))
    assert list(ring(0, 1)) == [Round(Copy(OUT(0), IN(0)))]


def test_a_notebook_shows_a_schedule_once_a_reader_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = TABLE["broadcast", "binomial"].schedule(2)
    monkeypatch.setattr(Schedule, "display", None)
    assert schedule._repr_html_() is None
    monkeypatch.setattr(Schedule, "display", lambda schedule: f"<b>{schedule.name}</b>")
    assert schedule._repr_html_() == "<b>binomial</b>"


def test_all_collectives_have_a_ring_a_tree_and_a_halving_or_say_why() -> None:
    families = {c: {a.family for a in TABLE.values() if a.collective is c} for c in COLLECTIVES}
    assert all({"ring", "tree", "halving", "direct"} <= found for found in families.values()), families
    assert families[ALL_REDUCE] and families[ALL_GATHER] and families[BROADCAST]
