"""Counting: golden figures of the literature, and the clock on small schedules made by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import treering
import treering.table  # fills the table
from treering.core import ALL_GATHER, IN, OUT, Case, Copy, Recv, Refused, Round, Schedule, Send, Space
from treering.core.algorithm import TABLE, Algorithm
from treering.core.layout import total
from treering.readers.count import count, sent_by, spread
from treering.readers.match import Flaw


@pytest.mark.parametrize(("collective", "algorithm", "size", "rounds", "sent"), [
    ("all-reduce", "ring", 8, 14, Fraction(14, 8)),
    ("all-reduce", "doubling", 16, 4, 4),
    ("all-reduce", "doubling", 12, 5, 4),
    ("all-reduce", "halving-doubling", 16, 8, Fraction(30, 16)),
    ("all-gather", "bruck", 33, 6, Fraction(32, 33)),
    ("broadcast", "binomial", 33, 6, 6),
    ("broadcast", "chain:segments=5", 9, 9 - 2 + 5, 1),
    ("broadcast", "scatter-ring", 8, 3 + 7, Fraction(14, 8)),
    ("all-to-all", "bruck", 33, 6, Fraction(81, 33)),
    ("all-to-all", "bruck", 16, 4, 2),
    ("all-to-all", "pairwise", 33, 32, Fraction(32, 33)),
])
def test_rounds_and_volume_of_the_literature(
    collective: str, algorithm: str, size: int, rounds: int, sent: Fraction | int,
) -> None:
    figures = count(treering.schedule(collective, algorithm, size))
    assert (figures.rounds, figures.sent) == (rounds, sent)


def test_all_figures_of_a_ring() -> None:
    figures = count(treering.schedule("all-reduce", "ring", 4), counts=1002, itemsize=8)
    # Blocks of 251, 251, 250 and 250 elements. Rank r sends all of them twice, but block r and block r + 1 once.
    assert [load.messages_sent for load in figures.ranks] == [6] * 4
    assert figures.total.messages_received == 24
    assert figures.total.bytes_sent == figures.total.bytes_received == 8 * 2 * 3 * 1002
    assert figures.total.bytes_reduced == 8 * 3 * 1002
    assert figures.total.rounds == figures.rounds == figures.ranks[0].rounds == 6
    assert figures.ranks[0].bytes_sent == 8 * (250 + 250 + 251 + 251 + 250 + 250)
    assert figures.pair is not None
    assert (figures.pair.source, figures.pair.destination) == (2, 3)
    assert figures.pair.bytes == figures.most("bytes_sent") == 8 * (2 * 1002 - 250 - 250)
    assert figures.busiest() == 2


def test_of_a_tree_only_the_root_is_busy() -> None:
    figures = count(treering.schedule("gather", "binomial", 8, root=3), counts=10)
    assert figures.busiest() == 3
    assert figures.volume == Fraction(7, 8) and figures.sent == Fraction(1, 2)
    assert figures.ranks[3].bytes_received == 70
    assert (figures.pair.source, figures.pair.destination, figures.pair.bytes) == (7, 3, 40)  # type: ignore[union-attr]


def test_empty_messages_are_not_sent_and_nobody_waits_for_them() -> None:
    ring = treering.schedule("all-gather", "ring", 4)
    everything = count(ring, counts=[5, 5, 5, 5])
    one = count(ring, counts=[0, 0, 7, 0])
    assert everything.total.messages_sent == 12
    assert (one.total.messages_sent, one.total.bytes_sent, one.rounds) == (3, 21, 3)
    nothing = count(ring, counts=0)
    assert (nothing.total.messages_sent, nothing.rounds, nothing.pair) == (0, 0, None)


def test_without_counts_blocks_are_counted_and_no_bytes() -> None:
    figures = count(treering.schedule("reduce-scatter", "halving", 8))
    assert figures.most("blocks_sent") == figures.most("blocks_reduced") == 7
    assert figures.total.bytes_sent == 0


def test_a_rank_that_is_alone_only_copies() -> None:
    figures = count(treering.schedule("all-reduce", "ring", 1), counts=3, itemsize=4)
    assert (figures.rounds, figures.total.bytes_copied, figures.total.messages_sent) == (0, 12, 0)


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Refused, match="takes 4 counts, not 3"):
        count(treering.schedule("all-gather", "ring", 4), counts=[1, 2, 3])


@given(st.sampled_from(list(TABLE.values())), st.integers(1, 9), st.data())
def test_one_rank_alone_counts_what_all_together_count(algorithm: Algorithm, size: int, data: st.DataObject) -> None:
    if algorithm.why_not(size):
        return
    units = algorithm.collective.units(size)
    counts = data.draw(st.lists(st.integers(0, 40), min_size=units, max_size=units))
    root = data.draw(st.integers(0, size - 1)) if algorithm.collective.rooted else 0
    schedule = algorithm.schedule(size, root)
    figures = count(schedule, counts, itemsize=2)
    assert [sent_by(schedule, rank, counts, itemsize=2) for rank in range(size)] == [r.bytes_sent for r in figures.ranks]
    assert figures.total.bytes_sent == figures.total.bytes_received
    assert figures.depth <= figures.rounds <= figures.total.messages_sent


def test_one_rank_of_many_is_counted_at_its_own_cost() -> None:
    chain = treering.schedule("broadcast", "chain", 1_000_000)
    assert sent_by(chain, 123_456, counts=1000, itemsize=4) == 4000
    assert sent_by(chain, 999_999, counts=1000, itemsize=4) == 0


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "all-to-all", "scatter"])
def test_sizes_spread_over_units_add_up(collective: str) -> None:
    kind = treering.schedule(collective, "linear", 5).collective
    counts = spread(kind, 5, 103)
    assert total(kind, 5, counts) == (5 * 103 if collective == "all-to-all" else 103)


# ---- the clock ----

def hand_made(*ranks: list[Round]) -> Schedule:
    return Schedule("by hand", ALL_GATHER, Case(len(ranks), 0, len(ranks)), ranks.__getitem__)


A = Space("a")


def test_sends_of_a_round_take_turns_in_their_order() -> None:
    fan = hand_made([Round(Send(2, A(0)), Send(1, A(0)))], [Round(Recv(0, A(0)))], [Round(Recv(0, A(0)))])
    figures = count(fan)
    assert (figures.rounds, figures.depth) == (2, 1)
    assert [load.rounds for load in figures.ranks] == [2, 2, 1]


def test_who_finds_its_receiver_busy_serves_the_next() -> None:
    crossing = hand_made(
        [Round(Send(1, A(0)))], [Round(Recv(0, A(0)), Recv(3, A(3)))], [Round(Recv(3, A(3)))],
        [Round(Send(1, A(3)), Send(2, A(3)))])
    assert count(crossing).rounds == 2


def test_who_finds_its_receiver_late_serves_the_next() -> None:
    late = hand_made(
        [Round(Send(1, A(0)), Send(2, A(0)))], [Round(Recv(3, A(3))), Round(Recv(0, A(0)))], [Round(Recv(0, A(0)))],
        [Round(Send(1, A(3)))])
    assert count(late).rounds == 2


def test_a_receiver_takes_one_message_at_a_time() -> None:
    fan = hand_made(
        [Round(Recv(1, A(1)), Recv(2, A(2)), Recv(3, A(3)))], *([Round(Send(0, A(rank)))] for rank in (1, 2, 3)))
    assert (count(fan).rounds, count(fan).depth) == (3, 1)


def test_sending_and_receiving_go_together() -> None:
    swap = hand_made([Round(Send(1, A(0)), Recv(1, A(1)))], [Round(Send(0, A(1)), Recv(0, A(0)))])
    assert count(swap).rounds == 1


def test_rounds_that_only_copy_cost_nothing() -> None:
    copying = hand_made(
        [Round(Copy(OUT(0), IN(0))), Round(Send(1, A(0))), Round(Copy(A(1), A(0)), Copy(A(2), A(0)))],
        [Round(Copy(OUT(1), IN(1))), Round(Copy(A(1), IN(1))), Round(Recv(0, A(0)))])
    figures = count(copying)
    assert (figures.rounds, figures.total.blocks_copied) == (1, 5)


def test_a_chain_of_rounds_adds_up_but_strangers_do_not_wait() -> None:
    relay = hand_made(
        [Round(Send(1, A(0)))], [Round(Recv(0, A(0))), Round(Send(2, A(0)))], [Round(Recv(1, A(0)))],
        [Round(Send(4, A(3)))], [Round(Recv(3, A(3)))])
    assert [load.rounds for load in count(relay).ranks] == [1, 2, 2, 1, 1]


def test_a_schedule_that_does_not_match_is_not_counted() -> None:
    with pytest.raises(Flaw, match="waits forever"):
        count(hand_made([Round(Send(1, A(0)))], []))
