"""The data of checks: they tell ranks and places apart, and their results are known by hand and bounded rightly."""

from __future__ import annotations

from functools import reduce
from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from treering.core.collective import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, COLLECTIVES, REDUCE, REDUCE_SCATTER
from treering.measuring.inputs import POISON, Sample, oracle

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
PAIR = np.dtype([("value", np.float64), ("index", np.intc)], align=True)


def sample(collective: Any = ALL_REDUCE, size: int = 4, count: int = 50, dtype: Any = np.float32, **more: Any) -> Sample:
    return Sample(collective, size, more.pop("root", 0), count, np.dtype(dtype), more.pop("op", "sum"), **more)


def test_what_a_rank_contributes_differs_from_rank_to_rank_and_from_place_to_place() -> None:
    s = sample(ALL_TO_ALL, dtype=np.int64, count=100)
    everything = np.concatenate([s.given(rank) for rank in range(4)])
    assert np.unique(everything).size == everything.size == 1600


@pytest.mark.parametrize("dtype", ["float16", BFLOAT16, "int8", "bool", "complex64"])
def test_even_in_small_types_no_two_ranks_or_blocks_look_alike(dtype: Any) -> None:
    s = sample(ALL_TO_ALL, dtype=dtype, count=64)
    blocks = [s.contribution(rank, (rank, target)).tobytes() for rank in range(4) for target in range(4)]
    assert len(set(blocks)) == 16


def test_contributions_are_the_same_on_every_rank_and_in_every_run() -> None:
    # Every rank works out what the others have.
    assert sample(dtype=np.uint64, count=2).given(3).tolist() == [8786639878720926469, 9054972541493631593]


def test_every_collective_has_its_buffers() -> None:
    sizes = {}
    for collective in COLLECTIVES:
        s = sample(collective, size=3, count=5, root=1)
        sizes[collective.name] = [(s.given(r).size, s.receives(r).size, s.expected(r)[0].size) for r in range(3)]
    assert sizes == {
        "broadcast": [(0, 5, 5)] * 3,
        "scatter": [(0, 5, 5), (15, 5, 5), (0, 5, 5)],
        "gather": [(5, 0, 0), (5, 15, 15), (5, 0, 0)],
        "reduce": [(5, 0, 0), (5, 5, 5), (5, 0, 0)],
        "all-gather": [(5, 15, 15)] * 3,
        "all-reduce": [(5, 5, 5)] * 3,
        "reduce-scatter": [(15, 5, 5)] * 3,
        "all-to-all": [(15, 15, 15)] * 3,
        "scan": [(5, 5, 5)] * 3,
        "exscan": [(5, 0, 0), (5, 5, 5), (5, 5, 5)],
        "barrier": [(5, 5, 5)] * 3,
    }


def test_receive_buffers_are_poisoned_but_for_a_broadcasts_payload() -> None:
    assert set(sample(ALL_GATHER).receives(0).tobytes()) == {POISON}
    broadcast = sample(BROADCAST, root=2)
    assert set(broadcast.receives(1).tobytes()) == {POISON}
    assert (broadcast.receives(2) == broadcast.expected(0)[0]).all()


def test_in_place_a_rank_finds_its_part_where_it_lies() -> None:
    s = sample(ALL_GATHER, count=2)
    buffer = s.in_place(1)
    assert (buffer[2:4] == s.given(1)).all()
    assert set(buffer[:2].tobytes() + buffer[4:].tobytes()) == {POISON}
    s = sample(REDUCE_SCATTER, count=2)
    assert (s.in_place(1) == s.given(1)).all()


def test_movements_end_where_they_belong() -> None:
    s = sample(ALL_TO_ALL, size=3, count=1, dtype=np.int64)
    sent = np.stack([s.given(rank) for rank in range(3)])
    assert [s.expected(rank)[0].tolist() for rank in range(3)] == sent.T.tolist()


