"""The proof: what it accepts, and each rule of it broken by the smallest schedule that does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
from cases import ALGORITHMS, by_hand, schedules
from oracle import judge

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    BROADCAST,
    GATHER,
    IN,
    OUT,
    REDUCE,
    TABLE,
    Algorithm,
    Copy,
    Recv,
    Reduce,
    Round,
    Schedule,
    Send,
    Space,
)
from treering.readers.match import Flaw
from treering.readers.sweep import some_roots
from treering.readers.verify import verify

HELD = Space("held")


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_every_algorithm_is_right_and_a_second_opinion_agrees(algorithm: Algorithm) -> None:
    for schedule in schedules(algorithm, range(1, 10)):
        verify(schedule)
        judge(schedule)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_every_algorithm_is_right_on_more_ranks(algorithm: Algorithm) -> None:
    for schedule in schedules(algorithm, [15, 16, 17, 24, 31, 32], lambda size: some_roots(size)[:4]):
        verify(schedule)


@pytest.mark.parametrize(("collective", "segments"), [(c, s) for c in ("broadcast", "reduce") for s in (1, 2, 3, 7, 20)])
def test_pipelines_are_right_for_any_number_of_segments(collective: str, segments: int) -> None:
    for size in (1, 2, 3, 6):
        for root in range(size):
            verify(TABLE[collective, "chain"].schedule(size, root, segments=segments))


def pair(*programs: list[Round]) -> Callable[[int], Iterable[Round]]:
    return programs.__getitem__


SWAP = [Round(Send(1, IN(0)), Recv(1, HELD(0)), Reduce(OUT(0), IN(0), HELD(0)))]
"""What rank 0 of two does in a right all-reduce."""
SWAPPED = [Round(Send(0, IN(0)), Recv(0, HELD(0)), Reduce(OUT(0), HELD(0), IN(0)))]
"""And what rank 1 does."""


def test_the_pair_is_right() -> None:
    verify(by_hand(ALL_REDUCE, 2, pair(SWAP, SWAPPED), in_order=True))


@pytest.mark.parametrize(("schedule", "message"), [
    (by_hand(GATHER, 2, pair([Round(Recv(1, OUT(1)), Copy(OUT(0), HELD(0)))], [Round(Send(0, IN(1)))])),
     "rank 0, its round 1: reads held[0], which holds nothing yet"),
    (by_hand(GATHER, 2, pair([Round(Recv(1, OUT(1)))], [Round(Send(0, OUT(1)))])),
     "rank 1, its round 1: reads out[1], which holds nothing yet"),
    (by_hand(GATHER, 2, pair([Round(Recv(1, OUT(1)))], [Round(Send(0, IN(1)))])), "rank 0, at the end: out[0] holds nothing"),
    (by_hand(GATHER, 2, pair([Round(Copy(OUT(1), IN(0)))], [])), "out[1] = in[0]: the names of the blocks differ"),
    (by_hand(GATHER, 2, pair([Round(Copy(IN(0), IN(0)))], [])), "writes in[0], the caller's input"),
    (by_hand(ALL_REDUCE, 2, pair([Round(Recv(1, IN(0)))], [Round(Send(0, IN(0)))])),
     "rank 0, its round 1: writes in[0], the caller's input"),
    (by_hand(ALL_GATHER, 2, lambda r: [Round(Copy(OUT(r), IN(r))), Round(Send(1 - r, OUT(r)), Recv(1 - r, OUT(r)))]),
     "receives into out[0] while its memory is being sent"),
    (by_hand(ALL_GATHER, 2, lambda r: [Round(Send(1 - r, IN(r), IN(r)), Recv(1 - r, OUT(1 - r), OUT(1 - r)))]),
     "receives twice into out[1]"),
    (by_hand(ALL_REDUCE, 2, lambda r: [Round(Send(1 - r, IN(0)), Recv(1 - r, OUT(0)))]),
     "rank 0, at the end: out[0] lacks the contribution of rank 0"),
    (by_hand(REDUCE, 3, pair(
        [Round(Recv(1, HELD(0))), Round(Reduce(OUT(0), HELD(0), HELD(0)))], [Round(Send(0, IN(0)))], [])),
     "rank 0, its round 2: out[0] = held[0] ⊕ held[0]: counts the contribution of rank 1 twice"),
    (by_hand(ALL_REDUCE, 2, pair([Round(Reduce(OUT(0), IN(0), IN(1)))], []), blocks=2),
     "out[0] = in[0] ⊕ in[1]: reduces block 0 with block 1 into block 0"),
    (by_hand(ALL_REDUCE, 2, pair([Round(Copy(OUT(1), IN(1)), Reduce(OUT(0), IN(1), OUT(1)))], []), blocks=2),
     "reduces block 1 with block 1 into block 0"),
    (by_hand(BROADCAST, 2, pair([], [Round(Copy(OUT(0), HELD(0)))])), "rank 1, its round 1: reads held[0]"),
    (by_hand(ALL_REDUCE, 2, pair(SWAP, [Round(Send(0, IN(0)), Recv(0, HELD(0)), Reduce(OUT(0), IN(0), HELD(0)))])),
     "rank 1, at the end: out[0] was reduced by another tree than on rank 0, so bits may differ"),
    (by_hand(ALL_REDUCE, 2, pair(
        [Round(Send(1, IN(0)), Recv(1, HELD(0)), Reduce(OUT(0), HELD(0), IN(0)))],
        [Round(Send(0, IN(0)), Recv(0, HELD(0)), Reduce(OUT(0), IN(0), HELD(0)))]), in_order=True),
     "rank 0, at the end: out[0] was not reduced in rank order, as claimed"),
])
def test_each_rule_broken_is_named(schedule: Schedule, message: str) -> None:
    with pytest.raises(Flaw) as caught:
        verify(schedule)
    assert message in str(caught.value)


def test_another_association_is_another_tree() -> None:
    """(0 ⊕ 1) ⊕ 2 on one rank and 0 ⊕ (1 ⊕ 2) on the others have the same contributions in the same order."""
    def program(rank: int) -> Iterator[Round]:
        others = [r for r in range(3) if r != rank]
        a, b, c = (IN(0) if r == rank else Space(f"from {r}")(0) for r in range(3))
        from_left = [Reduce(OUT(0), a, b), Reduce(OUT(0), OUT(0), c)]
        from_right = [Reduce(OUT(0), b, c), Reduce(OUT(0), a, OUT(0))]
        sums = from_right if rank else from_left
        yield Round(*(Send(r, IN(0)) for r in others), *(Recv(r, Space(f"from {r}")(0)) for r in others), *sums)

    with pytest.raises(Flaw, match=r"rank 1, at the end: .* by another tree than on rank 0"):
        verify(by_hand(ALL_REDUCE, 3, program, in_order=True))


def test_reductions_of_a_round_apply_in_order() -> None:
    reductions = [Reduce(HELD(0), IN(0), HELD(0)), Copy(OUT(0), HELD(0))]
    right = by_hand(REDUCE, 2, pair([Round(Recv(1, HELD(0)), *reductions)], [Round(Send(0, IN(0)))]))
    wrong = by_hand(REDUCE, 2, pair([Round(Recv(1, HELD(0)), *reversed(reductions))], [Round(Send(0, IN(0)))]))
    verify(right)
    with pytest.raises(Flaw, match="lacks the contribution of rank 0"):
        verify(wrong)


def test_sends_read_the_state_before_the_round() -> None:
    """Rank 1 hands on what it held before, not what arrives in the same round."""
    schedule = by_hand(BROADCAST, 3, pair(
        [Round(Send(1, OUT(0)))], [Round(Recv(0, OUT(0)), Send(2, HELD(0)))], [Round(Recv(1, OUT(0)))]))
    with pytest.raises(Flaw, match=r"rank 1, its round 1: reads held.0., which holds nothing yet"):
        verify(schedule)


def test_a_function_that_fails_is_a_flaw_of_its_schedule() -> None:
    def program(rank: int) -> Iterator[Round]:
        yield Round(Send(1 - rank, IN(0)), Recv(1 - rank, HELD(0)))
        yield Round(Reduce(OUT(0), *[IN(0), HELD(0)][: 2 - rank]))

    with pytest.raises(Flaw, match=r"rank 1, its round 2: cannot be made: TypeError: .*") as caught:
        verify(by_hand(ALL_REDUCE, 2, program))
    assert (caught.value.rank, caught.value.round) == (1, 1)
