"""Proving algorithms over ranges of sizes and roots."""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..core.algorithm import Algorithm
from .match import Flaw
from .verify import verify

Subject: TypeAlias = tuple[Algorithm, Mapping[str, int]]
"""An algorithm and the parameters it is given, as `find_algorithm` returns them."""

Roots: TypeAlias = Callable[[int], Sequence[int]]
"""Which roots of a number of ranks to prove a rooted algorithm for."""

SMALL = 16
"""Up to this many ranks `some_roots` are all."""


def all_roots(size: int) -> Sequence[int]:
    """Every root."""
    return range(size)


def some_roots(size: int) -> Sequence[int]:
    """Every root of a small number of ranks, and of a larger one: the first, the middle and the last."""
    return range(size) if size <= SMALL else (0, size // 2, size - 1)


class Fault(NamedTuple):
    """What is wrong, at which size and root, and where."""

    size: int
    root: int
    what: str
    rank: int
    round: int | None


@dataclass(frozen=True)
class Proof:
    """What was proved of one algorithm.

    Attributes
    ----------
    algorithm, parameters
        Whose proof it is.
    sizes
        The sizes that were proved, all of them below that of the fault if there is one.
    roots
        For which roots of each size.
    seconds
        The processor time it took.
    fault
        The one of the smallest size, and there of the smallest root, or None.
    """

    algorithm: Algorithm
    parameters: Mapping[str, int]
    sizes: tuple[int, ...]
    roots: Roots
    seconds: float
    fault: Fault | None = None

    @property
    def name(self) -> str:
        """Of the algorithm, with the parameters that are not at their defaults."""
        return self.algorithm.spell(self.algorithm.settings(self.parameters))

    @property
    def flaw(self) -> Flaw | None:
        """The fault as the error that `verify` raises."""
        if self.fault is None:
            return None
        size, root, what, rank, round_ = self.fault
        return Flaw(self.algorithm.schedule(size, root, **self.parameters), what, rank, round_)


def prove(
    subjects: Iterable[Subject], sizes: Iterable[int], roots: Roots = some_roots, *, workers: int | None = None,
    progress: Callable[[int], object] = lambda cases: None,
) -> Iterator[Proof]:
    """Prove algorithms for all sizes on which they run, in the order given.

    Parameters
    ----------
    subjects
        Algorithms with their parameters.
    sizes
        Numbers of ranks; those that an algorithm refuses are left out for it.
    roots
        Which roots a rooted algorithm is proved for.
    workers
        Processes to use; by default as many as this one has cores. What is found does not depend on it.
    progress
        Called with how many more of the cases that `count_cases` counts are decided.

    Yields
    ------
    Proof
        For each algorithm the sizes that are proved, or the smallest size and root that fail.
    """
    subjects = list(subjects)
    tasks = _tasks(subjects, sizes, roots)
    with _prover_of(subjects, workers or _cores()) as prove_all:
        outcomes = prove_all([task for mine in tasks for task in mine])
        for subject, mine in zip(subjects, tasks):
            yield _collected(subject, roots, zip(mine, outcomes), progress)


def count_cases(subjects: Iterable[Subject], sizes: Iterable[int], roots: Roots = some_roots) -> int:
    """How many pairs of size and root there are to prove."""
    return sum(len(task.roots) for mine in _tasks(subjects, sizes, roots) for task in mine)


class _Task(NamedTuple):
    """One algorithm, by its place among the subjects, at one size."""

    subject: int
    size: int
    roots: Sequence[int]


class _Outcome(NamedTuple):
    seconds: float
    fault: Fault | None


def _tasks(subjects: Iterable[Subject], sizes: Iterable[int], roots: Roots) -> list[list[_Task]]:
    """For each subject its tasks, the smallest size first."""
    sizes = sorted(set(sizes))
    return [[_Task(place, size, roots(size) if algorithm.collective.rooted else (0,))
             for size in sizes if algorithm.why_not(size) is None]
            for place, (algorithm, _) in enumerate(subjects)]


def _collected(
    subject: Subject, roots: Roots, results: Iterable[tuple[_Task, _Outcome]], progress: Callable[[int], object],
) -> Proof:
    """Make one proof of the outcomes of one subject; those after the first fault do not count."""
    sizes: list[int] = []
    seconds, fault = 0.0, None
    for task, outcome in results:
        seconds += outcome.seconds
        fault = fault or outcome.fault
        if not fault:
            sizes.append(task.size)
        progress(len(task.roots))
    return Proof(*subject, tuple(sizes), roots, seconds, fault)


class _Prover:
    """Proves tasks one after the other, and nothing more of an algorithm once that has failed."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.subjects = subjects
        self.failed: set[int] = set()

    def prove(self, task: _Task) -> _Outcome:
        if task.subject in self.failed:
            return _Outcome(0.0, None)
        algorithm, parameters = self.subjects[task.subject]
        start = time.process_time()
        with _without_collector():
            fault = _first_fault(algorithm, parameters, task.size, task.roots)
        if fault:
            self.failed.add(task.subject)
        return _Outcome(time.process_time() - start, fault)


def _first_fault(algorithm: Algorithm, parameters: Mapping[str, int], size: int, roots: Iterable[int]) -> Fault | None:
    for root in roots:
        try:
            verify(algorithm.schedule(size, root, **parameters))
        except Flaw as flaw:
            return Fault(size, root, flaw.what, flaw.rank, flaw.round)
    return None


@contextmanager
def _without_collector() -> Iterator[None]:
    """Spare Python the search for cycles among rounds, of which there are millions and which make none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _prover_of(subjects: Sequence[Subject], workers: int) -> Iterator[Callable[[list[_Task]], Iterator[_Outcome]]]:
    """A function that proves tasks, in as many processes, and returns the outcomes in the order of the tasks."""
    # Algorithms cannot be pickled, and need not be where processes are forked. Processes of MPI must not be.
    if workers == 1 or "fork" not in multiprocessing.get_all_start_methods() or "mpi4py.MPI" in sys.modules:
        yield functools.partial(map, _Prover(subjects).prove)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(subjects,)) as pool:
        try:
            yield functools.partial(pool.map, _prove_in_worker)
        finally:
            pool.shutdown(cancel_futures=True)


_worker: _Prover


def _start_worker(subjects: Sequence[Subject]) -> None:
    global _worker
    _worker = _Prover(subjects)


def _prove_in_worker(task: _Task) -> _Outcome:
    return _worker.prove(task)


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
