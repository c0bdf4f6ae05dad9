"""Schedules that broke simpler representations than this one, written in it and proved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import lcm

import pytest
from cases import by_hand
from oracle import judge
from treering.algorithms import exchange, halving, ring
from treering.algorithms.dissemination import all_to_all as bruck

from treering.core import (
    ALL_REDUCE,
    ALL_TO_ALL,
    IN,
    OUT,
    REDUCE_SCATTER,
    Case,
    Collective,
    Copy,
    Recv,
    Reduce,
    Round,
    Schedule,
    Send,
    Slot,
    Space,
    on_group,
    then,
)
from treering.core.binding import bind
from treering.core.compose import mapped
from treering.readers.match import Flaw, transfers
from treering.readers.verify import verify

PARTIAL, ARRIVED, HELD = Space("partial"), Space("arrived"), Space("held")


def prove(schedule: Schedule) -> None:
    verify(schedule)
    judge(schedule)


# In-place all-to-all: every block that arrives lies where one lay that may not have been sent yet.

def swap(rank: int, size: int) -> Iterator[Round]:
    """Swap with one partner after the other, by way of a scratch block; pairs meet in the order of their sum."""
    yield Round(Copy(OUT((rank, rank)), IN((rank, rank))))
    for i in range(size):
        peer = (i - rank) % size
        if peer != rank:
            arriving = HELD((peer, rank))
            yield Round(Send(peer, IN((rank, peer))), Recv(peer, arriving), Copy(OUT((peer, rank)), arriving))


@pytest.mark.parametrize("size", range(1, 10))
def test_all_to_all_in_place_needs_nothing_but_its_own_scratch(size: int) -> None:
    schedule = by_hand(ALL_TO_ALL, size, lambda rank: swap(rank, size))
    prove(schedule)
    for rank in range(size):
        assert not bind(ALL_TO_ALL, schedule.case, rank, schedule.program(rank), in_place=True).before


def test_all_to_all_that_receives_at_once_keeps_what_it_will_send() -> None:
    schedule = by_hand(ALL_TO_ALL, 4, lambda rank: exchange.all_to_all_shift(rank, 4))
    prove(schedule)
    kept = bind(ALL_TO_ALL, schedule.case, 0, schedule.program(0), in_place=True).before
    # 0→3 is overwritten two rounds before it goes, 0→2 in the very round; 0→1 has gone before.
    assert [copy.source for copy in kept] == [OUT((2, 0)), OUT((3, 0))]


# Two-phase Bruck all-to-allv: no rank knows the size of what passes through it until it is told.

SIZE_OF = Space("size of")


def sizes_first(rank: int, size: int) -> Iterator[Round]:
    """Bruck's rounds, each once on the sizes of the blocks and then on the blocks; (s, size + d) is the size of (s, d)."""
    def size_slots(slots: Iterable[Slot]) -> list[Slot]:
        return [SIZE_OF((slot.block[0], size + slot.block[1])) for slot in slots if isinstance(slot.block, tuple)]

    for round_ in bruck(rank, size, radix=2):
        yield from mapped([round_], size_slots)
        yield round_


def with_sizes(rank: int, case: Case) -> dict[Slot, range]:
    own = range(rank, rank + 1)
    return {IN((rank, d)): own for d in case.everyone} | {SIZE_OF((rank, case.size + d)): own for d in case.everyone}


def received_with_sizes(rank: int, case: Case) -> dict[Slot, range]:
    result = dict(ALL_TO_ALL.after(rank, case))
    return result | {SIZE_OF((s, case.size + rank)): range(s, s + 1) for s in case.everyone}


ALL_TO_ALL_V = Collective("all-to-allv", before=with_sizes, after=received_with_sizes, units=lambda size: size * size)


@pytest.mark.parametrize("size", [2, 3, 5, 6, 8, 13])
def test_sizes_arrive_before_the_blocks_they_are_of(size: int) -> None:
    schedule = by_hand(ALL_TO_ALL_V, size, lambda rank: sizes_first(rank, size))
    prove(schedule)
    known: list[set[object]] = [{(rank, size + d) for d in range(size)} for rank in range(size)]
    for transfer in transfers(schedule):
        for slot in transfer.received.slots:
            source, target = slot.block  # type: ignore[misc]
            if slot.space == SIZE_OF.name:
                known[transfer.destination].add(slot.block)
            else:
                assert (source, size + target) in known[transfer.source] & known[transfer.destination]


# Circulant reduce-scatter: the blocks of a message are a range that wraps around.

