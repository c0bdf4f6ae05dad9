"""The communicator is a drop-in: every method, in place and not, for every root, does what MPI's own does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from together import Asking, first, is_mpich, like_mpi, own, refused

from treering.core.collective import BARRIER
from treering.core.errors import Refused
from treering.core.layout import total
from treering.readers.count import sent_by
from treering.running.comm import Comm
from treering.running.lane import Lane
from treering.table import TABLE, Algorithm

pytestmark = pytest.mark.mpi

N = 3
"""Elements of one rank's part."""


def mine(comm: Any, parts: int = 1) -> np.ndarray[Any, Any]:
    """What a rank contributes: another number at every place of every rank."""
    return np.arange(parts * N, dtype=np.int32) + 1000 * (comm.rank + 1)


def room(parts: int = 1) -> np.ndarray[Any, Any]:
    return np.full(parts * N, -1, np.int32)


def placed(comm: Any, parts: int) -> np.ndarray[Any, Any]:
    """A buffer for all with the own part in its place."""
    buffer = room(parts)
    buffer[comm.rank * N:(comm.rank + 1) * N] = mine(comm)
    return buffer


Call = Callable[[Any, int, bool], Any]
"""``call(comm, root, in_place)`` and what came of it, on whatever communicator."""


def broadcast(comm: Any, root: int, in_place: bool) -> Any:
    buffer = mine(comm)
    comm.Bcast(buffer, root)
    return buffer


def scatter(comm: Any, root: int, in_place: bool) -> Any:
    send, recv = mine(comm, comm.size), room()
    at_root = comm.rank == root
    comm.Scatter(send if at_root else None, MPI.IN_PLACE if at_root and in_place else recv, root)
    return send, None if at_root and in_place else recv


def gather(comm: Any, root: int, in_place: bool) -> Any:
    at_root = comm.rank == root
    recv = placed(comm, comm.size) if at_root and in_place else room(comm.size)
    comm.Gather(MPI.IN_PLACE if at_root and in_place else mine(comm), recv if at_root else None, root)
    return recv


def reduce(comm: Any, root: int, in_place: bool) -> Any:
    at_root = comm.rank == root
    recv = mine(comm) if at_root and in_place else room()
    comm.Reduce(MPI.IN_PLACE if at_root and in_place else mine(comm), recv if at_root else None, MPI.SUM, root)
    return recv


def all_gather(comm: Any, root: int, in_place: bool) -> Any:
    recv = placed(comm, comm.size) if in_place else room(comm.size)
    comm.Allgather(MPI.IN_PLACE if in_place else mine(comm), recv)
    return recv


def all_reduce(comm: Any, root: int, in_place: bool) -> Any:
    recv = mine(comm) if in_place else room()
    comm.Allreduce(MPI.IN_PLACE if in_place else mine(comm), recv, MPI.MAX)
    return recv


def reduce_scatter_block(comm: Any, root: int, in_place: bool) -> Any:
    recv = mine(comm, comm.size) if in_place else room()
    comm.Reduce_scatter_block(MPI.IN_PLACE if in_place else mine(comm, comm.size), recv)
    return recv[:N]  # what lies behind it in place is nobody's business


def reduce_scatter(comm: Any, root: int, in_place: bool) -> Any:
    counts = [rank % 3 for rank in range(comm.size)]
    own, data = counts[comm.rank], mine(comm, comm.size)[:sum(counts)]
    recv = data if in_place else room()[:own]
    comm.Reduce_scatter(MPI.IN_PLACE if in_place else data, recv, counts, MPI.SUM)
    return recv[:own]


def all_to_all(comm: Any, root: int, in_place: bool) -> Any:
    recv = mine(comm, comm.size) if in_place else room(comm.size)
    comm.Alltoall(MPI.IN_PLACE if in_place else mine(comm, comm.size), recv)
    return recv


def scan(comm: Any, root: int, in_place: bool) -> Any:
    recv = mine(comm) if in_place else room()
    comm.Scan(MPI.IN_PLACE if in_place else mine(comm), recv, MPI.SUM)
    return recv


def exscan(comm: Any, root: int, in_place: bool) -> Any:
    recv = mine(comm) if in_place else room()
    comm.Exscan(MPI.IN_PLACE if in_place else mine(comm), recv, MPI.SUM)
    return recv if comm.rank else None  # what rank 0 holds is undefined


def barrier(comm: Any, root: int, in_place: bool) -> Any:
    comm.Barrier()


