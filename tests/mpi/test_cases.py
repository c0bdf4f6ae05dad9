"""What broke other people's software. Each case is known by its number in the collection from which it was taken."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from matrices import contribution, product
from mpi4py import MPI
from together import Asking, able, first, fits, own, refused

from treering.core.collective import ALL_REDUCE, BARRIER, BROADCAST, REDUCE, REDUCE_SCATTER, Case
from treering.core.errors import Refused
from treering.core.layout import elements
from treering.measuring.own import OWN
from treering.running.comm import Comm
from treering.table import TABLE, algorithms_of

pytestmark = pytest.mark.mpi

PAIR = np.dtype([("value", np.float64), ("index", np.intc)], align=True)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

all_reduces = pytest.mark.parametrize("algorithm", [a.name for a in algorithms_of(ALL_REDUCE)])


def all_reduced(comm: Comm, given: Any, dtype: Any, op: MPI.Op = MPI.SUM, algorithm: str | None = None) -> Any:
    send = np.atleast_1d(np.array(given, dtype))
    recv = np.empty_like(send)
    comm.Allreduce(send, recv, op, algorithm=algorithm)
    return recv


@pytest.mark.parametrize(("size", "expected"), [
    (3, [[8, 9], [3, 4]]), (4, [[35, 41], [15, 16]]), (5, [[199, 216], [79, 91]])])
def test_c01_products_of_matrices_come_in_rank_order(ours: Comm, size: int, expected: list[list[int]]) -> None:
    with first(ours, size) as comm, product() as (op, matrix):
        for root in range(size) if comm else ():
            for algorithm in [None, *(a for a in algorithms_of(REDUCE) if a.in_order)]:
                recv = np.zeros((1, 2, 2), np.int64)
                comm.Reduce([contribution(comm.rank), matrix], [recv, matrix], op, root, algorithm=algorithm)
                assert comm.rank != root or recv[0].tolist() == expected


@all_reduces
@pytest.mark.parametrize("size", [3, 4, 5])
def test_c02_ties_go_to_the_lowest_index(ours: Comm, size: int, algorithm: str) -> None:
    with first(ours, size) as comm:
        if comm and fits(ALL_REDUCE, algorithm, size):
            r = comm.rank
            assert all_reduced(comm, (1, r), PAIR, MPI.MAXLOC, algorithm).tolist() == [(1, 0)]
            assert all_reduced(comm, (2 if r in (1, 2) else 5, r), PAIR, MPI.MINLOC, algorithm).tolist() == [(2, 1)]
            assert all_reduced(comm, (7, 10 - r), PAIR, MPI.MAXLOC, algorithm).tolist() == [(7, 11 - size)]


@all_reduces
def test_c04_integers_wrap(ours: Comm, algorithm: str) -> None:
    for size, small, unsigned in ((2, -36, 254), (3, 64, 253), (4, -92, 252)):
        with first(ours, size) as comm:
            if comm and fits(ALL_REDUCE, algorithm, size):
                assert all_reduced(comm, 100 if comm.rank else 120, np.int8, algorithm=algorithm) == small
                assert all_reduced(comm, 255, np.uint8, algorithm=algorithm) == unsigned
                wrapped = (size * (2**63 - 1) + 2**63) % 2**64 - 2**63
                assert all_reduced(comm, 2**63 - 1, np.int64, algorithm=algorithm) == wrapped
                if size == 2:
                    assert (all_reduced(comm, [16384] * 8, np.int16, algorithm=algorithm) == -32768).all()


@all_reduces
def test_c06_sixteen_bits(ours: Comm, algorithm: str) -> None:
    with first(ours, 2) as comm:
        assert comm is None or np.isinf(all_reduced(comm, 40000, np.float16, algorithm=algorithm)).all()
    with first(ours, 4) as comm:
        if comm:
            for dtype in (np.float16, BFLOAT16):
                assert all_reduced(comm, np.ones(5), dtype, algorithm=algorithm).tolist() == [4] * 5
            (result,) = all_reduced(comm, 1 if comm.rank else 256, BFLOAT16, algorithm=algorithm)
            assert result in (256, 258, 260)
            assert len(set(own(comm).allgather(result.tobytes()))) == 1


def test_c06_sixteen_bits_move_bit_by_bit(ours: Comm) -> None:
    bits = np.arange(2 ** 16, dtype=np.uint16)  # every number there is, and every NaN
    for dtype in (np.float16, BFLOAT16):
        recv = np.empty((ours.size, bits.size), dtype)
        ours.Allgather(bits.view(dtype), recv)
        assert (recv.view(np.uint16) == bits).all()


@pytest.mark.parametrize("collective", [ALL_REDUCE, REDUCE, REDUCE_SCATTER], ids=str)
def test_c08_fewer_elements_than_ranks_or_not_divisible(ours: Comm, collective: Any) -> None:
    n = ours.size
    for algorithm in able(collective, n):
        for count in {0: 0, 1: 1, 2: 2, n - 1: 3, n: 4, n + 1: 5, 2 * n - 1: 6}:
            parts = n if collective is REDUCE_SCATTER else 1
            send, recv = np.arange(parts * count) + ours.rank, np.full(count, -1)
            OWN[collective](Asking(ours, algorithm), send, recv, n - 1, MPI.SUM)
            start = ours.rank * count if parts > 1 else 0
            if collective is not REDUCE or ours.rank == n - 1:
                assert (recv == n * np.arange(start, start + count) + n * (n - 1) // 2).all()


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling"])
def test_c08_a_prime_number_of_elements(ours: Comm, algorithm: str) -> None:
    count = 1_000_003
    assert (all_reduced(ours, np.arange(count) % 7, np.uint8, algorithm=algorithm) == np.arange(count) % 7 * ours.size).all()


@pytest.mark.parametrize("algorithm", [a.name for a in algorithms_of(REDUCE_SCATTER)])
def test_c08_the_second_half_of_two(ours: Comm, algorithm: str) -> None:
    with first(ours, 2) as comm:
        if comm:
            recv = np.empty(6, np.int64)
            comm.Reduce_scatter(np.r_[1:7, 11:17], recv, [6, 6], algorithm=algorithm)
            assert recv.tolist() == [[2, 4, 6, 8, 10, 12], [22, 24, 26, 28, 30, 32]][comm.rank]


@pytest.mark.parametrize(("count", "blocks"), [(13, 8), (13, 13), (100_000, 1600)])
def test_c08_blocks_differ_by_one_at_most(count: int, blocks: int) -> None:
    sizes = [elements(ALL_REDUCE, Case(blocks, 0, blocks), count)(block) for block in range(blocks)]
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("algorithm", [a.name for a in algorithms_of(BROADCAST)])
def test_c10_any_number_of_bytes_from_any_root(ours: Comm, algorithm: str) -> None:
    n = ours.size
    if not fits(BROADCAST, algorithm, n):
        return
    for size in (0, 1, 2, n - 1, n + 1, 31999, 32000, 32001):
        payload = (np.arange(size) % 251).astype(np.uint8)
        for root in range(n):
            buffer = payload.copy() if ours.rank == root else np.full(size, 255, np.uint8)
            ours.Bcast(buffer, root, algorithm=algorithm)
            assert (buffer == payload).all()


@all_reduces
def test_c14_in_place(ours: Comm, algorithm: str) -> None:
    with first(ours, 4) as comm:
        if comm:
            x = np.array([comm.rank, 1 / comm.rank if comm.rank else 0], float)
            comm.Allreduce(MPI.IN_PLACE, x, algorithm=algorithm)
            np.testing.assert_allclose(x, [6, 1 + 1 / 2 + 1 / 3], rtol=1e-15)


def test_c14_in_place_at_a_root_that_is_not_the_first(ours: Comm) -> None:
    with first(ours, 5) as comm:
        for algorithm in able(REDUCE, 5) if comm else ():
            x = np.arange(4) + comm.rank
            before = x.copy()
            comm.Reduce(MPI.IN_PLACE if comm.rank == 2 else x, x, root=2, algorithm=algorithm)
            assert (x == (5 * np.arange(4) + 10 if comm.rank == 2 else before)).all()


def test_c14_one_array_for_both_is_refused_even_when_only_parts_overlap(ours: Comm) -> None:
    n, r = ours.size, ours.rank
    x = np.arange(4.0) + r
    all_of_it = np.arange(1.0, n + 1)
    for call in (lambda: ours.Allreduce(x, x), lambda: ours.Allreduce(x[:-1], x[1:]),
                 lambda: ours.Allgather(all_of_it[r:r + 1], all_of_it)):
        with refused(ours, "the buffers overlap; pass MPI.IN_PLACE"):
            call()
    assert (x == np.arange(4.0) + r).all()
    ours.Allreduce(x[:2], x[2:])  # these do not
    assert (x[2:] == np.arange(2) * n + n * (n - 1) / 2).all()


def test_c14_what_is_sent_is_never_changed(ours: Comm) -> None:
    for algorithm in TABLE.values():
        if algorithm.why_not(ours.size) or algorithm.collective in (BARRIER, BROADCAST):
            continue
        name = algorithm.collective.name
        sent, received = (ours.size if name in which else 1 for which in (
            ("scatter", "reduce-scatter", "all-to-all"), ("gather", "all-gather", "all-to-all")))
        send, recv = np.arange(3 * sent) + ours.rank, np.zeros(3 * received, np.int64)
        OWN[algorithm.collective](Asking(ours, algorithm), send, recv, 0, MPI.SUM)
        assert (send == np.arange(3 * sent) + ours.rank).all(), algorithm


def test_c16_a_view_starts_where_it_starts(ours: Comm) -> None:
    root = ours.size - 1
    whole = np.arange(65, dtype=np.int32).reshape(13, 5)
    x = (whole if ours.rank == root else np.zeros_like(whole))[8:9]
    ours.Bcast(x, root)
    assert x.tolist() == [[40, 41, 42, 43, 44]]


def test_c16_arrays_without_dimensions_or_with_odd_strides(ours: Comm) -> None:
    n = ours.size
    result = np.array(-1.0)
    ours.Allreduce(np.array(float(ours.rank)), result)
    assert (result.shape, result) == ((), n * (n - 1) / 2)
    real = np.array([1 + 2j]).real
    assert real.strides == (16,)
    ours.Allreduce(MPI.IN_PLACE, real)
    assert real == n
    ours.Allreduce(np.float64(2), result)
    assert result == 2 * n
    with refused(ours, "the receive buffer is read-only"):
        ours.Allreduce(np.ones(1), np.float64(0))
    with refused(ours, "float is neither"):
        ours.Allreduce(3.0, np.ones(1))


def test_c18_a_tail_is_not_dropped(ours: Comm) -> None:
    """Ten elements on four ranks: only the root can see it, whatever the others expect."""
    with first(ours, 4) as comm:
        if comm and comm.rank == 0:
            for part in (2, 3):
                with pytest.raises(Refused, match="a buffer of 10 elements has no 4 equal parts"):
                    comm.Scatter(np.arange(10.0), np.empty(part))
            with pytest.raises(Refused, match="a buffer of 10 elements has no 4 equal parts"):
                comm.Scatter(np.arange(10.0), MPI.IN_PLACE)


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda counts: np.array(counts, np.uint64)])
def test_c18_counts_of_any_kind(ours: Comm, kind: Any) -> None:
    counts = [2 + rank % 2 for rank in range(ours.size)]
    recv = np.empty(counts[ours.rank])
    ours.Reduce_scatter(np.arange(float(sum(counts))), recv, kind(counts))
    start = sum(counts[:ours.rank])
    assert (recv == ours.size * np.arange(start, start + recv.size)).all()


def test_c18_bad_counts_are_refused_everywhere(ours: Comm) -> None:
    n = ours.size
    for counts, message in (
        ([2] * n + [2], "counts for"), ([2.0] * n, "counts are whole numbers"), ([-1] * n, "a count of -1 elements"),
        ([3] * n, "holds"), (2, "counts"), (["2"] * n, "counts are whole numbers"),
    ):
        with refused(ours, message):
            ours.Reduce_scatter(np.ones(2 * n), np.ones(2), counts)


def test_c20_roots_may_be_any_whole_number(ours: Comm) -> None:
    for root in (np.int64(0), np.uint8(ours.size - 1), ours.size > 1):
        x = np.array([ours.rank])
        ours.Bcast(x, root)
        assert x == int(root)


def test_c20_a_root_is_counted_in_its_own_communicator(ours: Comm) -> None:
    odd = ours.Split(0 if ours.rank in (1, 3) else MPI.UNDEFINED, ours.rank)
    if odd != MPI.COMM_NULL and odd.size == 2:
        x = np.array([ours.rank])
        odd.Bcast(x, 1)
        assert x == 3
        with refused(odd, "root 3 is not one of the ranks 0 to 1"):
            odd.Bcast(x, 3)


def test_c24_very_many_small_ones(ours: Comm) -> None:
    x = np.zeros(1, np.int64)
    for k in range(500):
        x[0] = k * (ours.rank == k % ours.size)
        ours.Allreduce(MPI.IN_PLACE, x)
        assert x == k


def test_c26_two_groups(ours: Comm) -> None:
    if ours.size == 1:
        return
    side = own(ours).Split(int(ours.rank > 0), ours.rank)
    between = side.Create_intercomm(0, own(ours), int(ours.rank == 0))
    with pytest.raises(Refused, match="an intercommunicator has two"):
        Comm(between)
    between.Free()
    side.Free()
