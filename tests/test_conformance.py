"""Every algorithm of the table keeps what its docstring says, held against the counter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import treering.table  # noqa: F401 — fills the table
from treering.core.algorithm import TABLE, Algorithm, Schedule
from treering.readers.claims import Claim, claim
from treering.readers.count import count

SIZES = range(2, 34)
EVERY_ROOT = 9
"""Up to this many ranks each of them is root once."""

algorithms = pytest.mark.parametrize("algorithm", TABLE.values(), ids=str)


def roots(algorithm: Algorithm, size: int) -> list[int]:
    if not algorithm.collective.rooted:
        return [0]
    return list(range(size)) if size <= EVERY_ROOT else [0, size // 2, size - 1]


def schedules(algorithm: Algorithm) -> Iterator[tuple[Schedule, dict[str, int]]]:
    """All that are counted here, with the names that formulas may use."""
    for size in SIZES:
        for root in roots(algorithm, size) if not algorithm.why_not(size) else ():
            yield algorithm.schedule(size, root), {"size": size, "root": root, **algorithm.settings({})}
    for parameter in algorithm.parameters:
        for value in (parameter.minimum, parameter.default + 3):
            given = {parameter.name: value}
            yield algorithm.schedule(8, **given), {"size": 8, "root": 0, **algorithm.settings(given)}


def broken_claims(algorithm: Algorithm, rounds: Claim, sent: Claim) -> Iterator[str]:
    """What the counter finds otherwise."""
    tight = {rounds: False, sent: False}
    for schedule, names in schedules(algorithm):
        figures = count(schedule)
        for claimed, counted in ((rounds, figures.rounds), (sent, figures.sent)):
            formula = claimed.at(names["size"])
            tight[claimed] |= 2 * counted >= formula.value(**names)
            if not formula.agrees(counted, **names):
                yield f"{algorithm}, {names}: {formula} is {formula.value(**names)}, but {counted} was counted"
    yield from (f"{algorithm}: {claimed} is never nearly reached" for claimed, near in tight.items() if not near)


@algorithms
def test_rounds_and_volume_are_as_claimed(algorithm: Algorithm) -> None:
    assert not next(broken_claims(algorithm, claim(algorithm, "Rounds"), claim(algorithm, "Sent")), None)


@algorithms
def test_every_algorithm_says_what_it_does_and_whose_it_is(algorithm: Algorithm) -> None:
    assert algorithm.summary.endswith((".", "…"))
    assert algorithm.source


@pytest.mark.parametrize(("rounds", "sent", "found"), [
    ("``2 * size``", "``2 * (size - 1) / size``", "2p is 4, but 2 was counted"),
    ("``2 * (size - 1)``", "``2``", "2 is 2, but 1 was counted"),
    ("at most ``2 * size - 3``", "``2 * (size - 1) / size``", "≤ 2p - 3 is 1, but 2 was counted"),
    ("``2 * (size - 1)``", "at most ``9``", "≤ 9 is never nearly reached"),
    ("``2 * (size - 1)`` for a power of two, else ``2``", "``2 * (size - 1) / size``", "2 is 2, but 4 was counted"),
])
def test_a_wrong_claim_is_found(rounds: str, sent: str, found: str) -> None:
    def function(rank: int, size: int) -> None: ...
    function.__doc__ = f"Ring.\n\nRounds: {rounds}. Sent: {sent}."
    wrong = Algorithm("wrong", TABLE["all-reduce", "ring"].collective, "ring", function, lambda size: size)  # type: ignore[arg-type]
    claimed = claim(wrong, "Rounds"), claim(wrong, "Sent")
    assert found in "\n".join(broken_claims(TABLE["all-reduce", "ring"], *claimed))
