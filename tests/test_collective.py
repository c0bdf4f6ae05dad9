"""The collectives: their definitions, written down once more by hand for three ranks."""

from __future__ import annotations

import pytest

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    COLLECTIVES,
    EXSCAN,
    GATHER,
    IN,
    OUT,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    SCATTER,
    Case,
    Collective,
    Slot,
)
from treering.core.collective import partner

ROOT, SIZE = 1, 3
ONE, TWO, ALL = range(1, 2), range(2, 3), range(3)


@pytest.mark.parametrize(("collective", "before", "after"), [
    (BROADCAST, {}, {OUT(0): ONE}),
    (SCATTER, {}, {OUT(2): ONE}),
    (GATHER, {IN(2): TWO}, {}),
    (REDUCE, {IN(0): TWO}, {}),
    (ALL_GATHER, {IN(2): TWO}, {OUT(0): range(1), OUT(1): ONE, OUT(2): TWO}),
    (ALL_REDUCE, {IN(0): TWO}, {OUT(0): ALL}),
    (REDUCE_SCATTER, {IN(0): TWO, IN(1): TWO, IN(2): TWO}, {OUT(2): ALL}),
    (ALL_TO_ALL, {IN((2, d)): TWO for d in ALL}, {OUT((s, 2)): range(s, s + 1) for s in ALL}),
    (SCAN, {IN(0): TWO}, {OUT(0): ALL}),
    (EXSCAN, {IN(0): TWO}, {OUT(0): range(2)}),
    (BARRIER, {IN(0): TWO}, {OUT(0): ALL}),
], ids=str)
def test_a_rank_that_is_not_the_root(collective: Collective, before: dict[Slot, range], after: dict[Slot, range]) -> None:
    case = Case(SIZE, ROOT, collective.units(SIZE))
    assert collective.before(2, case) == before
    assert collective.after(2, case) == after


@pytest.mark.parametrize(("collective", "before", "after"), [
    (BROADCAST, {OUT(0): ONE}, {OUT(0): ONE}),
    (SCATTER, {IN(b): ONE for b in ALL}, {OUT(1): ONE}),
    (GATHER, {IN(1): ONE}, {OUT(b): range(b, b + 1) for b in ALL}),
    (REDUCE, {IN(0): ONE}, {OUT(0): ALL}),
], ids=str)
def test_the_root(collective: Collective, before: dict[Slot, range], after: dict[Slot, range]) -> None:
    case = Case(SIZE, ROOT, collective.units(SIZE))
    assert collective.before(ROOT, case) == before
    assert collective.after(ROOT, case) == after


def test_the_first_rank_of_a_scan_has_nobody_before_it() -> None:
    case = Case(SIZE, 0, 1)
    assert SCAN.after(0, case) == {OUT(0): range(1)}
    assert EXSCAN.after(0, case) == {}


def test_parts_may_be_cut_into_several_blocks() -> None:
    case = Case(3, 0, 6)
    assert [list(case.own(rank)) for rank in range(3)] == [[0, 1], [2, 3], [4, 5]]
    assert [case.owner(block) for block in range(6)] == [0, 0, 1, 1, 2, 2]
    assert list(ALL_GATHER.after(0, case)) == [OUT(b) for b in range(6)]


def test_places_are_in_the_order_of_the_buffers() -> None:
    case = Case(3, 0, 9)
    assert ALL_TO_ALL.place(1, case, "in") == (IN((1, 0)), IN((1, 1)), IN((1, 2)))
    assert ALL_TO_ALL.place(1, case, "out") == (OUT((0, 1)), OUT((1, 1)), OUT((2, 1)))


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
def test_there_is_room_for_every_partner_in_place(collective: Collective) -> None:
    for size in range(1, 6):
        case = Case(size, 0, collective.units(size))
        for rank in range(size):
            given, result = (collective.place(rank, case, space) for space in ("in", "out"))
            if given and result:
                shorter, longer = sorted([given, result], key=len)
                assert {partner(slot) for slot in shorter} <= set(longer)


def test_partners_come_in_pairs() -> None:
    for slot in (IN(3), OUT(3), IN((1, 2)), OUT((2, 1))):
        assert partner(partner(slot)) == slot != partner(slot)


def test_only_broadcast_has_one_buffer() -> None:
    assert [c for c in COLLECTIVES if c.one_buffer] == [BROADCAST]
