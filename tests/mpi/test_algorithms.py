"""Every algorithm over MPI, against MPI's own collective and numpy; and the checker finds what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from treering.core import EXSCAN, IN, OUT, Copy, Recv, Reduce, Round, Send, Space
from treering.core.schedule import Operation
from treering.measuring.check import DATATYPES, GUARD, check
from treering.measuring.own import OPERATORS
from treering.running.comm import Comm
from treering.table import TABLE, Algorithm

pytestmark = pytest.mark.mpi

SIZES = (0, 68, 1300)
"""Bytes: no element, some that no number of ranks divides, and enough for every block."""


@pytest.mark.parametrize("algorithm", TABLE.values(), ids=str)
def test_every_algorithm_is_right(ours: Comm, algorithm: Algorithm) -> None:
    outcomes = check(ours, [algorithm], SIZES)
    assert len(outcomes) == (algorithm.why_not(ours.size) is None)
    for outcome in outcomes:
        assert outcome.right, outcome
        assert outcome.elements > 0 or (algorithm.collective is EXSCAN and ours.size == 1)
        assert len(set(ours.allgather(str(outcome)))) == 1
        assert not any(outcome.mpi.values()), f"MPI's own is off: {outcome.mpi}"


@pytest.mark.parametrize(("name", "dtypes"), [
    ("all-reduce halving-doubling", DATATYPES), ("reduce chain", DATATYPES[::4]), ("reduce-scatter ring", DATATYPES[1::3]),
    ("all-gather bruck", DATATYPES),
])
def test_every_datatype_with_every_operator(ours: Comm, name: str, dtypes: tuple[str, ...]) -> None:
    (algorithm,) = [a for a in TABLE.values() if str(a) == name]
    (outcome,) = check(ours, [algorithm], [16 * ours.size + 16], dtypes, OPERATORS)
    assert outcome.right, outcome
    if dtypes is DATATYPES and algorithm.collective.reduces:
        # Sum and product: all but bool. Order: real numbers. Logical: bool and integers. Bitwise: integers. MPI's five pairs.
        defined = 2 * 14 + 2 * 12 + 3 * 9 + 3 * 8 + 2 * 5
        assert len(outcome.undefined) == 12 * 15 - defined


# --- what the checker must find ---------------------------------------------------------------------------------------


Mutation = Callable[[int, Operation], Iterable[Operation]]


def spoilt(name: str, mutate: Mutation) -> Algorithm:
    """An algorithm of the table with its operations changed."""
    (algorithm,) = [a for a in TABLE.values() if str(a) == name]

    def function(rank: int, size: int, *root: int, **parameters: int) -> Iterable[Round]:
        for round_ in algorithm.function(rank, size, *root, **parameters):
            yield Round(*(new for op in round_.operations for new in mutate(rank, op)))

    return replace(algorithm, name="spoilt", function=function)


def drops_reductions(rank: int, op: Operation) -> Iterable[Operation]:
    return [Copy(op.into, op.left)] if rank == 0 and isinstance(op, Reduce) else [op]


def reduces_twice(rank: int, op: Operation) -> Iterable[Operation]:
    return [op, Reduce(op.into, op.into, op.right)] if rank == 0 and isinstance(op, Reduce) else [op]


def swaps_blocks(rank: int, op: Operation) -> Iterable[Operation]:
    def other(block: Any) -> Any:
        return 1 - block if block in (0, 1) else block
    return [Recv(op.peer, *(OUT(other(s.block)) for s in op.slots))] if rank == 1 and isinstance(op, Recv) else [op]


WRONG: dict[str, tuple[str, Mutation]] = {
    "a reduction that is left out": ("all-reduce ring", drops_reductions),
    "a reduction too many": ("reduce binomial", reduces_twice),
    "one in a reduce-scatter": ("reduce-scatter halving", drops_reductions),
    "blocks in each other's place": ("all-gather ring", swaps_blocks),
    "segments in each other's place": ("broadcast chain", swaps_blocks),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_algorithm_is_found(ours: Comm, fault: str) -> None:
    (outcome,) = check(ours, [spoilt(*WRONG[fault])], [1300])
    assert (outcome.wrong > 0) == (ours.size > 1)
    assert outcome.right == (ours.size == 1)
    assert outcome.example is None or "wrong on rank" in outcome.example


def test_bits_that_differ_between_ranks_are_found(ours: Comm) -> None:
    def everyone_begins_with_itself(rank: int, size: int) -> Iterable[Round]:
        """All right but for rounding: every rank adds up in another order."""
        others = [r for r in range(size) if r != rank]
        yield Round(
            *(Send(r, IN(0)) for r in others), *(Recv(r, Space(f"from {r}")(0)) for r in others), Copy(OUT(0), IN(0)),
            *(Reduce(OUT(0), OUT(0), Space(f"from {r}")(0)) for r in others))

    algorithm = replace(TABLE["all-reduce", "linear"], name="disagrees", function=everyone_begins_with_itself)
    (outcome,) = check(ours, [algorithm], [4000])
    assert outcome.wrong == 0
    assert (outcome.differing > 0) == (ours.size > 2)


class Careless(Comm):
    """Damages one byte on the last rank, in a guard zone or in what is sent."""

    damages: Callable[[Any, Any], np.ndarray[Any, Any]]

    def plan(self, collective: Any, sendbuf: Any, recvbuf: Any, *rest: Any, **more: Any) -> Any:
        plan = super().plan(collective, sendbuf, recvbuf, *rest, **more)
        runs = count(1)

        def execute() -> None:
            plan.execute()
            if next(runs) == 2 and self.rank == self.size - 1:  # the last run, so that nothing else goes wrong of it
                self.damages(sendbuf, recvbuf)[...] += 1

        return SimpleNamespace(execute=execute)


@pytest.mark.parametrize("place", ["before", "behind", "input"])
def test_damage_outside_the_result_is_found(ours: Comm, place: str) -> None:
    careless = Careless(ours)
    careless.damages = {
        "before": lambda send, recv: recv.base[GUARD - 1:GUARD],
        "behind": lambda send, recv: recv.base[-GUARD:][:1],
        "input": lambda send, recv: send.view(np.uint8)[-1:],
    }[place]
    (outcome,) = check(careless, [TABLE["all-gather", "ring"]], [64 * ours.size])
    assert outcome.wrong > 0
