"""Matching: all ranks of a schedule run side by side, and which send meets which receive.

This is the one engine below verify, count, show and predict. Between an ordered pair of ranks the k-th send meets the k-th
receive. Sends are synchronous: a round is over only when the peers of all its messages have come, so what completes here
cannot deadlock on any network, however little it buffers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from ..core.algorithm import Schedule
from ..core.errors import ScheduleError
from ..core.schedule import Message, Recv, Round, Send, Slot, format_block


class Flaw(ScheduleError):
    """Something wrong in a schedule, and where.

    Attributes
    ----------
    what
        The fault in one sentence.
    rank, round
        Where it shows: the rank and the index of its round, which is None when it shows after the last one. The message
        counts rounds from 1.
    """

    def __init__(self, schedule: Schedule, what: str, rank: int, round_: int | None = None) -> None:
        self.schedule, self.what, self.rank, self.round = schedule, what, rank, round_
        where = "at the end" if round_ is None else f"its round {round_ + 1}"
        root = f", root {schedule.case.root}" if schedule.collective.rooted else ""
        super().__init__(f"{schedule.collective} {schedule.name} on {schedule.size} ranks{root}: rank {rank}, {where}: {what}")


@dataclass(frozen=True, slots=True)
class Started:
    """A rank enters a round: its messages are posted."""

    rank: int
    index: int
    round: Round


@dataclass(frozen=True, slots=True)
class Completed:
    """All messages of a rank's round have come and gone; its copies and reductions apply now."""

    rank: int
    index: int
    round: Round


class Transfer(NamedTuple):
    """A matched pair: a send of one rank's round and a receive of another's."""

    source: int
    source_round: int
    destination: int
    destination_round: int
    sent: Send
    received: Recv


Event: TypeAlias = Started | Transfer | Completed


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
    """All ranks between two events: each in one of its rounds, with the messages of these rounds that have no partner yet."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.programs = [filter(None, schedule.program(rank)) for rank in range(schedule.size)]
        self.index = [-1] * schedule.size
        self.current: list[Round | None] = [None] * schedule.size
        self.missing = [0] * schedule.size
        # From one rank to another either sends wait for their receives, or receives for their sends, never both.
        self.waiting: defaultdict[tuple[int, int], deque[Message]] = defaultdict(deque)
        self.ready = deque(range(schedule.size))

    def run(self) -> Iterator[Event]:
        while self.ready:
            rank = self.ready.popleft()
            self.current[rank] = round_ = next(self.programs[rank], None)
            if round_ is None:
                continue
            self.index[rank] += 1
            self.missing[rank] = len(round_.sends) + len(round_.recvs)
            yield Started(rank, self.index[rank], round_)
            if not self.missing[rank]:
                yield self.complete(rank)
            for message in round_.messages:
                if transfer := self.post(rank, message):
                    yield transfer
                    for party in (transfer.source, transfer.destination):
                        self.missing[party] -= 1
                        if not self.missing[party]:
                            yield self.complete(party)
        self.check_finished()

    def post(self, rank: int, message: Message) -> Transfer | None:
        """Put one side of a message to the other if that is there already, else let it wait."""
        if not 0 <= message.peer < self.schedule.size or message.peer == rank:
            raise Flaw(self.schedule, f"{message}: that is no other rank", rank, self.index[rank])
        if not message.slots:
            raise Flaw(self.schedule, f"{message}: the message is empty", rank, self.index[rank])
        sends = isinstance(message, Send)
        source, destination = pair = (rank, message.peer) if sends else (message.peer, rank)
        waiting = self.waiting[pair]
        if not waiting or isinstance(waiting[0], Send) is sends:
            waiting.append(message)
            return None
        sent, received = (message, waiting.popleft()) if sends else (waiting.popleft(), message)
        assert isinstance(sent, Send) and isinstance(received, Recv)
        self.check_blocks(source, destination, sent, received)
        return Transfer(source, self.index[source], destination, self.index[destination], sent, received)

    def complete(self, rank: int) -> Completed:
        round_ = self.current[rank]
        assert round_ is not None
        self.ready.append(rank)
        return Completed(rank, self.index[rank], round_)

    def check_blocks(self, source: int, destination: int, send: Send, recv: Recv) -> None:
        sent, expected = list(map(_block, send.slots)), list(map(_block, recv.slots))
        if sent != expected:
            raise Flaw(
                self.schedule, f"expects {_blocks(recv.slots)} from rank {source}, which sends {_blocks(send.slots)} "
                f"in its round {self.index[source] + 1}", destination, self.index[destination])

    def check_finished(self) -> None:
        """Every rank must have come to its end; else say for what one of those that did not is waiting.

        One that waits for a rank that has finished is nearest to the fault; the others may wait for it.
        """
        stuck = [rank for rank in range(self.schedule.size) if self.current[rank]]
        if stuck:
            rank = next((r for r in stuck if any(self.current[m.peer] is None for m in self.unmatched(r))), stuck[0])
            waits = "; and ".join(map(self.wait, self.unmatched(rank)))
            raise Flaw(self.schedule, f"waits forever {waits}", rank, self.index[rank])

    def unmatched(self, rank: int) -> list[Message]:
        """The messages of a rank's round that have no partner yet."""
        return [message for (source, destination), messages in self.waiting.items() for message in messages
                if rank == (source if isinstance(message, Send) else destination)]

    def wait(self, message: Message) -> str:
        """What a message waits for."""
        doing = "has finished" if self.current[message.peer] is None else f"is in its round {self.index[message.peer] + 1}"
        verb, link = ("send", "to") if isinstance(message, Send) else ("receive", "from")
        return f"to {verb} {_blocks(message.slots)} {link} rank {message.peer}, which {doing}"


_block = attrgetter("block")


def _blocks(slots: Iterable[Slot]) -> str:
    names = [format_block(slot.block) for slot in slots]
    return f"block{'s' * (len(names) > 1)} {', '.join(names)}"