def circulant(rank: int, size: int) -> Iterator[Round]:
    """Träff's reduce-scatter: send the upper half of what is left, counted from the own block, half as far every time."""
    def blocks(start: int, stop: int) -> list[int]:
        return [(rank + i) % size for i in range(start, stop)]

    left, source = size, IN
    seen: set[int] = set()
    while left > 1:
        skip = (left + 1) // 2
        sent, kept = blocks(skip, left), blocks(0, left - skip)
        where = {b: PARTIAL(b) if b in seen else IN(b) for b in range(size)}
        yield Round(
            Send((rank + skip) % size, *(where[b] for b in sent)), Recv((rank - skip) % size, *map(ARRIVED, kept)),
            *(Reduce(PARTIAL(b), where[b], ARRIVED(b)) for b in kept))
        seen |= set(kept)
        left = skip
    yield Round(Copy(OUT(rank), PARTIAL(rank) if seen else source(rank)))


@pytest.mark.parametrize("size", range(1, 34))
def test_circulant_reduce_scatter(size: int) -> None:
    schedule = by_hand(REDUCE_SCATTER, size, lambda rank: circulant(rank, size))
    prove(schedule)
    assert all(len(schedule.rounds(rank)) == (size - 1).bit_length() + 1 for rank in range(size))
    sent = sum(len(send.slots) for round_ in schedule.rounds(0) for send in round_.sends)
    assert sent == size - 1, "optimal in rounds and in volume"


# Dual-root doubly pipelined all-reduce: partial sums go up while results come down the same links.

