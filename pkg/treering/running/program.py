"""Lowering: one rank's rounds on slots become rounds on runs of elements in three buffers.

A `Program` is what an executor runs: every message is one contiguous run, operations on neighbouring runs are one, scratch
is shared by what is not needed at the same time, and empty blocks are gone, on both sides of every message, since both know
the sizes. It holds for any datatype: runs are counted in elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

from ..core.algorithm import Schedule
from ..core.binding import bind
from ..core.layout import Counts, elements
from ..core.schedule import Copy, Local, Recv, Round, Send, Slot
from .scratch import Place, Run, Scratch


@dataclass(frozen=True, slots=True)
class Message:
    """One contiguous message to or from a peer."""

    peer: int
    run: Run


@dataclass(frozen=True, slots=True)
class Move:
    """Copy elements."""

    into: Run
    source: Run


@dataclass(frozen=True, slots=True)
class Combine:
    """Reduce elements: ``into = left ⊕ right``."""

    into: Run
    left: Run
    right: Run


Work: TypeAlias = Move | Combine


@dataclass(frozen=True, slots=True)
class Stage:
    """One round as it is run: copies that pack messages, then all messages at once, then what is local.

    ``index`` is the number of the round in the schedule; -1 is before the first.
    """

    index: int
    pack: tuple[Work, ...] = ()
    sends: tuple[Message, ...] = ()
    recvs: tuple[Message, ...] = ()
    local: tuple[Work, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pack or self.sends or self.recvs or self.local)


@dataclass(frozen=True)
class Program:
    """One rank's part of a collective, for fixed counts.

    Attributes
    ----------
    name
        Of the collective and the algorithm.
    given, result, scratch
        Elements of the caller's send and receive buffer, and of scratch.
    in_place
        Whether the caller's buffers are one, which then goes by the name of the larger.
    stages
        The rounds.
    """

    name: str
    given: int
    result: int
    scratch: int
    in_place: bool
    stages: tuple[Stage, ...]

    @property
    def sent(self) -> int:
        """Elements that this rank sends."""
        return sum(_length(message.run) for stage in self.stages for message in stage.sends)


@dataclass
class _Draft:
    """A round whose scratch has no address yet."""

    index: int
    sends: list[tuple[int, list[Place]]]
    recvs: list[tuple[int, list[Place]]]
    local: list[tuple[Place, ...]]


def lower(schedule: Schedule, rank: int, counts: Counts, in_place: bool = False) -> Program:
    """Bind one rank's part of a schedule to buffers of given sizes.

    Parameters
    ----------
    counts
        Elements of each unit of the payload, as `treering.core.layout.elements` takes them.
    in_place
        Whether send and receive buffer are one, as under ``MPI.IN_PLACE``.
    """
    return _Lowering(schedule, rank, counts, in_place).program()


class _Lowering:
    def __init__(self, schedule: Schedule, rank: int, counts: Counts, in_place: bool) -> None:
        collective, case = schedule.collective, schedule.case
        self.name = f"{collective} {schedule.name}"
        self.rounds = schedule.rounds(rank)
        self.binding = bind(collective, case, rank, self.rounds, in_place)
        self.elements = elements(collective, case, counts)
        self.scratch = Scratch()
        self.caller: dict[Slot, Place] = {}
        self.given = self.lay("in", self.binding.given)
        self.result = self.lay("out", self.binding.result)
        self.to_front = collective.front and bool(self.binding.cells)

    def lay(self, buffer: str, slots: Sequence[Slot]) -> int:
        """Give slots that are the caller's memory their runs, in order; return how many elements that takes."""
        ends = list(accumulate(map(self.size, slots), initial=0))
        for slot, start, stop in zip(slots, ends, ends[1:]):
            self.caller[slot] = Place(stop - start, run=Run(buffer, start, stop))
        return ends[-1]

    def size(self, slot: Slot) -> int:
        return self.elements(slot.block)

    def program(self) -> Program:
        saved = _Draft(-1, [], [], [
            (self.write(copy.into, -1), self.caller[copy.source]) for copy in self.binding.before if self.size(copy.into)])
        drafts = [saved, *(self.draft(index, round_) for index, round_ in enumerate(self.rounds))]
        self.scratch.assign()
        packer = _Packer(self.scratch.size)
        stages = [*map(packer.stage, drafts), Stage(len(self.rounds), local=self.fronted())]
        return Program(
            self.name, self.given, self.result, packer.size, bool(self.binding.cells), tuple(filter(None, stages)))

    def draft(self, index: int, round_: Round) -> _Draft:
        """Find the places of one round. Its messages happen at time ``2 * index``, what is local one later."""
        now = 2 * index
        return _Draft(
            index,
            [(op.peer, [self.read(slot, now) for slot in slots]) for op, slots in self.filled(round_.sends)],
            [(op.peer, [self.write(slot, now) for slot in slots]) for op, slots in self.filled(round_.recvs)],
            [self.local(op, now + 1) for op in round_.local if self.size(op.into)])

    def filled(self, messages: Iterable[Send | Recv]) -> Iterable[tuple[Send | Recv, list[Slot]]]:
        """Messages that are not empty, with their blocks that are not."""
        for message in messages:
            if slots := [slot for slot in message.slots if self.size(slot)]:
                yield message, slots

    def local(self, op: Local, now: int) -> tuple[Place, ...]:
        if isinstance(op, Copy):
            source = self.read(op.source, now)
            return self.write(op.into, now), source
        left, right = self.read(op.left, now), self.read(op.right, now)
        changes = op.into in (op.left, op.right)
        return self.read(op.into, now) if changes else self.write(op.into, now), left, right

    def read(self, slot: Slot, now: int) -> Place:
        cell = self.binding.cell(slot)
        return self.caller.get(cell) or self.scratch.use(cell, now)

    def write(self, slot: Slot, now: int) -> Place:
        cell = self.binding.cell(slot)
        return self.caller.get(cell) or self.scratch.write(cell, self.size(slot), now)

    def fronted(self) -> tuple[Work, ...]:
        """In place, reduce-scatter's result moves from where it was reduced to the front of the buffer."""
        if not self.to_front:
            return ()
        runs = _joined([_run(self.caller[self.binding.cell(slot)]) for slot in self.binding.result])
        return tuple(Move(Run(run.buffer, 0, _length(run)), run) for run in runs if run.start and _length(run))


