"""Operators: one rule for NaN, ties, overflow and rounding for every rank and algorithm; rank order where it matters."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from matrices import contribution, in_rank_order, product
from mpi4py import MPI
from together import able, fits, like_mpi, refused

from treering.core.algorithm import Algorithm
from treering.core.collective import ALL_REDUCE, REDUCE, REDUCE_SCATTER
from treering.measuring.own import OPERATORS
from treering.running.comm import Comm
from treering.table import algorithms_of

pytestmark = pytest.mark.mpi

ALL_REDUCES = [a.name for a in algorithms_of(ALL_REDUCE)]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
PAIR = np.dtype([("value", np.float64), ("index", np.intc)], align=True)


def all_reduce(ours: Comm, send: np.ndarray[Any, Any], op: MPI.Op, algorithm: str | Algorithm) -> np.ndarray[Any, Any]:
    recv = np.empty_like(send)
    ours.Allreduce(send, recv, op, algorithm=algorithm)
    return recv


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [MPI.MAX, MPI.MIN], ids=["max", "min"])
def test_the_maximum_of_nan_is_nan_whoever_has_it(ours: Comm, op: MPI.Op, dtype: Any) -> None:
    send = np.arange(ours.size + 2).astype(dtype)
    send[ours.rank] = np.nan
    for algorithm in able(ALL_REDUCE, ours.size):
        result = all_reduce(ours, send, op, algorithm)
        assert np.isnan(result[:ours.size].astype(float)).all()
        assert (result[ours.size:] == send[ours.size:]).all()


@pytest.mark.parametrize("op", [MPI.MAXLOC, MPI.MINLOC], ids=["maxloc", "minloc"])
def test_the_first_nan_is_where_the_maximum_is(ours: Comm, op: MPI.Op) -> None:
    """Element k is NaN from rank k on, and the indices run backwards: so the lowest is the last rank's."""
    send = np.zeros(ours.size + 1, PAIR)
    send["value"] = np.where(np.arange(ours.size + 1) <= ours.rank, np.nan, 1)
    send["index"] = 100 - ours.rank
    for algorithm in able(ALL_REDUCE, ours.size):
        result = all_reduce(ours, send, op, algorithm)
        assert np.isnan(result["value"][:-1]).all()
        assert result["value"][-1] == 1
        assert (result["index"] == 101 - ours.size).all()


@pytest.mark.parametrize("algorithm", ALL_REDUCES)
def test_overflow_wraps_or_is_infinite_and_nobody_is_warned(ours: Comm, algorithm: str) -> None:
    if not fits(ALL_REDUCE, algorithm, ours.size):
        return
    # pytest is set to make errors of warnings.
    for dtype in (np.int8, np.uint8, np.int16, np.int64, np.uint64):
        largest = np.iinfo(dtype).max
        result = all_reduce(ours, np.full(3, largest, dtype), MPI.SUM, algorithm)
        assert result.tolist() == [np.array(int(largest) * ours.size % 2**64, np.uint64).astype(dtype)] * 3
    for dtype in FLOATS:
        result = all_reduce(ours, np.full(3, ml_dtypes.finfo(dtype).max, dtype), MPI.SUM, algorithm)
        assert np.isinf(result.astype(float)).all() == (ours.size > 1)
    result = all_reduce(ours, np.array([np.inf if ours.rank else -np.inf]), MPI.SUM, algorithm)
    assert np.isnan(result).all() == (ours.size > 1)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bits_are_added_in_float32_and_rounded_once_a_pair(ours: Comm, dtype: Any) -> None:
    """The linear algorithm adds in rank order, which is easy to do by hand."""
    given = [np.random.default_rng(rank).normal(size=500).astype(dtype) for rank in range(ours.size)]
    for op, by_hand in ((MPI.SUM, np.add), (MPI.PROD, np.multiply)):
        expected = given[0]
        for other in given[1:]:
            expected = by_hand(expected.astype(np.float32), other.astype(np.float32)).astype(dtype)
        result = all_reduce(ours, given[ours.rank], op, "linear")
        assert result.tobytes() == expected.tobytes()


# --- operators of the user's own --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [None, *(a.name for a in algorithms_of(REDUCE) if a.in_order)])
def test_a_product_of_matrices_keeps_rank_order_for_every_root(ours: Comm, algorithm: str | None) -> None:
    with product() as (op, matrix):
        for root in range(ours.size):
            for count in (0, 1, 3):
                recv = np.zeros((count, 2, 2), np.int64)
                ours.Reduce([contribution(ours.rank, count), matrix], [recv, matrix], op, root, algorithm=algorithm)
                assert ours.rank != root or (recv == in_rank_order(ours.size, count)).all()


@pytest.mark.parametrize("algorithm", [None, *(a.name for a in algorithms_of(ALL_REDUCE) if a.in_order)])
def test_and_in_an_all_reduce(ours: Comm, algorithm: str | None) -> None:
    with product() as (op, matrix):
        recv = contribution(ours.rank, 3)
        ours.Allreduce(MPI.IN_PLACE, [recv, matrix], op, algorithm=algorithm)
        assert (recv == in_rank_order(ours.size, 3)).all()


