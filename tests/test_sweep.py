"""Proving over ranges: what was proved, or the smallest size and root that fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from treering.algorithms import halving, tree

from treering.core import REDUCE, TABLE, Algorithm, Round, algorithm
from treering.readers.ranges import numbers, spelled
from treering.readers.sweep import Proof, all_roots, count_cases, prove, some_roots


@pytest.fixture
def fragile() -> Iterator[Algorithm]:
    @algorithm(REDUCE, "fragile", family="tree")
    def function(rank: int, size: int, root: int) -> Iterator[Round]:
        """Right, but for the roots 2 and 3 of five ranks or more, where the last rank forgets to send."""
        rounds = list(tree.reduce(rank, size, root))
        yield from rounds[:-1] if size >= 5 and root in (2, 3) and rank == size - 1 else rounds

    yield function
    del TABLE["reduce", "fragile"]


def proofs(*algorithms: Algorithm, workers: int, sizes: range = range(1, 8)) -> list[Proof]:
    return list(prove([(a, {}) for a in algorithms], sizes, workers=workers))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_smallest_size_and_root_that_fail(fragile: Algorithm, workers: int) -> None:
    before, proof, after = proofs(tree.reduce, fragile, tree.broadcast, workers=workers)
    assert before.sizes == after.sizes == tuple(range(1, 8)) and before.fault is after.fault is None
    assert proof.sizes == (1, 2, 3, 4)
    assert proof.fault is not None and (proof.fault.size, proof.fault.root) == (5, 2)
    assert "root 2: rank 2, its round 2: waits forever to receive block 0 from rank 4, which has finished" in str(proof.flaw)


def test_the_order_of_sizes_does_not_matter(fragile: Algorithm) -> None:
    [proof] = prove([(fragile, {})], [7, 6, 5, 4, 4, 1], workers=1)
    assert proof.sizes == (1, 4) and proof.fault is not None and proof.fault.size == 5


def test_after_a_fault_nothing_more_of_it_is_proved(fragile: Algorithm) -> None:
    done: list[int] = []
    list(prove([(fragile, {})], range(1, 40), all_roots, workers=1, progress=done.append))
    assert sum(done) == count_cases([(fragile, {})], range(1, 40), all_roots), "and yet progress comes to its end"


def test_sizes_on_which_it_does_not_run_are_left_out() -> None:
    exchange = TABLE["all-to-all", "exchange"]
    [proof] = proofs(exchange, workers=1, sizes=range(1, 20))
    assert proof.sizes == (1, 2, 4, 8, 16) and proof.fault is None
    [proof] = proofs(exchange, workers=1, sizes=range(3, 4))
    assert proof.sizes == ()


def test_parameters_are_used() -> None:
    chain = TABLE["broadcast", "chain"]
    [proof] = prove([(chain, {"segments": 3})], [4], workers=1)
    assert proof.name == "chain:segments=3" and proof.sizes == (4,)


def test_cases_are_pairs_of_size_and_root() -> None:
    assert count_cases([(halving.reduce, {})], [2, 3, 32]) == 2 + 3 + 3
    assert count_cases([(halving.reduce, {})], [2, 3, 32], all_roots) == 37
    assert count_cases([(halving.all_reduce, {})], [2, 3, 32]) == 3


def test_representative_roots() -> None:
    assert list(some_roots(16)) == list(range(16))
    assert list(some_roots(17)) == [0, 8, 16]


def test_what_is_no_flaw_of_a_schedule_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treering.readers.sweep.verify", lambda schedule: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        proofs(tree.reduce, workers=1)


def test_ranges_are_written_and_read() -> None:
    assert spelled(range(1, 65)) == "1-64"
    assert spelled([8, 1, 2, 4, 2]) == "1-2,4,8"
    assert spelled([]) == ""
    for text in ("", "1-64", "1-2,4,8"):
        assert spelled(numbers(text)) == text
