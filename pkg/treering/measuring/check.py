"""Checking for real: every algorithm, over MPI, against MPI's own collective and against numpy.

Receive buffers are poisoned and stand between guard zones; what must not change is compared afterwards. Elements are compared
bit by bit where every order of reduction gives the same bits, and within the bound of rounding where it does not; where all
ranks end with the same data, their bits must agree.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import ml_dtypes  # noqa: F401 — makes numpy know the name bfloat16
import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ..core.algorithm import Algorithm
from ..core.collective import ALL_REDUCE, BARRIER, BROADCAST
from ..core.errors import Refused
from ..running.buffers import Buffer
from ..running.comm import Comm
from ..running.kinds import kind_of
from ..running.operators import operator_on
from .inputs import POISON, Sample
from .own import OPERATORS, OWN, PAIRS, as_message, defines

DATATYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128")
IDEMPOTENT = frozenset({"max", "min", "land", "lor", "band", "bor", "maxloc", "minloc"})
GUARD = 64
"""Bytes before and behind every receive buffer that must stay as they were."""


@dataclass
class Outcome:
    """What the checks of one algorithm came to.

    Attributes
    ----------
    cases, elements
        How many calls were made on every rank, and how many elements were compared on all of them.
    wrong
        Elements that differ from numpy's result, on all ranks; a guard zone or input that was changed counts as one.
    differing
        Calls after which ranks that must have the same bits had not.
    mpi
        For each operation that MPI's own collective defines, in how many elements its result differs from numpy's.
    undefined
        Operators that are not defined for a datatype, and so were left out.
    example
        The first case that went wrong.
    """

    collective: str
    algorithm: str
    cases: int = 0
    elements: int = 0
    wrong: int = 0
    differing: int = 0
    mpi: dict[str, int] = field(default_factory=dict)
    undefined: list[str] = field(default_factory=list)
    example: str | None = None

    @property
    def right(self) -> bool:
        return not (self.wrong or self.differing)


def check(
    comm: Comm, algorithms: Iterable[Algorithm], sizes: Iterable[int], dtypes: Iterable[str] = ("float32",),
    ops: Iterable[str] = ("sum",), progress: Callable[[Outcome], object] = lambda outcome: None,
) -> list[Outcome]:
    """Run algorithms and compare; collective over the communicator.

    Parameters
    ----------
    sizes
        Bytes of the payload, rounded down to whole elements of every rank's part.
    dtypes, ops
        Names such as ``"float32"`` and ``"maxloc"``; a datatype means, for MAXLOC and MINLOC, the pair of it with an int.
    progress
        Called with each algorithm's outcome when it is complete.

    Returns
    -------
    list of Outcome
        The same on every rank, one for each algorithm that runs on this number of ranks.
    """
    sizes, dtypes, ops = list(sizes), list(dtypes), list(ops)
    outcomes = []
    for algorithm in algorithms:
        if algorithm.why_not(comm.size):
            continue
        outcome = Outcome(algorithm.collective.name, algorithm.name)
        for sample in _samples(algorithm, comm.size, sizes, dtypes, ops, outcome):
            _check_sample(comm, algorithm, sample, outcome)
        progress(outcome)
        outcomes.append(outcome)
    return outcomes


def element_type(name: str, op: str) -> np.dtype[Any]:
    """The element type of a name, or the pair with an index that MAXLOC and MINLOC need.

    Raises
    ------
    Refused
        If there is none.
    """
    try:
        dtype = np.dtype(name)
    except TypeError:
        raise Refused(f"no datatype is called {name!r}; there are {', '.join(DATATYPES)}") from None
    if op not in ("maxloc", "minloc"):
        return dtype
    if dtype.str[1:] not in PAIRS:
        raise Refused(f"MPI has no pair of {name} and an index")
    return np.dtype([("value", dtype), ("index", np.intc)], align=True)


def _samples(
    algorithm: Algorithm, size: int, sizes: list[int], dtypes: list[str], ops: list[str], outcome: Outcome,
) -> Iterator[Sample]:
    """All data with which one algorithm is checked."""
    collective = algorithm.collective
    roots = sorted({0, size // 2, size - 1}) if collective.rooted else [0]
    if collective.repeats:  # only where a value reduced with itself stays what it is
        ops = [name for name in ops if name in IDEMPOTENT] or ["max"]
    for name, dtype_name in product(ops if collective.reduces else ["sum"], dtypes):
        try:
            dtype = element_type(dtype_name, name)
            if collective.reduces:
                operator_on(OPERATORS[name], Buffer(np.empty(0, dtype)))
        except Refused:
            outcome.undefined.append(f"{name} of {dtype_name}")
            continue
        rounding = [True, False] if collective.reduces and rounds_off(name, dtype) else [True]
        if name == "prod" and dtype.kind == "c":
            rounding = [False]  # the sign of a zero part depends on the order, so no data are exact
        units = min(collective.units(size), size)
        for nbytes, root, exact in product(sizes, roots, rounding):
            yield Sample(collective, size, root, nbytes // dtype.itemsize // units, dtype, name, exact)


def rounds_off(op: str, dtype: np.dtype[Any]) -> bool:
    """Whether the bits of a reduction can depend on its order."""
    return op in ("sum", "prod") and kind_of(dtype) in "fc"


def _check_sample(comm: Comm, algorithm: Algorithm, sample: Sample, outcome: Outcome) -> None:
    expected, slack = sample.expected(comm.rank)
    own = _own_result(comm, sample)
    mpi_wrong = -1 if own is None else _wrong(own, expected, slack)
    for in_place in [False] if sample.collective.one_buffer else [False, True]:
        result, damage = _our_result(comm, algorithm, sample, in_place)
        wrong = _wrong(result, expected, slack) + damage
        everyones = np.empty((comm.size, 4), np.int64)
        mine = np.array([wrong, mpi_wrong, _print_of(result), expected.size], np.int64)
        MPI.Intracomm.Allgather(comm, mine, everyones)
        same = len(set(everyones[:, 2])) == 1 or sample.collective not in (ALL_REDUCE, BARRIER, BROADCAST)
        outcome.cases += 1
        outcome.elements += int(everyones[:, 3].sum())
        outcome.wrong += int(everyones[:, 0].sum())
        outcome.differing += not same
        if mpi_wrong >= 0 and not in_place:
            outcome.mpi[sample.operation] = outcome.mpi.get(sample.operation, 0) + int(everyones[:, 1].sum())
        if not outcome.right and outcome.example is None:
            bad = [str(rank) for rank, row in enumerate(everyones) if row[0]] or ["all"]
            outcome.example = (
                f"{sample.operation}, {sample.count} elements a part, root {sample.root}, "
                f"{'in place' if in_place else 'separate buffers'}: wrong on rank {', '.join(bad)}")


def _our_result(comm: Comm, algorithm: Algorithm, sample: Sample, in_place: bool) -> tuple[NDArray[Any], int]:
    """What our collective leaves in this rank's receive buffer, and how much it damaged besides."""
    rank, collective = comm.rank, sample.collective
    op = OPERATORS[sample.op] if collective.reduces else None
    given, result = (len(collective.place(rank, sample.case, space)) for space in ("in", "out"))
    if in_place and given and result:
        buffer = _Guarded(sample.in_place(rank))
        at_root = given > result and not collective.front
        sendbuf, recvbuf = (buffer.data, MPI.IN_PLACE) if at_root else (MPI.IN_PLACE, buffer.data)
        comm.plan(collective, sendbuf, recvbuf, sample.root, op, algorithm=algorithm).execute()
        start = rank * sample.count if at_root else 0
        return buffer.data[start:start + result * sample.count], buffer.damage()
    send, receive = sample.given(rank), _Guarded(sample.receives(rank))
    before = send.view(np.uint8).copy()  # as bytes: a copy of pairs leaves their padding out
    plan = comm.plan(collective, send, receive.data, sample.root, op, algorithm=algorithm)
    for _ in range(1 if in_place else 2):  # a plan can be run again; in place, its input would be the first result
        plan.execute()
    return receive.data[:result * sample.count], receive.damage() + int(before.tobytes() != send.tobytes())