CALLS: dict[str, list[Call]] = {
    "broadcast": [broadcast], "scatter": [scatter], "gather": [gather], "reduce": [reduce], "all-gather": [all_gather],
    "all-reduce": [all_reduce], "reduce-scatter": [reduce_scatter_block, reduce_scatter], "all-to-all": [all_to_all],
    "scan": [scan], "exscan": [exscan], "barrier": [barrier]}


@pytest.mark.parametrize("in_place", [False, True], ids=["separate", "in-place"])
@pytest.mark.parametrize("algorithm", [None, *TABLE.values()], ids=str)
def test_every_method_does_what_mpi_does(ours: Comm, algorithm: Algorithm | None, in_place: bool) -> None:
    if algorithm and algorithm.why_not(ours.size):
        return
    for name in [algorithm.collective.name] if algorithm else CALLS:
        for call in CALLS[name]:
            for root in {ours.size // 2} if algorithm else {0, ours.size // 2, ours.size - 1}:
                like_mpi(ours, lambda comm: call(comm, root, in_place), algorithm and algorithm.name)  # noqa: B023


def test_an_algorithm_is_asked_for_by_name_with_parameters_or_by_its_record(ours: Comm) -> None:
    record = TABLE["broadcast", "chain"]
    many = replace(record, name="fifths", parameters=(replace(record.parameters[0], default=5, best=None),))
    suited = "chain:segments=1" if ours.size > 1 else "chain"  # to a payload as short as this
    for algorithm, name in [("chain:segments=2", "chain:segments=2"), ("Chain", suited), (record, suited), (many, "fifths")]:
        like_mpi(ours, lambda comm: broadcast(comm, 0, False), algorithm)
        with ours.tracing() as trace:
            ours.Bcast(mine(ours), algorithm=algorithm)
        assert {entry.name for entry in trace.entries} <= {f"broadcast {name}"}
        assert ours.explain("bcast", 100, algorithm=algorithm).name == name


def test_what_runs_without_asking_is_what_explain_says(ours: Comm) -> None:
    for name in CALLS:
        with ours.tracing() as trace:
            CALLS[name][0](ours, 0, False)
        units = total(next(c.collective for c in TABLE.values() if c.collective.name == name), ours.size, N)
        assert {entry.name for entry in trace.entries} <= {f"{name} {ours.explain(name, 4 * units).name}"}
        assert trace.entries or ours.size == 1


def test_calls_that_differ_in_one_thing_only_do_not_share_what_was_remembered(ours: Comm) -> None:
    for name in CALLS:
        for in_place in (False, True):
            for root in (0, ours.size - 1):
                like_mpi(ours, lambda comm: CALLS[name][0](comm, root, in_place))  # noqa: B023
    chosen = []
    for dtype in (np.int8, np.int64):
        with ours.tracing() as trace:
            ours.Allreduce(MPI.IN_PLACE, np.zeros(20_000, dtype))
        chosen.append({entry.name for entry in trace.entries})
    assert chosen == [{"all-reduce doubling"}, {"all-reduce ring"}] or ours.size == 1


@pytest.mark.parametrize(("algorithm", "message"), [
    ("rnig", "all-reduce has no algorithm 'rnig'; it has ring"),
    ("ring:segments=3", "all-reduce ring has no parameter 'segments'"),
    (TABLE["broadcast", "binomial"], "broadcast binomial is no algorithm for all-reduce"),
    (42, "by its name or its record, not by 42"),
    (["ring"], "by its name or its record"),
])
def test_an_algorithm_that_cannot_run_is_refused_everywhere(ours: Comm, algorithm: Any, message: str) -> None:
    recv = room()
    with refused(ours, message):
        ours.Allreduce(mine(ours), recv, algorithm=algorithm)
    assert (recv == -1).all()


def test_an_algorithm_for_powers_of_two_is_refused_on_others(ours: Comm) -> None:
    if ours.size & (ours.size - 1):
        with refused(ours, f"all-to-all exchange needs a number of ranks that is a power of two, not {ours.size}"):
            ours.Alltoall(mine(ours, ours.size), room(ours.size), algorithm="exchange")


ROOTS = {
    "too large": (lambda n: n, "root . is not one of the ranks"),
    "negative": (lambda n: -1, "root -1 is not one of the ranks"),
    "no number": (lambda n: "0", "a root is a rank, not '0'"), "a fraction": (lambda n: 0.0, "a root is a rank, not 0.0"),
    "none": (lambda n: None, "a root is a rank, not None"),
}


@pytest.mark.parametrize("root", ROOTS)
def test_a_bad_root_is_refused_everywhere(ours: Comm, root: str) -> None:
    make, message = ROOTS[root]
    with refused(ours, message):
        ours.Bcast(mine(ours), make(ours.size))
    with refused(ours, message):
        ours.Reduce(mine(ours), room(), root=make(ours.size))


def test_an_operator_must_be_one(ours: Comm) -> None:
    for op, message in ((None, "None is not an operator"), ("sum", "'sum' is not an operator"), (MPI.OP_NULL, "reduce")):
        with refused(ours, message):
            ours.Allreduce(mine(ours), room(), op)


def test_new_communicators_are_of_the_same_kind(ours: Comm) -> None:
    group = ours.Get_group()
    halves = ours.Split(ours.rank % 2, -ours.rank)
    node = ours.Split_type(MPI.COMM_TYPE_SHARED)
    for new in (ours.Dup(), ours.Clone(), ours.Create(group), ours.Create_group(group), node, halves):
        assert type(new) is Comm
        like_mpi(new, lambda comm: all_reduce(comm, 0, False))
        assert Lane.of(new).comm != Lane.of(ours).comm
        new.Free()
    group.Free()


def test_no_communicator_is_refused(ours: Comm) -> None:
    with pytest.raises(Refused, match=r"not MPI\.COMM_NULL"):
        Comm(MPI.COMM_NULL)
    nobody = ours.Split(MPI.UNDEFINED)
    with pytest.raises(MPI.Exception):
        nobody.Allreduce(mine(ours), room())


def test_our_messages_never_meet_the_users(ours: Comm) -> None:
    box = np.full(1, -1, np.int64)
    waiting = ours.Irecv(box, MPI.ANY_SOURCE, MPI.ANY_TAG)
    for name in CALLS:
        for call in CALLS[name]:
            call(ours, 0, False)
    assert not waiting.Test()
    ours.Barrier()  # so that none sends before another has looked
    ours.Send(np.array([ours.rank]), (ours.rank + 1) % ours.size, tag=7)
    waiting.Wait()
    assert box == (ours.rank - 1) % ours.size


def test_overlapping_communicators_do_not_disturb_each_other(ours: Comm) -> None:
    others = ours.Split(int(ours.rank == 0), ours.rank)
    with first(ours, ours.size - 1 or 1) as lower:
        for comm in filter(None, (lower, others, ours, lower, others)):
            like_mpi(comm, lambda c: all_to_all(c, 0, True))
    others.Free()


def test_the_private_communicator_goes_with_the_callers(ours: Comm) -> None:
    """MPI's supply of communicators is small: MPICH's ends at 2048."""
    for _ in range(3000 if is_mpich() and ours.size == 2 else 30):
        comm = ours.Dup()
        comm.Allreduce(MPI.IN_PLACE, np.ones(1))
        comm.Free()


def test_one_communicator_has_one_private_one_however_often_it_is_wrapped(ours: Comm) -> None:
    assert Lane.of(Comm(ours)) is Lane.of(ours) is Lane.of(own(ours))


def test_traced_bytes_are_the_counted_ones(ours: Comm) -> None:
    """What is reduced is cut into blocks of whole elements, what only moves into blocks of bytes."""
    for algorithm in TABLE.values():
        if algorithm.why_not(ours.size):
            continue
        with ours.tracing() as trace:
            CALLS[algorithm.collective.name][0](Asking(ours, algorithm), 0, False)
        collective = algorithm.collective
        choice = ours.explain(collective, 4 * total(collective, ours.size, N), algorithm=algorithm)
        schedule = algorithm.schedule(ours.size, **dict(choice.parameters))
        unit = 4 if collective.reduces else 1
        counted = (1, 1) if collective is BARRIER else (4 * N // unit, unit)  # a barrier's payload is one byte
        assert trace.sent_bytes == sent_by(schedule, ours.rank, *counted)
        assert own(ours).allreduce(trace.sent_bytes - trace.received_bytes) == 0
        assert all(entry.start <= entry.end for entry in trace.entries)


def test_a_trace_ends_with_its_context_and_a_new_one_starts_empty(ours: Comm) -> None:
    with ours.tracing() as outer:
        all_reduce(ours, 0, False)
        seen = len(outer.entries)
        with ours.tracing() as inner:
            all_reduce(ours, 0, False)
    all_reduce(ours, 0, False)
    assert (len(outer.entries), len(inner.entries)) == (seen, seen)
