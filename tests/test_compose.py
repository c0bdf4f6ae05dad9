"""Algorithms made of algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest
from cases import ALGORITHMS, by_hand, schedules
from hypothesis import given
from hypothesis import strategies as st
from treering.algorithms import ring, tree

from treering.core import (
    ALL_GATHER,
    BROADCAST,
    EXSCAN,
    GATHER,
    IN,
    OUT,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    SCATTER,
    TABLE,
    Algorithm,
    Block,
    Copy,
    Recv,
    Reduce,
    Round,
    Schedule,
    Send,
    Space,
    in_result,
    moved,
    named,
    on_group,
    reverse,
    then,
    transpose,
)
from treering.readers.match import Flaw
from treering.readers.verify import verify

PARTIAL = Space("partial")


def relabelled(algorithm: Algorithm, order: list[int]) -> Schedule:
    """An algorithm run by other ranks: who was rank r is now ``order[r]``, and so are the blocks that belong to ranks."""
    size = len(order)
    schedule = algorithm.schedule(size, size // 2 if algorithm.collective.rooted else 0)
    units = algorithm.collective.units(size)

    def blocks(block: Block) -> list[Block]:
        if isinstance(block, tuple):
            return [(order[block[0]], order[block[1]])]
        return [block if units == 1 else order[block]]

    return replace(
        schedule, in_order=False, case=replace(schedule.case, root=order[schedule.case.root]),
        program=lambda rank: on_group(schedule.program(order.index(rank)), order, blocks))


@given(st.data())
def test_ranks_may_change_places(data: st.DataObject) -> None:
    # Scans are left out: what a rank ends with depends on its place in rank order.
    algorithm = data.draw(st.sampled_from([a for a in ALGORITHMS if a.collective not in (SCAN, EXSCAN)]))
    sizes = [size for size in range(1, 10) if algorithm.why_not(size) is None]
    size = data.draw(st.sampled_from(sizes))
    verify(relabelled(algorithm, data.draw(st.permutations(range(size)))))


@given(st.integers(2, 6), st.integers(1, 4))
def test_blocks_may_be_refined(size: int, pieces: int) -> None:
    def refined(rank: int) -> Iterator[Round]:
        return on_group(ring.all_gather(rank, size), blocks=lambda b: range(b * pieces, (b + 1) * pieces))

    verify(by_hand(ALL_GATHER, size, refined, blocks=size * pieces))


@st.composite
def movements(draw: st.DrawFn) -> Schedule:
    """A scatter down a random tree, children in random order."""
    size = draw(st.integers(1, 9))
    parents = [0, *(draw(st.integers(0, rank - 1)) for rank in range(1, size))]
    order = draw(st.permutations(range(1, size)))
    below = {rank: {rank} for rank in range(size)}
    for rank in range(size - 1, 0, -1):
        below[parents[rank]] |= below[rank]

    def program(rank: int) -> Iterator[Round]:
        if rank:
            yield Round(Recv(parents[rank], *map(OUT, sorted(below[rank]))))
        else:
            yield Round(Copy(OUT(0), IN(0)))
        for child in order:
            if parents[child] == rank:
                yield Round(Send(child, *map(OUT if rank else IN, sorted(below[child]))))

    return by_hand(SCATTER, size, program)


@given(movements())
def test_a_movement_backwards_moves_everything_back(scatter: Schedule) -> None:
    verify(scatter)
    gather = by_hand(GATHER, scatter.size, lambda rank: reverse(scatter.program(rank)))
    verify(gather)
    verify(by_hand(SCATTER, scatter.size, lambda rank: reverse(gather.program(rank))))


@pytest.mark.parametrize("backwards", [reverse, lambda rounds: transpose(0, rounds)])
def test_a_reduction_has_no_reverse(backwards: Callable[[Iterable[Round]], Iterable[Round]]) -> None:
    with pytest.raises(TypeError, match="cannot be reversed"):
        list(backwards(tree.reduce(0, 4, 0)))


OPPOSITES = {BROADCAST: REDUCE, ALL_GATHER: REDUCE_SCATTER}


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a.collective in OPPOSITES], ids=str)
def test_what_brings_no_block_twice_reduces_backwards(algorithm: Algorithm) -> None:
    for schedule in schedules(algorithm, range(2, 8)):
        backwards = replace(
            schedule, collective=OPPOSITES[schedule.collective], in_order=False,
            program=lambda rank, forwards=schedule.program: transpose(rank, forwards(rank)))
        if brings_a_block_twice(schedule):
            with pytest.raises(Flaw, match=r"twice|holds nothing|while its memory"):
                verify(backwards)
        else:
            verify(backwards)


def brings_a_block_twice(schedule: Schedule) -> bool:
    arrivals = [[slot.block for round_ in schedule.rounds(rank) for recv in round_.recvs for slot in recv.slots]
                for rank in range(schedule.size)]
    own = [[slot.block for slot in schedule.collective.before(rank, schedule.case)] for rank in range(schedule.size)]
    return any(len(set(blocks)) < len(blocks) for blocks in map(list.__add__, arrivals, own))


def test_what_scattered_gathers_over_the_same_messages() -> None:
    forth = [Round(Copy(OUT(0), IN(0))), Round(Send(1, IN(1)), phase="a"), Round(Send(2, IN(2)), Recv(2, PARTIAL(3)))]
    assert [r for r in reverse(forth) if r] == [
        Round(Recv(2, OUT(2)), Send(2, PARTIAL(3))), Round(Recv(1, OUT(1)), phase="a"), Round(Copy(OUT(0), IN(0)))]


def test_the_second_takes_what_the_first_left() -> None:
    first = [Round(Recv(1, OUT(0)))]
    second = [Round(Copy(OUT(0), IN(0)), Send(1, IN(0)))]
    assert list(then(first, second)) == [Round(Recv(1, OUT(0))), Round(Send(1, OUT(0)))]
    assert list(then(first, second, second)) == [Round(Recv(1, OUT(0))), Round(Send(1, OUT(0))), Round(Send(1, OUT(0)))]


def test_spaces_move() -> None:
    rounds = [Round(Send(1, IN(0), PARTIAL(1)), Reduce(OUT(0), IN(0), PARTIAL(0)), phase="x")]
    assert list(moved(rounds, PARTIAL, OUT)) == [Round(Send(1, IN(0), OUT(1)), Reduce(OUT(0), IN(0), OUT(0)), phase="x")]
    assert list(in_result(rounds)) == list(moved(rounds, IN, OUT))


def test_named_phases_nest() -> None:
    rounds = [Round(Send(1, IN(0))), Round(Send(1, IN(0)), phase="far")]
    assert [r.phase for r in named("up", rounds)] == ["up", "up/far"]


def test_a_group_renames_peers_and_multiplies_blocks() -> None:
    rounds = [Round(Send(1, IN(0)), Recv(2, PARTIAL(1)), Reduce(OUT(1), IN(1), PARTIAL(1)))]
    assert list(on_group(rounds, [5, 7, 9], lambda b: [10 * b, 10 * b + 1])) == [Round(
        Send(7, IN(0), IN(1)), Recv(9, PARTIAL(10), PARTIAL(11)),
        Reduce(OUT(10), IN(10), PARTIAL(10)), Reduce(OUT(11), IN(11), PARTIAL(11)))]
    assert list(on_group(rounds)) == rounds


@pytest.mark.parametrize("size", [2, 5])
def test_what_is_put_together_in_the_wrong_order_is_rejected(size: int) -> None:
    def program(rank: int) -> Iterator[Round]:
        return then(tree.broadcast(rank, size, 0), tree.reduce(rank, size, 0))

    with pytest.raises(Flaw, match=r"reads out.0., which holds nothing yet"):
        verify(by_hand(REDUCE, size, program))


@pytest.mark.parametrize("name", ["binomial", "k-nomial", "chain", "k-ary", "k-chain", "two-tree", "linear"])
@pytest.mark.parametrize("size", [2, 3, 6, 9])
def test_a_broadcast_transposed_is_a_reduction(name: str, size: int) -> None:
    algorithm = TABLE["broadcast", name]
    for root in range(size):
        forward = algorithm.schedule(size, root)
        programs = [list(transpose(rank, forward.program(rank))) for rank in range(size)]
        verify(by_hand(REDUCE, size, programs.__getitem__, blocks=forward.case.blocks, root=root))


@pytest.mark.parametrize("name", ["ring", "bruck", "linear"])
@pytest.mark.parametrize("size", [2, 3, 6, 9])
def test_an_all_gather_transposed_is_a_reduce_scatter(name: str, size: int) -> None:
    forward = TABLE["all-gather", name].schedule(size)
    verify(by_hand(REDUCE_SCATTER, size, lambda rank: transpose(rank, forward.program(rank))))


def test_a_reduction_cannot_be_transposed() -> None:
    with pytest.raises(TypeError, match="reduces cannot be reversed"):
        list(transpose(0, TABLE["reduce", "binomial"].schedule(2).program(0)))
