"""The proof: all ranks run symbolically, and what each slot holds is followed as a reduction tree over contributions.

A schedule is right for a case when, on the memory it is bound to, separate or in place,

- every send meets a receive of the same blocks, and none waits forever even if sends are synchronous (`match`);
- no round receives into memory that it also sends or receives elsewhere, and the caller's input is never written;
- nothing is read that was not put there;
- at the end every slot of the collective's state holds its block, with every contribution in it exactly once;
- contributions stand in rank order where the algorithm claims so;
- ranks that end with the same result computed it by the same tree, so that they have the same bits.

Trees are compared exactly, not up to commutation: ``max(-0.0, 0.0)`` and the sum of two NaN depend on the side, so only
equal trees with equal sides promise equal bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..core.algorithm import Schedule
from ..core.binding import bind
from ..core.schedule import Block, Copy, Local, Slot, format_block
from .match import Completed, Flaw, Started, Transfer, events


class Value(NamedTuple):
    """What a slot holds: a reduction tree over contributions to one block.

    Attributes
    ----------
    tree
        Identity of the tree; equal trees have equal numbers.
    block
        The block that was contributed to.
    ranks
        Which ranks' contributions it holds, as a bit mask.
    order
        The ranks in operand order, if they are a run in rank order, else None.
    """

    tree: int
    block: Block
    ranks: int
    order: range | None


class Trees:
    """Reduction trees, each kept once, so that equal trees are the same value."""

    def __init__(self) -> None:
        self.leaves: dict[tuple[int, Block], Value] = {}
        self.nodes: dict[tuple[int, int], Value] = {}

    def leaf(self, rank: int, block: Block) -> Value:
        if (rank, block) not in self.leaves:
            self.leaves[rank, block] = Value(self.new(), block, 1 << rank, range(rank, rank + 1))
        return self.leaves[rank, block]

    def node(self, left: Value, right: Value) -> Value:
        key = (left.tree, right.tree)
        if key not in self.nodes:
            self.nodes[key] = Value(self.new(), left.block, left.ranks | right.ranks, _joined(left.order, right.order))
        return self.nodes[key]

    def new(self) -> int:
        return len(self.leaves) + len(self.nodes)

    def reduced(self, origins: range, block: Block) -> Value:
        """Any tree over these ranks, taken from left to right: what a state of more than one rank begins with."""
        value = self.leaf(origins[0], block)
        for rank in origins[1:]:
            value = self.node(value, self.leaf(rank, block))
        return value


def verify(schedule: Schedule) -> None:
    """Prove that a schedule computes its collective, with separate buffers and in place.

    Raises
    ------
    Flaw
        Naming the first fault, with its rank, round and slot.
    """
    forms = [False] if schedule.collective.one_buffer else [False, True]
    machines = [Machine(schedule, in_place) for in_place in forms]
    for event in events(schedule):
        for machine in machines:
            if isinstance(event, Transfer):
                machine.transfer(event)
            elif isinstance(event, Started):
                machine.started(event)
            else:
                machine.completed(event)
    for machine in machines:
        machine.check_result()


class Machine:
    """The memory of all ranks in one form, in place or not, holding values instead of numbers."""

    def __init__(self, schedule: Schedule, in_place: bool) -> None:
        self.schedule, self.trees = schedule, Trees()
        self.form = " (in place)" if in_place else ""
        case, collective = schedule.case, schedule.collective
        self.bindings = [
            bind(collective, case, rank, schedule.program(rank) if in_place else (), in_place) for rank in case.everyone]
        self.memory: list[dict[Slot, Value]] = [{} for _ in case.everyone]
        self.arriving: list[list[tuple[Slot, Value]]] = [[] for _ in case.everyone]
        self.given = [frozenset(binding.given) for binding in self.bindings]
        for rank, (binding, memory) in enumerate(zip(self.bindings, self.memory)):
            raw = {copy.into: copy.source for copy in binding.before}
            for slot, origins in collective.before(rank, case).items():
                cell = binding.cell(slot)
                memory[raw.get(cell, cell)] = self.trees.reduced(origins, slot.block)
            for copy in binding.before:
                memory[copy.into] = memory[copy.source]

    def flaw(self, what: str, rank: int, round_: int | None = None) -> Flaw:
        return Flaw(self.schedule, what + self.form, rank, round_)

    def started(self, event: Started) -> None:
        """Check that the memory of a round's messages is disjoint."""
        rank, index, round_ = event
        cell = self.bindings[rank].cell
        sending = {cell(slot) for send in round_.sends for slot in send.slots}
        arriving: set[Slot] = set()
        for recv in round_.recvs:
            for slot in recv.slots:
                into = cell(slot)
                self.check_writable(rank, index, slot)
                if into in sending:
                    raise self.flaw(f"receives into {slot} while its memory is being sent", rank, index)
                if into in arriving:
                    raise self.flaw(f"receives twice into {slot}", rank, index)
                arriving.add(into)

    def transfer(self, event: Transfer) -> None:
        """Take what the sender's slots hold now; it arrives when the receiver's round completes."""
        for source, into in zip(event.sent.slots, event.received.slots):
            value = self.read(event.source, event.source_round, source)
            self.arriving[event.destination].append((into, value))

    def completed(self, event: Completed) -> None:
        rank, index, round_ = event
        memory, cell = self.memory[rank], self.bindings[rank].cell
        for slot, value in self.arriving[rank]:
            memory[cell(slot)] = value
        self.arriving[rank].clear()
        for op in round_.local:
            self.check_writable(rank, index, op.into)
            memory[cell(op.into)] = self.result(rank, index, op)

    def result(self, rank: int, index: int, op: Local) -> Value:
        if isinstance(op, Copy):
            value = self.read(rank, index, op.source)
            if op.source.block != op.into.block:
                raise self.flaw(f"{op}: the names of the blocks differ", rank, index)
            return value
        left, right = self.read(rank, index, op.left), self.read(rank, index, op.right)
        if left.block != right.block:
            raise self.flaw(f"{op}: reduces block {format_block(left.block)} with block {format_block(right.block)}", rank, index)
        if twice := left.ranks & right.ranks:
            raise self.flaw(f"{op}: counts the contribution of {_ranks(twice)} twice", rank, index)
        return self.trees.node(left, right)

    def read(self, rank: int, index: int, slot: Slot) -> Value:
        value = self.memory[rank].get(self.bindings[rank].cell(slot))
        if value is None:
            raise self.flaw(f"reads {slot}, which holds nothing yet", rank, index)
        if value.block != slot.block:
            raise self.flaw(f"reads {slot}, which holds block {format_block(value.block)}", rank, index)
        return value

    def check_writable(self, rank: int, index: int, slot: Slot) -> None:
        if slot in self.given[rank]:
            raise self.flaw(f"writes {slot}, the caller's input", rank, index)

    def check_result(self) -> None:
        """Compare what every rank holds with the state after the collective."""
        case, collective = self.schedule.case, self.schedule.collective
        agreed: dict[tuple[Block, range], tuple[int, Value]] = {}
        for rank in case.everyone:
            for slot, origins in collective.after(rank, case).items():
                value = self.memory[rank].get(self.bindings[rank].cell(slot))
                if value is None:
                    raise self.flaw(f"{slot} holds nothing", rank)
                if value.block != slot.block:
                    raise self.flaw(f"{slot} holds block {format_block(value.block)}", rank)
                self.check_origins(rank, slot, value, origins)
                first, expected = agreed.setdefault((slot.block, origins), (rank, value))
                if value.tree != expected.tree:
                    raise self.flaw(f"{slot} was reduced by another tree than on rank {first}, so bits may differ", rank)

    def check_origins(self, rank: int, slot: Slot, value: Value, origins: range) -> None:
        wanted = _mask(origins)
        if lost := wanted & ~value.ranks:
            raise self.flaw(f"{slot} lacks the contribution of {_ranks(lost)}", rank)
        if foreign := value.ranks & ~wanted:
            raise self.flaw(f"{slot} holds the contribution of {_ranks(foreign)}, which does not belong there", rank)
        if self.schedule.in_order and value.order != origins:
            raise self.flaw(f"{slot} was not reduced in rank order, as claimed", rank)


def _joined(left: range | None, right: range | None) -> range | None:
    """The run of ranks that two runs make side by side, if they do."""
    if left is None or right is None or left.stop != right.start:
        return None
    return range(left.start, right.stop)


def _mask(ranks: Iterable[int]) -> int:
    return sum(1 << rank for rank in ranks)


def _ranks(mask: int) -> str:
    names = [str(rank) for rank in range(mask.bit_length()) if mask >> rank & 1]
    return f"rank{'s' * (len(names) > 1)} {', '.join(names)}"