def dual_root(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Two chains whose roots, in the middle, exchange their sums: the lower ranks', then the upper ranks'."""
    half = size // 2
    upper = rank >= half
    above, below = (rank - 1, rank + 1) if upper else (rank + 1, rank - 1)
    place = rank - half if upper else half - 1 - rank
    last = place == half - 1
    up = IN if last else PARTIAL

    def sides(mine: Slot, theirs: Slot) -> tuple[Slot, Slot]:
        return (mine, theirs) if upper else (theirs, mine)

    for t in range(segments + 2 * half):
        # The segments that are at this place in this round, on the way up, across and down.
        ways = (half - 2 - place, half - 1 - place, half - 1, half + place - 1, half + place)
        take, give, swap, back, down = (t - way for way in ways)
        operations: list[Send | Recv | Reduce] = []
        if take in range(segments) and not last:
            operations += [Recv(below, ARRIVED(take)), Reduce(PARTIAL(take), *sides(IN(take), ARRIVED(take)))]
        if give in range(segments) and place:
            operations += [Send(above, up(give))]
        if swap in range(segments) and not place:
            total = (HELD(swap), up(swap)) if upper else (up(swap), HELD(swap))
            operations += [Send(above, up(swap)), Recv(above, HELD(swap)), Reduce(OUT(swap), *total)]
        if back in range(segments) and place:
            operations += [Recv(above, OUT(back))]
        if down in range(segments) and not last:
            operations += [Send(below, OUT(down))]
        yield Round(*operations)


@pytest.mark.parametrize("size", [2, 4, 6, 8])
@pytest.mark.parametrize("segments", [1, 2, 5])
def test_dual_root_doubly_pipelined_all_reduce(size: int, segments: int) -> None:
    schedule = by_hand(ALL_REDUCE, size, lambda rank: dual_root(rank, size, segments), blocks=segments, in_order=True)
    prove(schedule)
    assert max(len(schedule.rounds(rank)) for rank in range(size)) <= segments + size


# All-gather, then everyone reduces: only a fixed order gives everyone the same bits.

def gather_and_reduce(rank: int, size: int, order: list[int]) -> Iterator[Round]:
    def contributions(slots: Iterable[Slot]) -> list[Slot]:
        return [contribution(slot.block) for slot in slots if isinstance(slot.block, int)]

    def contribution(of: int) -> Slot:
        return IN(0) if of == rank else Space(f"from {of}")(0)

    yield from mapped(ring.all_gather(rank, size), contributions)
    first, *others = map(contribution, order)
    yield Round(*(Reduce(OUT(0), OUT(0) if i else first, other) for i, other in enumerate(others)))


def test_all_gather_then_reduce_in_rank_order() -> None:
    prove(by_hand(ALL_REDUCE, 5, lambda rank: gather_and_reduce(rank, 5, list(range(5))), in_order=True))


def test_all_gather_then_reduce_the_own_first_may_differ_in_bits() -> None:
    def own_first(rank: int) -> Iterator[Round]:
        return gather_and_reduce(rank, 5, [(rank + i) % 5 for i in range(5)])

    with pytest.raises(Flaw, match=r"rank 1, at the end: out\[0\] was reduced by another tree than on rank 0"):
        verify(by_hand(ALL_REDUCE, 5, own_first))


# Nodes of 3 and 2 ranks: the parts into which the two cut the vector do not fit, their least common refinement does.

def two_nodes(rank: int, first: int, second: int) -> Iterator[Round]:
    """Reduce-scatter in the node, all-reduce between the owners of each block, all-gather in the node."""
    blocks = lcm(first, second)

    def owners(block: int) -> tuple[int, int]:
        return block * first // blocks, first + block * second // blocks

    members = list(range(first) if rank < first else range(first, first + second))
    place, size = members.index(rank), len(members)

    def part(of: int) -> range:
        return range(of * blocks // size, (of + 1) * blocks // size)

    pairs = sorted({owners(block) for block in range(blocks)})
    def between(pair: tuple[int, int]) -> Iterator[Round]:
        common = [block for block in range(blocks) if owners(block) == pair]
        return on_group(halving.exchange(pair.index(rank), 2), pair, lambda _: common)

    across = [between(pair) for pair in pairs if rank in pair]
    yield from then(
        on_group(ring.reduce_scatter(place, size), members, part),
        (round_ for rounds in across for round_ in rounds),
        on_group(ring.all_gather(place, size), members, part))


@pytest.mark.parametrize(("first", "second"), [(3, 2), (2, 3), (4, 6), (5, 3), (1, 4)])
def test_uneven_nodes(first: int, second: int) -> None:
    size = first + second
    prove(by_hand(ALL_REDUCE, size, lambda rank: two_nodes(rank, first, second), blocks=lcm(first, second)))


# Collectives that a user defines by their states alone.

BARRIER = Collective(
    "barrier", before=lambda rank, case: {IN(0): range(rank, rank + 1)}, after=lambda rank, case: {OUT(0): case.everyone},
    units=lambda size: 1, reduces=True, repeats=True)
SCAN = Collective(
    "scan", before=lambda rank, case: {IN(0): range(rank, rank + 1)}, after=lambda rank, case: {OUT(0): range(rank + 1)},
    units=lambda size: 1, reduces=True)


def dissemination(rank: int, size: int, rounds: int) -> Iterator[Round]:
    """Tell the rank at distance 1, 2, 4, … who has come. At 3 ranks the second round tells some of it again."""
    known = IN(0)
    for k in range(rounds):
        yield Round(
            Send((rank + (1 << k)) % size, known), Recv((rank - (1 << k)) % size, ARRIVED(0)),
            Reduce(OUT(0), known, ARRIVED(0)))
        known = OUT(0)


def needed(size: int) -> int:
    return (size - 1).bit_length()


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 8, 12])
def test_dissemination_barrier(size: int) -> None:
    prove(by_hand(BARRIER, size, lambda rank: dissemination(rank, size, needed(size))))
    if size > 2:
        with pytest.raises(Flaw, match=r"rank 0, at the end: .* lacks the contribution of rank"):
            verify(by_hand(BARRIER, size, lambda rank: dissemination(rank, size, needed(size) - 1)))


def test_only_where_repeats_are_allowed() -> None:
    with pytest.raises(Flaw, match=r"rank 1, its round 2: .* counts the contribution of rank 1 twice"):
        verify(by_hand(ALL_REDUCE, 3, lambda rank: dissemination(rank, 3, 2)))


def prefix(rank: int, size: int, lower_first: bool = True) -> Iterator[Round]:
    """Scan by recursive doubling: send what is summed up so far to the rank 1, 2, 4, … to the right."""
    total, distance = IN(0), 1
    while distance < size:
        send = [Send(rank + distance, total)] if rank + distance < size else []
        if rank >= distance:
            sides = (ARRIVED(0), total) if lower_first else (total, ARRIVED(0))
            yield Round(*send, Recv(rank - distance, ARRIVED(0)), Reduce(OUT(0), *sides))
            total = OUT(0)
        else:
            yield Round(*send)
        distance *= 2
    if total == IN(0):
        yield Round(Copy(OUT(0), IN(0)))


@pytest.mark.parametrize("size", range(1, 18))
def test_scan(size: int) -> None:
    prove(by_hand(SCAN, size, lambda rank: prefix(rank, size), in_order=True))


def test_a_scan_with_its_operands_turned_around_is_rejected() -> None:
    with pytest.raises(Flaw, match=r"rank 1, at the end: out\[0\] was not reduced in rank order"):
        verify(by_hand(SCAN, 4, lambda rank: prefix(rank, 4, lower_first=False), in_order=True))


def test_a_scan_that_takes_all_is_rejected() -> None:
    def all_reduce(rank: int) -> Iterable[Round]:
        return halving.exchange(rank, 4)

    with pytest.raises(Flaw, match=r"holds the contribution of ranks? .*, which does not belong there"):
        verify(by_hand(SCAN, 4, all_reduce))