class _Guarded:
    """A buffer between two zones of poison."""

    def __init__(self, data: NDArray[Any]) -> None:
        self.memory = np.full(data.nbytes + 2 * GUARD, POISON, np.uint8)
        self.data = self.memory[GUARD:GUARD + data.nbytes].view(data.dtype)
        self.data[...] = data

    def damage(self) -> int:
        zones = (self.memory[:GUARD], self.memory[GUARD + self.data.nbytes:])
        return sum(int((zone != POISON).any()) for zone in zones)


def _own_result(comm: Comm, sample: Sample) -> NDArray[Any] | None:
    """What MPI's own collective gives, if it defines the operation."""
    reduces = sample.collective.reduces
    if sample.collective is BARRIER or (reduces and not defines(sample.op, sample.dtype)):
        return None
    send, recv = sample.given(comm.rank), sample.receives(comm.rank)
    world = MPI.Intracomm(comm)
    OWN[sample.collective](world, as_message(send, reduces), as_message(recv, reduces), sample.root, OPERATORS[sample.op])
    return recv


def _wrong(result: NDArray[Any], expected: NDArray[Any], slack: NDArray[Any]) -> int:
    """How many elements differ."""
    if result.size != expected.size:
        return max(result.size, expected.size)
    if not result.size:
        return 0
    if result.dtype.names:  # padding between the fields of a pair has no value
        return int(np.any([_bits_differ(result[name], expected[name]) for name in result.dtype.names], axis=0).sum())
    differ = _bits_differ(result, expected)
    if slack.any():
        wide = np.clongdouble if result.dtype.kind == "c" else np.longdouble
        differ &= ~(np.abs(result.astype(wide) - expected.astype(wide)) <= slack)
    return int(differ.sum())


def _bits_differ(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    raw = [np.ascontiguousarray(x).view(np.uint8).reshape(x.size, -1) for x in (a, b)]
    return np.any(raw[0] != raw[1], axis=1)


def _print_of(result: NDArray[Any]) -> int:
    """A fingerprint of the values."""
    parts = [result[name] for name in result.dtype.names] if result.dtype.names else [result]
    return zlib.crc32(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
