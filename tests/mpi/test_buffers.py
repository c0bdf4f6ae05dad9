"""Whatever mpi4py takes as a buffer is taken alike; what cannot be right is refused everywhere before anything is sent."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mpi4py import MPI
from together import like_mpi, refused

from treering.running.comm import Comm

pytestmark = pytest.mark.mpi

Form = Callable[[np.ndarray[Any, Any], int], tuple[Any, Any]]
"""Makes a buffer of some int32 values, in so many parts; returns the buffer and all the memory that it is in."""


def plain(make: Callable[[np.ndarray[Any, Any]], Any]) -> Form:
    def form(values: np.ndarray[Any, Any], parts: int) -> tuple[Any, Any]:
        made = make(values)
        return made, made
    return form


def listed(*rest: Any) -> Form:
    return lambda values, parts: ([values, *rest], values)


def counted(*datatype: Any, start: int | None = None, as_pair: bool = True) -> Form:
    """An array that is longer than is said, perhaps from a displacement on."""
    def form(values: np.ndarray[Any, Any], parts: int) -> tuple[Any, Any]:
        memory = np.full(values.size + 5, -1, np.int32)
        memory[start or 0:][:values.size] = values
        count = values.size // parts
        if start is None:
            return [memory, count, *datatype], memory
        return [memory, *([(count, start)] if as_pair else [count, start]), *datatype], memory
    return form


def within(values: np.ndarray[Any, Any], parts: int) -> tuple[Any, Any]:
    memory = np.full(values.size + 5, -1, np.int32)
    view = memory[2:2 + values.size]
    view[...] = values
    return view, memory


def bytes_of(values: np.ndarray[Any, Any], parts: int) -> tuple[Any, Any]:
    memory = bytearray(values.tobytes())
    return [memory, MPI.INT32_T], memory


FORMS: dict[str, Form] = {
    "array": plain(lambda v: v),
    "rows": plain(lambda v: v.reshape(-1, 1)),
    "Fortran order": plain(lambda v: np.asfortranarray(v.reshape(-1, 2)) if v.size % 2 == 0 else v),
    "view with an offset": within,
    "memoryview": plain(memoryview),
    "array.array": plain(lambda v: array.array("i", v.tolist())),
    "bytearray with a datatype": bytes_of,
    "[a, datatype]": listed(MPI.INT32_T),
    "[a, code]": listed("i"),
    "[a, None]": listed(None),
    "[a, None, datatype]": listed(None, MPI.INT32_T),
    "[a, None, None]": listed(None, None),
    "[a, count]": counted(),
    "[a, count, datatype]": counted(MPI.INT32_T),
    "[a, numpy count]": lambda v, parts: ([v, np.int64(v.size // parts)], v),
    "[a, (count, displacement)]": counted(start=3),
    "[a, (count, displacement), datatype]": counted(MPI.INT32_T, start=3),
    "[a, count, displacement, datatype]": counted(MPI.INT32_T, start=3, as_pair=False),
    "tuple": lambda v, parts: ((v, MPI.INT32_T), v),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_buffer_is_taken_as_mpi4py_takes_it(ours: Comm, form: str) -> None:
    def buffers(comm: Any, sent: int, received: int) -> tuple[Any, Any, Any]:
        send, _ = FORMS[form](np.arange(2 * sent, dtype=np.int32) + 100 * comm.rank, sent)
        recv, memory = FORMS[form](np.full(2 * received, -7, np.int32), received)
        return send, recv, memory

    def all_reduce(comm: Any) -> Any:
        send, recv, memory = buffers(comm, 1, 1)
        comm.Allreduce(send, recv, MPI.SUM)
        return np.array(memory)

    def all_gather(comm: Any) -> Any:
        send, recv, memory = buffers(comm, 1, comm.size)
        comm.Allgather(send, recv)
        return np.array(memory)

    def reduce_scatter(comm: Any) -> Any:
        send, recv, memory = buffers(comm, comm.size, 1)
        comm.Reduce_scatter_block(send, recv, MPI.MAX)
        return np.array(memory)

    def all_to_all(comm: Any) -> Any:
        send, recv, memory = buffers(comm, comm.size, comm.size)
        comm.Alltoall(send, recv)
        return np.array(memory)

    def broadcast(comm: Any) -> Any:
        buffer, memory = FORMS[form](np.arange(4, dtype=np.int32) + comm.rank, 1)
        comm.Bcast(buffer, comm.size - 1)
        return np.array(memory)

    for call in (all_reduce, all_gather, reduce_scatter, all_to_all, broadcast):
        like_mpi(ours, call)


def test_none_stands_for_in_place_as_in_mpi4py(ours: Comm) -> None:
    def all_reduce(comm: Any) -> Any:
        recv = np.arange(3.0) + comm.rank
        comm.Allreduce(None, recv)
        return recv

    def all_gather(comm: Any) -> Any:
        recv = np.arange(comm.size) + 10.0 * comm.rank
        comm.Allgather(None, recv)
        return recv

    like_mpi(ours, all_reduce)
    like_mpi(ours, all_gather)


def test_what_is_sent_may_be_read_only(ours: Comm) -> None:
    fixed = np.arange(4.0 * ours.size)
    fixed.flags.writeable = False
    for call in (lambda comm: comm.Allreduce(fixed, np.empty_like(fixed)), lambda comm: comm.Alltoall(fixed, fixed.copy())):
        call(ours)


@pytest.mark.parametrize("algorithm", ["binomial", "scatter-ring", "scatter-doubling", "chain"])
def test_even_a_broadcasts_payload_may_be_read_only(ours: Comm, algorithm: str) -> None:
    buffer = np.arange(50.0) if ours.rank == 0 else np.empty(50)
    buffer.flags.writeable = ours.rank != 0
    ours.Bcast(buffer, algorithm=algorithm)
    assert (buffer == np.arange(50.0)).all()


def test_a_plan_does_not_broadcast_what_is_read_only(ours: Comm) -> None:
    buffer = np.arange(5.0)
    buffer.flags.writeable = False
    with refused(ours, "the receive buffer is read-only"):
        ours.plan("broadcast", None, buffer)


PAIRS = {
    "FLOAT_INT": np.float32, "DOUBLE_INT": np.float64, "SHORT_INT": np.int16, "TWOINT": np.int32, "LONG_INT": np.int64}


@pytest.mark.parametrize("name", PAIRS)
def test_mpis_pairs_are_taken_even_those_with_a_gap(ours: Comm, name: str) -> None:
    dtype = np.dtype([("value", PAIRS[name]), ("index", np.intc)], align=True)

    def call(comm: Any) -> Any:
        send, recv = np.zeros(3, dtype), np.zeros(3, dtype)
        send["value"], send["index"] = [comm.rank % 2, -comm.rank, 5], comm.rank
        for op in (MPI.MAXLOC, MPI.MINLOC):
            comm.Allreduce([send, getattr(MPI, name)], [recv, getattr(MPI, name)], op)
        return recv.tolist()

    like_mpi(ours, call)


def test_a_contiguous_datatype_of_the_users_is_moved(ours: Comm) -> None:
    triple = MPI.INT32_T.Create_contiguous(3).Commit()

    def call(comm: Any) -> Any:
        send, recv = np.arange(6, dtype=np.int32) + comm.rank, np.zeros(6 * comm.size, np.int32)
        comm.Allgather([send, 2, triple], [recv, 2, triple])
        return recv

    like_mpi(ours, call)
    triple.Free()


def test_types_that_mpi4py_does_not_know_are_moved_bit_by_bit(ours: Comm) -> None:
    for send in (np.array([1.5, ours.rank], ml_dtypes.bfloat16), np.array(["ab", "c"]), np.array([1, 2], ">i4"),
                 np.array([3, ours.rank], "m8[s]"), np.zeros(2, [("a", "i1"), ("b", "f8")])):
        recv = np.empty((ours.size, 2), send.dtype)
        ours.Allgather(send, recv)
        assert recv[ours.rank].tobytes() == send.tobytes()
        assert (recv[:, 0] == send[0]).all()


def test_ranks_may_describe_what_only_moves_by_different_types(ours: Comm) -> None:
    send = np.arange(4, dtype=np.int64) + ours.rank
    recv = np.empty((ours.size, 4), np.int64)
    spec = send if ours.rank % 2 else [send.view(np.uint8), 32, MPI.BYTE]
    ours.Allgather(spec, recv if ours.rank % 2 else recv.view(np.float64))
    assert (recv == np.arange(4) + np.arange(ours.size)[:, None]).all()


def uneven(ours: Comm) -> None:
    ours.Reduce_scatter_block(np.ones(5 * ours.size + 1), np.ones(5))


def overlapping(ours: Comm) -> None:
    x = np.arange(6.0)
    ours.Allreduce(x[:-1], x[1:])


WRONG: dict[str, tuple[Callable[[Comm], object], str]] = {
    "too long": (lambda c: c.Allreduce(np.ones(4), np.ones(6)), "the receive buffer holds 6 elements, not 4"),
    "too short": (lambda c: c.Allgather(np.ones(4), np.ones(4 * c.size - 1)), "has no|holds"),
    "uneven": (uneven, "has no .* equal parts|holds"),
    "two types": (lambda c: c.Allreduce(np.ones(4, "f"), np.ones(4)), "sends float32 and receives float64"),
    "read-only": (lambda c: c.Allreduce(np.ones(2, "u1"), b"ab"), "the receive buffer is read-only"),
    "numpy scalar": (lambda c: c.Allreduce(np.ones(1), np.float64(1)), "the receive buffer is read-only"),
    "number": (lambda c: c.Allreduce(np.ones(1), 1.0), "float is neither"),
    "list of numbers": (lambda c: c.Allreduce([1, 2], np.ones(2)), "int is neither"),
    "objects": (lambda c: c.Bcast(np.array([None])), "Python objects"),
    "strided": (lambda c: c.Allreduce(np.ones(8)[::2], np.ones(4)), "not contiguous"),
    "backwards": (lambda c: c.Allreduce(np.ones(4)[::-1], np.ones(4)), "not contiguous"),
    "more than there is": (lambda c: c.Allreduce([np.ones(4), 5], np.ones(5)), "holds 4 elements, not 5"),
    "behind the end": (lambda c: c.Allreduce([np.ones(4), (2, 3)], np.ones(2)), "holds 4 elements, not 5"),
    "negative count": (lambda c: c.Allreduce([np.ones(4), -1], np.ones(4)), "a count of -1 elements is less than none"),
    "a fraction": (lambda c: c.Allreduce([np.ones(4), 2.0], np.ones(2)), "2.0 is not a count"),
    "no datatype": (lambda c: c.Allreduce([np.ones(4), 4, np.float64], np.ones(4)), "is not an MPI datatype"),
    "no buffer at all": (lambda c: c.Bcast([]), "not as 0 things"),
    "half an element": (lambda c: c.Bcast([np.ones(12, "u1"), MPI.DOUBLE]), "12 bytes are no whole number of elements of 8"),
    "the same twice": (lambda c: [c.Allreduce(x, x) for x in [np.ones(4)]], "overlap; pass MPI.IN_PLACE"),
    "overlapping": (overlapping, "overlap; pass MPI.IN_PLACE"),
    "both in place": (lambda c: c.Allreduce(MPI.IN_PLACE, MPI.IN_PLACE), "stands for the send buffer, and only for that"),
    "the wrong one in place": (lambda c: c.Allreduce(np.ones(4), MPI.IN_PLACE), "stands for the send buffer, and only for"),
    "nothing to receive into": (lambda c: c.Allreduce(np.ones(4), None), "stands for the send buffer, and only for"),
    "a broadcast in place": (lambda c: c.Bcast(MPI.IN_PLACE), "has one buffer only"),
    "in place without counts": (lambda c: c.Reduce_scatter(MPI.IN_PLACE, np.ones(4)), "the counts of all ranks must be given"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_cannot_be_right_is_refused_everywhere(ours: Comm, fault: str) -> None:
    call, message = WRONG[fault]
    with refused(ours, message):
        call(ours)


def test_a_datatype_with_gaps_is_refused(ours: Comm) -> None:
    every_other = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
    with refused(ours, "datatypes with gaps or offsets are not taken yet"):
        ours.Bcast([np.ones(4), 1, every_other])
    every_other.Free()


def test_in_place_has_a_meaning_at_the_root_only(ours: Comm) -> None:
    if ours.rank:
        with pytest.raises(ValueError, match=r"a meaning only at the root, which is rank 0"):
            ours.Reduce(MPI.IN_PLACE, np.ones(3))
