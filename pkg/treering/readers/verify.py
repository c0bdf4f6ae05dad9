"""The proof: all ranks run symbolically, and what each slot holds is followed as a reduction tree over contributions.

A schedule is right for a case when

- every send meets a receive of the same blocks, and none waits forever even if sends are synchronous (`match`);
- no round receives into what it also sends or receives elsewhere, and the caller's input is never written;
- nothing is read that was not put there, and copies and reductions keep blocks apart;
- at the end every slot of the collective's state holds its block, with every contribution in it exactly once, unless the
  collective allows repeats;
- contributions stand in rank order where the algorithm claims so;
- ranks that end with the same result computed it by the same tree, so that they have the same bits;
- running in place, where slots share memory, every read still finds what it finds with separate buffers.

Trees are compared exactly, not up to commutation: ``max(-0.0, 0.0)`` and the sum of two NaN depend on the side, so only
equal trees with equal sides promise equal bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..core.algorithm import Schedule
from ..core.schedule import IN, Block, Copy, Local, Round, Slot, format_block, reads
from .in_place import check_in_place
from .match import Completed, Flaw, Started, Transfer, events


@dataclass(eq=False, slots=True)
class Value:
    """What a slot holds: a reduction tree over contributions to its block. Never changed; equal trees are the same object.

    Attributes
    ----------
    ranks
        Which ranks' contributions it holds, as a bit mask.
    order
        The ranks in operand order, if they are a run in rank order, else None.
    """

    ranks: int
    order: range | None


class Trees:
    """Reduction trees, each kept once, so that equal trees are the same value."""

    def __init__(self) -> None:
        self.leaves: dict[tuple[int, Block], Value] = {}
        self.nodes: dict[tuple[Value, Value], Value] = {}

    def leaf(self, rank: int, block: Block) -> Value:
        found = self.leaves.get((rank, block))
        if found is None:
            found = self.leaves[rank, block] = Value(1 << rank, range(rank, rank + 1))
        return found

    def node(self, left: Value, right: Value) -> Value:
        found = self.nodes.get((left, right))
        if found is None:
            found = self.nodes[left, right] = Value(left.ranks | right.ranks, _joined(left.order, right.order))
        return found

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
    schedule = _written_out(schedule)
    machine = Machine(schedule)
    for event in events(schedule):
        if isinstance(event, Transfer):
            machine.transfer(event)
        elif isinstance(event, Started):
            machine.started(event)
        else:
            machine.completed(event)
    machine.check_result()
    for rank in range(schedule.size):
        check_in_place(schedule, rank)


def _written_out(schedule: Schedule) -> Schedule:
    """The same schedule with all rounds of all ranks made once."""
    programs: list[list[Round]] = []
    for rank in range(schedule.size):
        rounds: list[Round] = []
        programs.append(rounds)
        try:
            rounds.extend(filter(None, schedule.program(rank)))
        except Exception as error:
            raise Flaw(schedule, f"cannot be made: {type(error).__name__}: {error}", rank, len(rounds)) from error
    return replace(schedule, program=programs.__getitem__)


class Machine:
    """The memory of all ranks, holding values instead of numbers."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.trees = schedule, Trees()
        case, collective = schedule.case, schedule.collective
        self.memory = [
            {slot: self.trees.reduced(origins, slot.block) for slot, origins in collective.before(rank, case).items()}
            for rank in case.everyone]
        self.arriving: list[dict[Slot, Value]] = [{} for _ in case.everyone]
        self.given = [frozenset(slot for slot in memory if slot.space == IN.name) for memory in self.memory]

    def flaw(self, what: str, rank: int, round_: int | None = None) -> Flaw:
        return Flaw(self.schedule, what, rank, round_)

    def started(self, event: Started) -> None:
        """Check that a round's messages arrive in memory that may be written and is not in use by another of them."""
        rank, index, round_ = event.rank, event.index, event.round
        arriving = [slot for recv in round_.recvs for slot in recv.slots]
        if arriving:
            self.check_writable(rank, index, arriving)
            self.check_disjoint(rank, index, [slot for send in round_.sends for slot in send.slots], arriving)

    def transfer(self, event: Transfer) -> None:
        """Take what the sender's slots hold now; it arrives when the receiver's round completes."""
        values = self.read(event.source, event.source_round, event.sent.slots)
        self.arriving[event.destination].update(zip(event.received.slots, values))

    def completed(self, event: Completed) -> None:
        rank, index, round_ = event.rank, event.index, event.round
        memory, arriving = self.memory[rank], self.arriving[rank]
        if arriving:
            memory.update(arriving)
            arriving.clear()
        for op in round_.local:
            self.check_writable(rank, index, [op.into])
            memory[op.into] = self.result(rank, index, op)

    def result(self, rank: int, index: int, op: Local) -> Value:
        values = self.read(rank, index, reads(op))
        if isinstance(op, Copy):
            if op.source.block != op.into.block:
                raise self.flaw(f"{op}: the names of the blocks differ", rank, index)
            return values[0]
        if not op.left.block == op.right.block == op.into.block:
            blocks = [format_block(slot.block) for slot in (op.left, op.right, op.into)]
            raise self.flaw(f"{op}: reduces block {blocks[0]} with block {blocks[1]} into block {blocks[2]}", rank, index)
        left, right = values
        twice = left.ranks & right.ranks
        if twice and not self.schedule.collective.repeats:
            raise self.flaw(f"{op}: counts the contribution of {_ranks(twice)} twice", rank, index)
        return self.trees.node(left, right)

    def read(self, rank: int, index: int, slots: Iterable[Slot]) -> list[Value]:
        """What slots hold. It is always the block they name: neither messages nor local operations mix blocks."""
        try:
            return list(map(self.memory[rank].__getitem__, slots))
        except KeyError as error:
            raise self.flaw(f"reads {error.args[0]}, which holds nothing yet", rank, index) from None

    def check_writable(self, rank: int, index: int, slots: Sequence[Slot]) -> None:
        given = self.given[rank]
        if not given.isdisjoint(slots):
            raise self.flaw(f"writes {next(filter(given.__contains__, slots))}, the caller's input", rank, index)

    def check_disjoint(self, rank: int, index: int, sending: Iterable[Slot], arriving: Sequence[Slot]) -> None:
        taken = set(arriving)
        if not taken.isdisjoint(sending):
            both = next(filter(taken.__contains__, sending))
            raise self.flaw(f"receives into {both} while its memory is being sent", rank, index)
        if len(taken) < len(arriving):
            twice = next(slot for slot in arriving if arriving.count(slot) > 1)
            raise self.flaw(f"receives twice into {twice}", rank, index)

    def check_result(self) -> None:
        """Compare what every rank holds with the state after the collective."""
        case, collective = self.schedule.case, self.schedule.collective
        agreed: dict[tuple[Block, range], tuple[int, Value]] = {}
        for rank in case.everyone:
            for slot, origins in collective.after(rank, case).items():
                value = self.memory[rank].get(slot)
                if value is None:
                    raise self.flaw(f"{slot} holds nothing", rank)
                first, expected = agreed.setdefault((slot.block, origins), (rank, value))
                if value is not expected or rank == first:
                    self.check_origins(rank, slot, value, origins)
                if value is not expected and not collective.repeats:
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


def _mask(ranks: range) -> int:
    """A run of ranks as a bit mask."""
    return (1 << ranks.stop) - (1 << ranks.start)


def _ranks(mask: int) -> str:
    names = [str(rank) for rank in range(mask.bit_length()) if mask >> rank & 1]
    return f"rank{'s' * (len(names) > 1)} {', '.join(names)}"