@pytest.mark.parametrize("algorithm", [None, *(a.name for a in algorithms_of(REDUCE_SCATTER) if a.in_order)])
def test_and_in_a_reduce_scatter(ours: Comm, algorithm: str | None) -> None:
    with product() as (op, matrix):
        recv = np.zeros((1, 2, 2), np.int64)
        ours.Reduce_scatter_block([contribution(ours.rank, ours.size), matrix], [recv, matrix], op, algorithm=algorithm)
        assert (recv[0] == in_rank_order(ours.size, ours.size)[ours.rank]).all()


def test_algorithms_that_reorder_are_refused_by_name(ours: Comm) -> None:
    with product() as (op, matrix):
        whole, part = contribution(ours.rank, ours.size), contribution(ours.rank)
        calls = {
            REDUCE: lambda a: ours.Reduce([part, matrix], [part.copy(), matrix], op, algorithm=a),
            ALL_REDUCE: lambda a: ours.Allreduce([part, matrix], [part.copy(), matrix], op, algorithm=a),
            REDUCE_SCATTER: lambda a: ours.Reduce_scatter_block([whole, matrix], [part.copy(), matrix], op, algorithm=a)}
        for collective, call in calls.items():
            for algorithm in able(collective, ours.size):
                if not algorithm.in_order:
                    with refused(ours, f"{algorithm} needs an operator that commutes; those that keep rank order are"):
                        call(algorithm.name)


def test_an_operator_of_the_users_that_commutes_runs_on_every_algorithm(ours: Comm) -> None:
    def largest_magnitude(left: Any, right: Any, datatype: MPI.Datatype) -> None:
        a, b = (np.frombuffer(buffer, np.float64) for buffer in (left, right))
        b[...] = np.where(abs(a) > abs(b), a, b)

    op = MPI.Op.Create(largest_magnitude, commute=True)
    send = np.cos(np.arange(40.0) + 10 * ours.rank)
    for algorithm in able(ALL_REDUCE, ours.size):
        def call(comm: Any) -> Any:
            recv = np.empty_like(send)
            comm.Allreduce(send, recv, op)
            return recv
        like_mpi(ours, call, algorithm)
    op.Free()


def test_elements_that_mpi_could_not_hand_to_a_users_operator_are_refused(ours: Comm) -> None:
    with product() as (op, _):
        for dtype in (ml_dtypes.bfloat16, ">f8", PAIR):
            with refused(ours, "MPI has no datatype for elements of type"):
                ours.Allreduce(np.zeros(2, dtype), np.zeros(2, dtype), op)


# --- what MPI does not define -----------------------------------------------------------------------------------------

INTEGERS = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}
REALS = {"float16", "bfloat16", "float32", "float64", "longdouble"}
COMPLEX = {"complex64", "complex128", "clongdouble"}
DEFINED = {
    "sum": INTEGERS | REALS | COMPLEX, "prod": INTEGERS | REALS | COMPLEX, "max": INTEGERS | REALS, "min": INTEGERS | REALS,
    "land": INTEGERS | {"bool"}, "lor": INTEGERS | {"bool"}, "lxor": INTEGERS | {"bool"},
    "band": INTEGERS, "bor": INTEGERS, "bxor": INTEGERS, "maxloc": {"pair"}, "minloc": {"pair"},
}
NEITHER = {"S3", "m8[s]", "V4"}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_defined_as_in_the_standard_and_refused_everywhere_else(ours: Comm, name: str) -> None:
    for spelled in sorted(INTEGERS | REALS | COMPLEX | NEITHER | {"bool", "pair"}):  # on all ranks in the same order
        dtype = PAIR if spelled == "pair" else np.dtype(spelled)
        send, recv = np.zeros(2, dtype), np.zeros(2, dtype)
        if spelled in DEFINED[name]:
            ours.Allreduce(send, recv, OPERATORS[name])
        else:
            with refused(ours, "is not defined for elements of type"):
                ours.Allreduce(send, recv, OPERATORS[name])


def test_plain_bytes_have_bits_and_no_sum(ours: Comm) -> None:
    send, recv = np.array([1, 2], np.uint8), np.zeros(2, np.uint8)
    ours.Allreduce([send, MPI.BYTE], [recv, MPI.BYTE], MPI.BOR)
    assert (recv == send).all()
    with refused(ours, "sum is not defined for elements of type MPI_BYTE"):
        ours.Allreduce([send, MPI.BYTE], [recv, MPI.BYTE], MPI.SUM)


@pytest.mark.parametrize("op", [MPI.OP_NULL, MPI.REPLACE, MPI.NO_OP], ids=["null", "replace", "no-op"])
def test_operators_that_do_not_reduce_are_refused(ours: Comm, op: MPI.Op) -> None:
    with refused(ours, "not one of those that reduce"):
        ours.Allreduce(np.ones(1), np.ones(1), op)