class _Packer:
    """Turns drafts into stages; messages of several runs go through a packing area behind the scratch."""

    def __init__(self, scratch: int) -> None:
        self.base = self.size = scratch

    def stage(self, draft: _Draft) -> Stage:
        self.top = self.base
        pack: list[Work] = []
        unpack: list[Work] = []
        sends, recvs = [], []
        for peer, places in draft.sends:
            packed, runs = self.one(places)
            pack += [Move(piece, run) for piece, run in zip(_split(packed, runs), runs) if piece != run]
            sends.append(Message(peer, packed))
        for peer, places in draft.recvs:
            packed, runs = self.one(places)
            unpack += [Move(run, piece) for piece, run in zip(_split(packed, runs), runs) if piece != run]
            recvs.append(Message(peer, packed))
        return Stage(draft.index, tuple(pack), tuple(sends), tuple(recvs), (*unpack, *_fused(draft.local)))

    def one(self, places: Sequence[Place]) -> tuple[Run, list[Run]]:
        """The single run by which a message of some places goes, and the runs that it gathers."""
        runs = _joined(map(_run, places))
        if len(runs) == 1:
            return runs[0], runs
        start, self.top = self.top, self.top + sum(map(_length, runs))
        self.size = max(self.size, self.top)
        return Run("scratch", start, self.top), runs


def _fused(local: Iterable[tuple[Place, ...]]) -> Iterable[Work]:
    """Local operations, those on neighbouring runs as one; a copy of a run to itself is none."""
    fused: list[list[Run]] = []
    for places in local:
        runs = [*map(_run, places)]
        if len(runs) == 2 and runs[0] == runs[1]:
            continue
        if fused and len(fused[-1]) == len(runs) and (longer := _lengthened(fused[-1], runs)):
            fused[-1] = longer
        else:
            fused.append(runs)
    return [Move(*runs) if len(runs) == 2 else Combine(*runs) for runs in fused]


def _lengthened(before: Sequence[Run], after: Sequence[Run]) -> list[Run] | None:
    """Two operations of a kind as one, if each operand continues and none reads what the other wrote."""
    if any(b.buffer != a.buffer or b.stop != a.start for b, a in zip(before, after)):
        return None
    longer = [Run(b.buffer, b.start, a.stop) for b, a in zip(before, after)]
    into, *sources = longer
    return longer if all(source == into or not _overlap(source, into) for source in sources) else None


def _joined(runs: Iterable[Run]) -> list[Run]:
    """The same elements in the same order, neighbouring runs made one."""
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1].buffer == run.buffer and joined[-1].stop == run.start:
            run = Run(run.buffer, joined.pop().start, run.stop)
        joined.append(run)
    return joined


def _split(packed: Run, runs: Sequence[Run]) -> list[Run]:
    """Where in a packed message each of its runs lies."""
    ends = list(accumulate(map(_length, runs), initial=packed.start))
    return [Run(packed.buffer, start, stop) for start, stop in pairwise(ends)]


def _overlap(a: Run, b: Run) -> bool:
    return a.buffer == b.buffer and a.start < b.stop and b.start < a.stop


def _length(run: Run) -> int:
    return run.stop - run.start


def _run(place: Place) -> Run:
    assert place.run is not None
    return place.run
