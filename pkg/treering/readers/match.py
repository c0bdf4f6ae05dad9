"""Matching: all ranks of a schedule run side by side, and which send meets which receive.

This is the one engine below verify, count, show and predict. Between an ordered pair of ranks the k-th send meets the k-th
receive. Sends are synchronous: a round is over only when the peers of all its messages have come, so what completes here
cannot deadlock on any network, however little it buffers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, Union

from ..core.errors import ScheduleError
from ..core.schedule import Recv, Round, Send, format_block
from ..core.algorithm import Schedule


class Flaw(ScheduleError):
    """Something wrong in a schedule, and where.

    Attributes
    ----------
    what
        The fault in one sentence.
    rank, round
        Where it shows; round is None when it shows after the last one.
    """

    def __init__(self, schedule: Schedule, what: str, rank: int, round_: int | None = None) -> None:
        self.schedule, self.what, self.rank, self.round = schedule, what, rank, round_
        where = f"round {round_}" if round_ is not None else "at the end"
        root = f", root {schedule.case.root}" if schedule.collective.rooted else ""
        super().__init__(f"{schedule.collective} {schedule.name} on {schedule.size} ranks{root}: rank {rank}, {where}: {what}")


class Started(NamedTuple):
    """A rank enters a round: its messages are posted."""

    rank: int
    index: int
    round: Round


class Completed(NamedTuple):
    """All messages of a rank's round have come and gone; its copies and reductions apply now."""

    rank: int
    index: int
    round: Round


@dataclass(frozen=True, slots=True)
class Transfer:
    """A matched pair: a send of one rank's round and a receive of another's."""

    source: int
    source_round: int
    destination: int
    destination_round: int
    sent: Send
    received: Recv


Event: TypeAlias = Union[Started, Transfer, Completed]


def events(schedule: Schedule) -> Iterator[Event]:
    """Run all ranks, in an order in which causes come before their effects.

    Raises
    ------
    Flaw
        If a message names no other rank, names other blocks than its partner, or waits forever.
    """
    return _Match(schedule).run()


def transfers(schedule: Schedule) -> Iterator[Transfer]:
    """Only the matched pairs, in causal order."""
    return (event for event in events(schedule) if isinstance(event, Transfer))


class _Match:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.programs = [iter(schedule.program(rank)) for rank in range(schedule.size)]
        self.index = [-1] * schedule.size
        self.current: list[Round | None] = [None] * schedule.size
        self.missing = [0] * schedule.size
        self.sends: dict[tuple[int, int], deque[Send]] = {}
        self.recvs: dict[tuple[int, int], deque[Recv]] = {}
        self.ready = deque(range(schedule.size))

    def run(self) -> Iterator[Event]:
        while self.ready:
            rank = self.ready.popleft()
            self.current[rank] = round_ = next(filter(None, self.programs[rank]), None)
            if round_ is None:
                continue
            self.index[rank] += 1
            self.missing[rank] = len(round_.sends) + len(round_.recvs)
            yield Started(rank, self.index[rank], round_)
            if not self.missing[rank]:
                yield self.complete(rank)
            for send in round_.sends:
                self.check_peer(rank, send)
                yield from self.post(rank, send.peer, send, None)
            for recv in round_.recvs:
                self.check_peer(rank, recv)
                yield from self.post(recv.peer, rank, None, recv)
        self.check_finished()

    def post(self, source: int, destination: int, send: Send | None, recv: Recv | None) -> Iterator[Event]:
        """Put one side of a message to the other if that is there already, else let it wait."""
        pair = (source, destination)
        if send is None:
            waiting = self.sends.get(pair)
            send = waiting.popleft() if waiting else None
        if recv is None:
            expecting = self.recvs.get(pair)
            recv = expecting.popleft() if expecting else None
        if send is None:
            assert recv is not None
            self.recvs.setdefault(pair, deque()).append(recv)
        elif recv is None:
            self.sends.setdefault(pair, deque()).append(send)
        else:
            self.check_blocks(source, destination, send, recv)
            yield Transfer(source, self.index[source], destination, self.index[destination], send, recv)
            for rank in pair:
                self.missing[rank] -= 1
                if not self.missing[rank]:
                    yield self.complete(rank)

    def complete(self, rank: int) -> Completed:
        round_ = self.current[rank]
        assert round_ is not None
        self.ready.append(rank)
        return Completed(rank, self.index[rank], round_)

    def check_peer(self, rank: int, message: Send | Recv) -> None:
        if not 0 <= message.peer < self.schedule.size or message.peer == rank:
            raise Flaw(self.schedule, f"{message}: that is no other rank", rank, self.index[rank])
        if not message.slots:
            raise Flaw(self.schedule, f"{message}: the message is empty", rank, self.index[rank])

    def check_blocks(self, source: int, destination: int, send: Send, recv: Recv) -> None:
        sent, expected = ([slot.block for slot in side.slots] for side in (send, recv))
        if sent != expected:
            raise Flaw(
                self.schedule, f"expects {_blocks(expected)} from rank {source}, which sends {_blocks(sent)} "
                f"in its round {self.index[source]}", destination, self.index[destination])

    def check_finished(self) -> None:
        """Every rank must have come to its end; else say for what the first of those that did not is waiting."""
        for rank, round_ in enumerate(self.current):
            if round_ is None:
                continue
            waits = [f"to {verb} {_blocks(m.slots)} {link} rank {m.peer}, which {self.doing(m.peer)}"
                     for verb, link, unmatched in (
                         ("receive", "from", self.recvs), ("send", "to", self.sends))
                     for m in self.waiting(rank, unmatched)]
            raise Flaw(self.schedule, f"waits forever {'; and '.join(waits)}", rank, self.index[rank])

    def waiting(self, rank: int, unmatched: dict[tuple[int, int], deque[Recv]] | dict[tuple[int, int], deque[Send]],
                ) -> Iterator[Send | Recv]:
        mine = 1 if unmatched is self.recvs else 0
        for pair, messages in unmatched.items():
            if pair[mine] == rank:
                yield from messages

    def doing(self, rank: int) -> str:
        return "has finished" if self.current[rank] is None else f"is in its round {self.index[rank]}"


def _blocks(blocks: list[object] | tuple[object, ...]) -> str:
    names = [format_block(getattr(b, "block", b)) for b in blocks]
    return f"block{'s' * (len(names) > 1)} {', '.join(names)}"
