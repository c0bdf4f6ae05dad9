"""The film of a schedule: who sends what to whom at each time, and what every rank then holds that is still needed.

All pictures are drawn from it. Frames follow the common clock of `timeline`, so what stands in one frame really happens at the
same time. A film of a broken schedule ends where the schedule does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ...core.algorithm import Schedule
from ...core.schedule import Block, Recv, Reduce, Round, Send, Slot, reads
from ..match import Completed, Flaw, Started, Transfer, events
from ..timeline import Clock, Timeline

Held: TypeAlias = Mapping[Block, int]
"""For the blocks that a rank holds, whose contributions are in them, as a bit mask of ranks."""


@dataclass(frozen=True)
class Message:
    """What goes from one rank to another within one frame."""

    source: int
    destination: int
    blocks: tuple[Block, ...]
    reduced: bool
    """Whether the receiver reduces it with what it has."""


@dataclass(frozen=True)
class Frame:
    """One unit of time: the messages under way, and what every rank holds when they have arrived."""

    phase: str
    messages: tuple[Message, ...]
    held: tuple[Held, ...]


@dataclass(frozen=True)
class Film:
    """All frames of a schedule.

    Attributes
    ----------
    before
        What every rank holds before the first frame.
    wanted
        What every rank must hold after the last.
    waiting
        For a rank that never completes a round: the messages of that round that found no partner.
    flaw
        Why the schedule could not be run to its end.
    """

    schedule: Schedule
    timeline: Timeline
    before: tuple[Held, ...]
    frames: tuple[Frame, ...]
    wanted: tuple[Held, ...]
    waiting: Mapping[int, tuple[Send | Recv, ...]]
    flaw: Flaw | None

    def frame_of(self, rank: int, round_: int) -> int | None:
        """The number of the frame, from 1, at whose end a round of a rank is complete; None if it never is.

        Rounds without messages complete before a frame or after the one before; those before the first are in frame 0.
        """
        ends = self.timeline.ends[rank]
        return ends[round_] if round_ < len(ends) else None


def film(schedule: Schedule) -> Film:
    """Run a schedule and take its film; what is wrong with it is found in ``flaw`` instead of raised."""
    return _Camera(schedule).film()


class _Camera:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule, case = schedule, schedule.case
        self.clock = Clock(schedule.size)
        self.rounds: list[list[Round]] = [[] for _ in case.everyone]
        self.transfers: list[Transfer] = []
        self.flaw: Flaw | None = None
        self.wanted = [schedule.collective.after(rank, case) for rank in case.everyone]
        self.last_read = [_last_reads(schedule.rounds(rank)) for rank in case.everyone]
        self.memory: list[dict[Slot, int]] = [
            {slot: _mask(origins) for slot, origins in schedule.collective.before(rank, case).items()}
            for rank in case.everyone]
        self.done = [0] * schedule.size

    def film(self) -> Film:
        self.run()
        timeline = self.clock.timeline()
        under_way: list[list[Transfer]] = [[] for _ in range(timeline.length)]
        for transfer, start in zip(self.transfers, timeline.starts):
            if start is not None:
                under_way[start].append(transfer)
        before = self.held()
        self.settle(timeline, 0)
        frames = tuple(self.frame(timeline, now + 1, transfers) for now, transfers in enumerate(under_way))
        wanted = tuple({slot.block: _mask(origins) for slot, origins in state.items()} for state in self.wanted)
        return Film(self.schedule, timeline, before, frames, wanted, dict(self.waiting(timeline)), self.flaw)

    def run(self) -> None:
        try:
            for event in events(self.schedule):
                if isinstance(event, Started):
                    self.clock.started(event)
                    self.rounds[event.rank].append(event.round)
                elif isinstance(event, Transfer):
                    self.clock.transfer(event)
                    self.transfers.append(event)
                elif isinstance(event, Completed):
                    self.clock.completed(event)
        except Flaw as flaw:
            self.flaw = flaw

    def frame(self, timeline: Timeline, end: int, transfers: list[Transfer]) -> Frame:
        arriving = [
            (transfer.destination, into, self.memory[transfer.source].get(source))
            for transfer in transfers for source, into in zip(transfer.sent.slots, transfer.received.slots)]
        for rank, slot, value in arriving:
            if value is not None:
                self.memory[rank][slot] = value
        self.settle(timeline, end)
        phases = dict.fromkeys(self.rounds[t.source][t.source_round].phase for t in transfers)
        return Frame(", ".join(filter(None, phases)), tuple(map(self.message, transfers)), self.held())

    def message(self, transfer: Transfer) -> Message:
        local = self.rounds[transfer.destination][transfer.destination_round].local
        taken = {slot for op in local if isinstance(op, Reduce) for slot in reads(op)}
        return Message(
            transfer.source, transfer.destination, tuple(slot.block for slot in transfer.sent.slots),
            reduced=not taken.isdisjoint(transfer.received.slots))

    def settle(self, timeline: Timeline, now: int) -> None:
        """Apply the copies and reductions of the rounds that are complete by now."""
        for rank, ends in enumerate(timeline.ends):
            while self.done[rank] < len(ends) and ends[self.done[rank]] <= now:
                for op in self.rounds[rank][self.done[rank]].local:
                    sources = [self.memory[rank].get(slot) for slot in reads(op)]
                    if None not in sources:
                        self.memory[rank][op.into] = _union(sources)
                self.done[rank] += 1

    def held(self) -> tuple[Held, ...]:
        return tuple(dict(sorted(self.held_by(rank).items())) for rank in range(self.schedule.size))

    def held_by(self, rank: int) -> dict[Block, int]:
        """The fullest value of each block among the slots that are yet to be read, or part of the result."""
        best: dict[Block, int] = {}
        for slot, mask in self.memory[rank].items():
            needed = slot in self.wanted[rank] or self.last_read[rank].get(slot, -1) >= self.done[rank]
            if needed and mask.bit_count() > best.get(slot.block, 0).bit_count():
                best[slot.block] = mask
        return best

    def waiting(self, timeline: Timeline) -> Iterator[tuple[int, tuple[Send | Recv, ...]]]:
        matched = {id(message) for transfer in self.transfers for message in (transfer.sent, transfer.received)}
        for rank, rounds in enumerate(self.rounds):
            if len(rounds) > len(timeline.ends[rank]):
                now = rounds[len(timeline.ends[rank])]
                messages: tuple[Send | Recv, ...] = (*now.sends, *now.recvs)
                yield rank, tuple(message for message in messages if id(message) not in matched)


def _last_reads(rounds: tuple[Round, ...]) -> dict[Slot, int]:
    """For each slot the last round that reads it; after that, what lies there is needed no more."""
    last: dict[Slot, int] = {}
    for index, round_ in enumerate(rounds):
        last.update((slot, index) for send in round_.sends for slot in send.slots)
        # What a round copies or reduces is read at its end, when its own messages are in.
        last.update((slot, index) for op in round_.local for slot in reads(op))
    return last


def _mask(origins: range) -> int:
    return sum(1 << rank for rank in origins)


def _union(masks: list[int | None]) -> int:
    union = 0
    for mask in masks:
        union |= mask or 0
    return union
