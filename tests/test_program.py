"""Lowered schedules, run without MPI by the simulator: every algorithm leaves on every rank what its collective promises.

The elements are maps ``x → ax + b`` modulo a prime, and the operator is their composition: it is associative and does not
commute, so that an order that is not kept shows. For algorithms that do not keep it all ``a`` are 1, which is addition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pytest
import simulator
from hypothesis import given, settings
from hypothesis import strategies as st

import treering.table  # noqa: F401 — fills the table
from treering.core.algorithm import TABLE, Algorithm, Schedule
from treering.core.collective import ALL_TO_ALL, Case, partner
from treering.core.layout import Counts, elements
from treering.core.schedule import OUT, Block, Copy, Round, Slot
from treering.readers.count import count, sent_by
from treering.running.program import Move, Program, lower
from treering.running.scratch import Run

PRIME = 2**31 - 1
MAP = np.dtype([("a", np.int64), ("b", np.int64)])

algorithms = pytest.mark.parametrize("algorithm", TABLE.values(), ids=str)
QUIET = settings(derandomize=True, database=None, deadline=None)


def compose(left: simulator.Array, right: simulator.Array) -> simulator.Array:
    result = np.empty(left.size, MAP)
    result["a"] = left["a"] * right["a"] % PRIME
    result["b"] = (left["a"] * right["b"] + left["b"]) % PRIME
    return result


def largest(left: simulator.Array, right: simulator.Array) -> simulator.Array:
    """An operator that does not mind a contribution that comes again."""
    return np.where(left["b"] >= right["b"], left, right)


@dataclass(frozen=True)
class Instance:
    """One run of a schedule on all ranks, and what it must come to."""

    schedule: Schedule
    counts: Counts
    in_place: bool

    @property
    def case(self) -> Case:
        return self.schedule.case

    @property
    def operator(self) -> simulator.Kernel:
        return largest if self.schedule.collective.repeats else compose

    def contribution(self, rank: int, block: Block) -> simulator.Array:
        index = block if isinstance(block, int) else block[0] * self.case.size + block[1]
        values = np.empty(elements(self.schedule.collective, self.case, self.counts)(block), MAP)
        random = np.random.default_rng([rank, index])
        values["a"] = random.integers(2, PRIME, values.size) if self.schedule.in_order else 1
        values["b"] = random.integers(PRIME, size=values.size)
        return values

    def expected(self, rank: int) -> simulator.Array:
        after = self.schedule.collective.after(rank, self.case)
        parts = [reduce(self.operator, [self.contribution(r, s.block) for r in origins]) for s, origins in after.items()]
        return np.concatenate([np.empty(0, MAP), *parts])

    def laid(self, rank: int, slots: tuple[Slot, ...], known: dict[Slot, Slot]) -> simulator.Array:
        """A buffer with room for some slots, and in it the contributions to those that are known by another name."""
        room = [self.contribution(rank, slot.block) for slot in slots]
        for slot, values in zip(slots, room):
            values[...] = self.contribution(rank, known[slot].block) if slot in known else -1
        return np.concatenate([np.empty(0, MAP), *room])

    def check(self) -> None:
        collective = self.schedule.collective
        programs = [lower(self.schedule, rank, self.counts, self.in_place) for rank in self.case.everyone]
        memories, results = [], []
        for rank, program in enumerate(programs):
            given, result = (collective.place(rank, self.case, space) for space in ("in", "out"))
            before = collective.before(rank, self.case)
            shared = self.in_place and given and result
            if shared:
                slots = given if len(given) > len(result) else result
                known = {slot: slot if slot in before else partner(slot) for slot in slots}
                buffer = self.laid(rank, slots, {s: k for s, k in known.items() if k in before})
                memories.append({"in": buffer, "out": buffer})
            else:
                memories.append({
                    "in": self.laid(rank, given, {s: s for s in given}),
                    "out": self.laid(rank, result, {s: s for s in result if s in before})})
            results.append(self.result(memories[-1]["out"], rank, given, result, bool(shared)))
            self.check_runs(program, memories[-1])
        untouched = [memory["in"].copy() for memory in memories]
        network = simulator.run(programs, memories, self.operator)
        for rank, program in enumerate(programs):
            np.testing.assert_array_equal(results[rank], self.expected(rank), str((self, rank)))
            assert program.in_place or (memories[rank]["in"] == untouched[rank]).all()
            assert program.sent == network.moved[rank] == sent_by(self.schedule, rank, self.counts)
        assert [p.sent for p in programs] == [load.bytes_sent for load in count(self.schedule, self.counts).ranks]

    def result(
        self, buffer: simulator.Array, rank: int, given: tuple[Slot, ...], result: tuple[Slot, ...], shared: bool,
    ) -> simulator.Array:
        """Where the result is to lie."""
        length = len(self.expected(rank))
        start = 0
        if shared and len(given) > len(result) and not self.schedule.collective.front:
            before = given[:given.index(partner(result[0]))]
            start = sum(len(self.contribution(rank, slot.block)) for slot in before)
        return buffer[start:start + length]

    def check_runs(self, program: Program, memory: simulator.Memory) -> None:
        """Runs stay within their buffers, and no operation writes what another, or itself later, still needs."""
        room = {**{name: buffer.size for name, buffer in memory.items()}, "scratch": program.scratch}
        for run in simulator.runs(program):
            assert 0 <= run.start < run.stop <= room[run.buffer]
        for stage in program.stages:
            assert not any(
                overlap(recv.run, other.run)
                for recv in stage.recvs for other in simulator.messages(stage) if other is not recv)
            for work in (*stage.pack, *stage.local):
                sources = [work.source] if isinstance(work, Move) else [work.left, work.right]
                to_front = stage is program.stages[-1] and work.into.start == 0 and isinstance(work, Move)
                assert to_front or not any(overlap(work.into, source) for source in sources if source != work.into)


def overlap(a: Run, b: Run) -> bool:
    return a.buffer == b.buffer and a.start < b.stop and b.start < a.stop


@st.composite
def instances(draw: st.DrawFn, algorithm: Algorithm) -> Instance:
    size = draw(st.sampled_from([size for size in range(1, 9) if not algorithm.why_not(size)]))
    root = draw(st.integers(0, size - 1)) if algorithm.collective.rooted else 0
    parameters = {p.name: draw(st.integers(p.minimum, p.default + 1)) for p in algorithm.parameters}
    schedule = algorithm.schedule(size, root, **parameters)
    units = algorithm.collective.units(size)
    few = st.integers(0, 2 * size + 1)
    in_place = draw(st.booleans())
    irregular = units > 1 and not (in_place and algorithm.collective is ALL_TO_ALL)  # its blocks swap places
    counts = draw(few | st.lists(few, min_size=units, max_size=units) if irregular else few)
    return Instance(schedule, counts, in_place)


@algorithms
def test_every_algorithm_leaves_what_its_collective_promises(algorithm: Algorithm) -> None:
    @settings(QUIET, max_examples=60)
    @given(instances(algorithm))
    def check(instance: Instance) -> None:
        instance.check()

    check()


@algorithms
def test_every_root_and_every_size_once(algorithm: Algorithm) -> None:
    for size in range(1, 9):
        for root in range(size if algorithm.collective.rooted else 1):
            if not algorithm.why_not(size):
                Instance(algorithm.schedule(size, root), 2 * size + 1, in_place=root % 2 == 1).check()


def ring(size: int, counts: Counts, in_place: bool = False) -> list[Program]:
    schedule = TABLE["all-reduce", "ring"].schedule(size)
    return [lower(schedule, rank, counts, in_place) for rank in range(size)]


def test_a_ring_needs_scratch_for_two_blocks_however_many_ranks_there_are() -> None:
    for size in (3, 8, 50):
        assert max(program.scratch for program in ring(size, 100 * size)) <= 200


def test_contiguous_blocks_go_without_packing_and_are_reduced_as_one() -> None:
    schedule = TABLE["all-reduce", "halving-doubling"].schedule(8)
    for rank in range(8):
        program = lower(schedule, rank, 800)
        assert not any(stage.pack for stage in program.stages)
        assert [len(stage.local) for stage in program.stages[:3]] == [1, 1, 1]


def test_scattered_blocks_are_packed_into_one_message() -> None:
    program = lower(TABLE["all-to-all", "bruck"].schedule(8), 0, 10)
    assert all(len(stage.sends) <= 1 for stage in program.stages)
    assert sum(len(stage.pack) for stage in program.stages) > 0


def test_empty_blocks_send_nothing() -> None:
    programs = ring(8, counts=3)
    assert sum(len(stage.sends) for program in programs for stage in program.stages) == 3 * 14
    assert ring(8, counts=0)[0].stages == ()


def test_a_program_costs_its_own_operations_only() -> None:
    program = lower(TABLE["broadcast", "binomial"].schedule(100_000), 77_777, counts=10)
    assert sum(len(stage.sends) + len(stage.recvs) for stage in program.stages) <= 18


def test_fused_operations_never_read_what_they_wrote() -> None:
    """out[1] = out[0], out[2] = out[1] would become one copy of [0, 2) to [1, 3), which is something else."""
    def chained(rank: int, size: int, root: int) -> list[Round]:
        return [Round(*(Copy(OUT(i + 1), OUT(i)) for i in range(3)))]

    schedule = replace(TABLE["broadcast", "linear"], function=chained, blocks=lambda size: 4).schedule(2)
    program = lower(schedule, 0, 4)
    assert [work for stage in program.stages for work in stage.local] == [
        Move(Run("out", i + 1, i + 2), Run("out", i, i + 1)) for i in range(3)]
