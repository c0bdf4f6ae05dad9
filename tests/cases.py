"""Schedules to test with: those of the table, and others written out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from treering.core import Algorithm, Case, Collective, Round, Schedule
from treering.readers.sweep import all_roots
from treering.table import TABLE

ALGORITHMS = list(TABLE.values())


def schedules(
    algorithm: Algorithm, sizes: Iterable[int], roots: Callable[[int], Sequence[int]] = all_roots,
) -> Iterator[Schedule]:
    """The schedules of an algorithm for all sizes on which it runs, and all roots."""
    for size in sizes:
        if algorithm.why_not(size) is None:
            for root in roots(size) if algorithm.collective.rooted else [0]:
                yield algorithm.schedule(size, root)


def written(schedule: Schedule) -> list[list[Round]]:
    """All rounds of all ranks, to be changed."""
    return [list(schedule.rounds(rank)) for rank in range(schedule.size)]


def rewritten(schedule: Schedule, programs: Sequence[Sequence[Round]]) -> Schedule:
    """The same schedule with other rounds."""
    return replace(schedule, program=programs.__getitem__)


def by_hand(
    collective: Collective, size: int, program: Callable[[int], Iterable[Round]], *, blocks: int | None = None, root: int = 0,
    in_order: bool = False, name: str = "by hand",
) -> Schedule:
    """A schedule without an algorithm."""
    case = Case(size, root, blocks or collective.units(size))
    return Schedule(name=name, collective=collective, case=case, program=program, in_order=in_order)
