"""Bytes: exact per rank and in total, for any payload and group."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treering.readers.count import sent_by, spread
from treering.table import schedule
from treering.training.job import Job, Settings
from treering.training.ledger import Ledger, Message, RankClass, StepLedger
from treering.training.mesh import Group, Mesh
from treering.training.model import read_model
from treering.training.step import trace
from treering.training.volume import ALGORITHMS, volume

EXAMPLES = Path(__file__).parents[1] / "examples"


def blocks(elements: int, size: int) -> list[int]:
    return [elements // size + (1 if i < elements % size else 0) for i in range(size)]


@given(st.integers(0, 200), st.integers(1, 9))
def test_a_ring_walked_block_by_block_sends_what_is_counted(elements: int, size: int) -> None:
    block = blocks(elements, size)
    half = [sum(block[(rank - i - 1) % size] for i in range(size - 1)) for rank in range(size)]
    other = [sum(block[(rank - i) % size] for i in range(size - 1)) for rank in range(size)]
    for operation, sent in (("reduce-scatter", half), ("all-gather", other),
                            ("all-reduce", [a + b for a, b in zip(half, other, strict=True)])):
        counted = volume(operation, elements, size)
        assert counted.total == sum(sent)
        if operation != "all-reduce":
            assert counted.busiest == max(sent)


@given(st.integers(0, 200), st.integers(2, 9))
def test_the_busiest_rank_of_a_ring_all_reduce_leaves_out_the_two_smallest_neighbours(elements: int, size: int) -> None:
    block = blocks(elements, size)
    left_out = min(block[i] + block[(i + 1) % size] for i in range(size))
    assert volume("all-reduce", elements, size).busiest == 2 * elements - left_out


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("elements", [0, 1, 7, 40, 41])
@pytest.mark.parametrize("operation", list(ALGORITHMS))
def test_volumes_are_those_of_the_algorithms_that_run(operation: str, elements: int, size: int) -> None:
    ring = schedule(operation, ALGORITHMS[operation], size=size)
    counts = spread(ring.collective, size, elements)
    sent = [sent_by(ring, rank, counts) for rank in range(size)]
    counted = volume(operation, elements, size)
    assert (counted.busiest, counted.total) == (max(sent), sum(sent))


def test_an_unknown_operation_has_no_volume() -> None:
    with pytest.raises(ValueError, match="no volume for 'gossip'"):
        volume("gossip", 1, 2)


def message(operation: str, group: Group, size: int, elements: int = 100) -> Message:
    return Message("forward", operation, group, size, "x", "bf16", elements)


def test_totals_count_every_group_once() -> None:
    ledger = Ledger()
    ledger.add(message("all-gather", Group(("tp",)), 4))
    ledger.add(message("all-gather", Group(("tp",)), 4))
    ledger.add(message("send", Group(("pp",)), 2))
    step = StepLedger((RankClass((0,), 8, 0, ledger),))
    assert step.total_bytes("tp") == 2 * 2 * (3 * 100 * 2)
    assert step.total_bytes("pp") == 8 * 200
    assert step.total_bytes() == step.total_bytes("tp") + step.total_bytes("pp")


def test_a_group_across_stages_is_shared_by_them() -> None:
    ledgers = [Ledger(), Ledger()]
    for ledger in ledgers:
        ledger.add(message("all-reduce", Group(("tp", "pp")), 4, 1))
    step = StepLedger(tuple(RankClass((stage,), 2, 0, ledger) for stage, ledger in enumerate(ledgers)))
    assert step.total_bytes() == 2 * 3 * 2


@pytest.mark.parametrize("layout", [
    {"dp": 2, "tp": 2}, {"pp": 2, "dp": 2, "tp": 2}, {"fsdp": 4}, {"fsdp": 2, "pp": 4, "tp": 2},
])
def test_rows_add_up_to_the_ledger(layout: dict[str, int]) -> None:
    step = trace(Job(read_model(EXAMPLES / "gpt2.json"), Mesh.of(layout), Settings(microbatches=3)))
    assert sum(row.total for row in step.rows()) == step.total_bytes() > 0
    assert len({row.role for row in step.rows()}) == len(step.rows())


def test_a_sampled_step_has_every_distinct_message_once() -> None:
    step = trace(Job(read_model(EXAMPLES / "gpt2.json"), Mesh.of({"fsdp": 4}), Settings(microbatches=3)))
    assert set(step.sampled().of_stage(0).ledger.times.values()) == {1}
    assert step.sampled().total_bytes() < step.total_bytes()


def test_405b_on_16384_ranks_takes_seconds() -> None:
    start = perf_counter()
    model = read_model(EXAMPLES / "llama-3.1-405b.json")
    step = trace(Job(model, Mesh.of({"tp": 8, "pp": 2, "dp": 1024}), Settings(microbatches=16)))
    assert sum(one.ranks for one in step.classes) == 16384
    assert perf_counter() - start < 20