@pytest.mark.parametrize(("op", "dtype", "rows", "expected"), [
    # case C04: two's complement, as numpy wraps
    ("sum", "int8", [120, 100, 100, 100], -92),
    ("sum", "uint8", [255, 255, 255], 253),
    ("sum", "int16", [16384, 16384], -32768),
    ("sum", "int64", [2**63 - 1, 1], -(2**63)),
    ("prod", "uint8", [16, 17], 16),
    ("max", "int8", [-3, 5, 2], 5),
    ("min", "uint64", [2**64 - 1, 7], 7),
    ("land", "int32", [2, 4], 1),
    ("land", "int32", [2, 0], 0),
    ("lor", "bool", [False, True], True),
    ("lxor", "int16", [2, 4, 8], 1),
    ("band", "uint8", [0b1100, 0b1010], 0b1000),
    ("bor", "uint8", [0b1100, 0b1010], 0b1110),
    ("bxor", "uint8", [0b1100, 0b1010], 0b0110),
    ("sum", "complex64", [1 + 2j, 3 - 1j], 4 + 1j),
    ("prod", "complex64", [1j, 1j], -1),
    ("sum", "float16", [40000, 40000], np.inf),
    ("max", "float32", [1, np.nan, 2], np.nan),
])
def test_results_known_by_hand(op: str, dtype: str, rows: list[Any], expected: Any) -> None:
    stack = np.array(rows, dtype).reshape(-1, 1)
    with np.errstate(over="ignore"):
        result, slack = oracle(stack, op, exact=True)
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result, [expected])
    assert not slack.any()


@pytest.mark.parametrize(("op", "rows", "expected"), [
    # case C02: among equal values the lowest index, not the lowest rank
    ("maxloc", [(1, 0), (1, 1), (1, 2)], (1, 0)),
    ("minloc", [(5, 0), (2, 1), (2, 2)], (2, 1)),
    ("maxloc", [(7, 10), (7, 9), (7, 8)], (7, 8)),
    ("maxloc", [(1, 3), (2, 9), (2, 4)], (2, 4)),
])
def test_locations_of_ties(op: str, rows: list[Any], expected: Any) -> None:
    result, _ = oracle(np.array(rows, PAIR).reshape(-1, 1), op, exact=True)
    assert result.tolist() == [expected]


def orders(stack: np.ndarray[Any, Any], op: np.ufunc) -> list[np.ndarray[Any, Any]]:
    """The rows reduced in other orders, each pair rounded: up and down a chain, and by a tree."""
    rows = list(stack)
    results = [reduce(op, [rows[i] for i in order]) for order in permutations(range(len(rows)))][:24]
    while len(rows) > 1:
        rows = [op(*rows[i:i + 2]) if i + 1 < len(rows) else rows[i] for i in range(0, len(rows), 2)]
    return [*results, rows[0]]


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", ["float16", BFLOAT16, "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_any_order_is_within_the_bound_and_an_error_of_two_is_not(op: str, dtype: Any, size: int) -> None:
    s = sample(dtype=dtype, size=size, op=op, exact=False)
    stack = np.stack([s.given(rank) for rank in range(size)])
    expected, slack = oracle(stack, op, exact=False)

    def far(result: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.abs(result.astype(np.clongdouble) - expected.astype(np.clongdouble)) > slack

    for result in orders(stack, np.add if op == "sum" else np.multiply):
        assert not far(result).any()
    assert far(expected * expected.dtype.type(2)).all()


def test_bfloat16_that_sticks_at_256_is_right_and_half_of_it_is_not() -> None:
    # case C06
    stack = np.array([256, 1, 1, 1], BFLOAT16).reshape(-1, 1)
    expected, slack = oracle(stack, "sum", exact=False)
    near = {value: bool(abs(value - float(expected[0])) <= slack[0]) for value in (256, 258, 259, 260, 518, 130)}
    assert near == {256: True, 258: True, 259: True, 260: True, 518: False, 130: False}


@pytest.mark.parametrize("dtype", ["int16", "float16", BFLOAT16, "float32", "complex64"])
@pytest.mark.parametrize("size", [2, 8, 64])
def test_exact_data_give_the_same_bits_in_every_order(dtype: Any, size: int) -> None:
    s = sample(REDUCE, dtype=dtype, size=size, op="sum")
    stack = np.stack([s.given(rank) for rank in range(size)])
    expected, slack = oracle(stack, "sum", exact=True)
    assert not slack.any()
    assert reduce(np.add, stack).tobytes() == reduce(np.add, stack[::-1]).tobytes() == expected.tobytes()
