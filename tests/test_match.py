"""Which send meets which receive, and what is said when one does not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from cases import ALGORITHMS, by_hand, schedules

from treering.core import ALL_GATHER, ALL_TO_ALL, BROADCAST, IN, OUT, Algorithm, Copy, Recv, Round, Schedule, Send
from treering.readers.match import Completed, Flaw, Started, Transfer, events, transfers


def broadcast(*programs: Iterable[Round]) -> Schedule:
    return by_hand(BROADCAST, len(programs), [list(program) for program in programs].__getitem__, blocks=2)


def test_the_kth_send_meets_the_kth_receive() -> None:
    schedule = broadcast(
        [Round(Send(1, OUT(0)), Send(1, OUT(1)))], [Round(Recv(0, OUT(0))), Round(Recv(0, OUT(1)))])
    assert [(t.sent.slots, t.received.slots, t.source_round, t.destination_round) for t in transfers(schedule)] == [
        ((OUT(0),), (OUT(0),), 0, 0), ((OUT(1),), (OUT(1),), 0, 1)]


def test_idle_rounds_do_not_count() -> None:
    schedule = broadcast([Round(), Round(Send(1, OUT(0)))], [Round(Recv(0, OUT(0))), Round()])
    assert [(t.source_round, t.destination_round) for t in transfers(schedule)] == [(0, 0)]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_causes_come_before_effects(algorithm: Algorithm) -> None:
    for schedule in schedules(algorithm, [2, 3, 5, 8]):
        started, completed, moved = set(), set(), []
        for event in events(schedule):
            if isinstance(event, Started):
                assert event.index == 0 or (event.rank, event.index - 1) in completed
                started.add((event.rank, event.index))
            elif isinstance(event, Transfer):
                ends = {(event.source, event.source_round), (event.destination, event.destination_round)}
                assert ends <= started and not ends & completed
                moved.append(event)
            else:
                assert isinstance(event, Completed)
                completed.add((event.rank, event.index))
        every = {(rank, i) for rank in range(schedule.size) for i in range(len(schedule.rounds(rank)))}
        assert started == completed == every
        assert len(moved) == sum(len(r.sends) for rank in range(schedule.size) for r in schedule.rounds(rank))


@pytest.mark.parametrize(("schedule", "message"), [
    (broadcast([Round(Send(2, OUT(0)))], []),
     "broadcast by hand on 2 ranks, root 0: rank 0, its round 1: send out[0] to 2: that is no other rank"),
    (broadcast([Round(Send(0, OUT(0)))], []), "rank 0, its round 1: send out[0] to 0: that is no other rank"),
    (broadcast([Round(Send(-1, OUT(0)))], []), "that is no other rank"),
    (broadcast([Round(Send(1))], []), "the message is empty"),
    (broadcast([Round(Send(1, OUT(0), OUT(1)))], [Round(Recv(0, OUT(1), OUT(0)))]),
     "rank 1, its round 1: expects blocks 1, 0 from rank 0, which sends blocks 0, 1 in its round 1"),
    (broadcast([Round(Send(1, OUT(0)))], []),
     "rank 0, its round 1: waits forever to send block 0 to rank 1, which has finished"),
    (broadcast([], [Round(Recv(0, OUT(0)))]), "rank 1, its round 1: waits forever to receive block 0 from rank 0, which has"),
])
def test_what_cannot_match_is_said(schedule: Schedule, message: str) -> None:
    with pytest.raises(Flaw) as caught:
        list(events(schedule))
    assert message in str(caught.value)


def test_sends_are_synchronous() -> None:
    """Both send first: with buffered sends this would pass, on a network that does not buffer it hangs."""
    schedule = by_hand(ALL_GATHER, 2, lambda rank: [Round(Send(1 - rank, IN(rank))), Round(Recv(1 - rank, OUT(1 - rank)))])
    with pytest.raises(Flaw, match="rank 0, its round 1: waits forever to send block 0 to rank 1, which is in its round 1"):
        list(events(schedule))


def test_in_one_round_both_go() -> None:
    schedule = by_hand(ALL_GATHER, 2, lambda rank: [Round(Send(1 - rank, IN(rank)), Recv(1 - rank, OUT(1 - rank)))])
    assert len(list(transfers(schedule))) == 2


def test_a_circle_of_waiting_is_found() -> None:
    """Each of three receives from the left before it sends to the right."""
    schedule = by_hand(ALL_GATHER, 3, lambda rank: [
        Round(Recv((rank - 1) % 3, OUT((rank - 1) % 3))), Round(Send((rank + 1) % 3, IN(rank)))])
    with pytest.raises(Flaw, match="rank 0, its round 1: waits forever to receive block 2 from rank 2, which is in its"):
        list(events(schedule))


def test_of_those_that_wait_the_one_nearest_to_the_fault_is_named() -> None:
    """Rank 0 waits for rank 1, which waits for rank 2, which has forgotten to send."""
    schedule = broadcast([Round(Recv(1, OUT(0)))], [Round(Recv(2, OUT(0))), Round(Send(0, OUT(0)))], [])
    with pytest.raises(Flaw, match="rank 1, its round 1: waits forever to receive block 0 from rank 2, which has finished"):
        list(events(schedule))


def test_all_that_a_rank_waits_for_is_said() -> None:
    schedule = by_hand(ALL_TO_ALL, 3, lambda rank: [
        Round(Copy(OUT((rank, rank)), IN((rank, rank)))),
        *([Round(Send(1, IN((0, 1))), Recv(2, OUT((2, 0))))] if rank == 0 else [])])
    with pytest.raises(Flaw, match=r"waits forever to send block 0→1 to rank 1, .*; and to receive block 2→0 from rank 2"):
        list(events(schedule))
