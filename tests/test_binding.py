"""Which slots share memory, and that running in place makes no difference."""

from __future__ import annotations

from collections import defaultdict

import pytest
from cases import ALGORITHMS, by_hand, schedules

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    BROADCAST,
    GATHER,
    IN,
    OUT,
    REDUCE_SCATTER,
    Algorithm,
    Case,
    Copy,
    Recv,
    Reduce,
    Round,
    Schedule,
    Send,
    Slot,
    Space,
)
from treering.core.binding import KEPT, Binding, bind
from treering.readers.in_place import check_in_place
from treering.readers.match import Completed, Flaw, Transfer, events
from treering.readers.verify import verify

SIZES = [1, 2, 3, 4, 5, 8]
HELD = Space("held")


def bindings(schedule: Schedule, in_place: bool) -> list[Binding]:
    return [bind(schedule.collective, schedule.case, rank, schedule.program(rank), in_place) for rank in range(schedule.size)]


def run(schedule: Schedule, in_place: bool) -> list[dict[Slot, str]]:
    """Run on memory as a network would treat it at its worst: a message is read late, and written as soon as it is there."""
    places = bindings(schedule, in_place)
    memory: list[dict[Slot, str]] = [defaultdict(lambda: "garbage") for _ in places]
    for rank, (place, cells) in enumerate(zip(places, memory)):
        saved = {copy.into: copy.source for copy in place.before}
        for slot in schedule.collective.before(rank, schedule.case):
            cells[saved.get(place.cell(slot), place.cell(slot))] = f"{rank}:{slot.block}"
        for copy in place.before:
            cells[copy.into] = cells[copy.source]
    for event in events(schedule):
        if isinstance(event, Transfer):
            for sent, received in zip(event.sent.slots, event.received.slots):
                memory[event.destination][places[event.destination].cell(received)] = (
                    memory[event.source][places[event.source].cell(sent)])
        elif isinstance(event, Completed):
            cells, cell = memory[event.rank], places[event.rank].cell
            for op in event.round.local:
                cells[cell(op.into)] = (
                    cells[cell(op.source)] if isinstance(op, Copy) else f"({cells[cell(op.left)]}+{cells[cell(op.right)]})")
    return [{slot: memory[rank][place.cell(slot)] for slot in schedule.collective.after(rank, schedule.case)}
            for rank, place in enumerate(places)]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_in_place_and_separately_the_results_are_the_same(algorithm: Algorithm) -> None:
    for schedule in schedules(algorithm, SIZES):
        separately = run(schedule, in_place=False)
        assert not any("garbage" in value for result in separately for value in result.values())
        assert run(schedule, in_place=True) == separately


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_only_partners_share_memory(algorithm: Algorithm) -> None:
    for schedule in schedules(algorithm, SIZES):
        for place in bindings(schedule, in_place=True):
            cells = [place.cell(slot) for slot in (*place.given, *place.result)]
            assert all(cells.count(cell) <= 2 for cell in cells)
            assert len({*map(place.cell, place.given)}) == len(place.given)
            assert len({*map(place.cell, place.result)}) == len(place.result)
            assert {copy.into for copy in place.before} == {cell for cell in cells if cell.space == KEPT.name}


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_separate_buffers_share_nothing(algorithm: Algorithm) -> None:
    for schedule in schedules(algorithm, [4]):
        for place in bindings(schedule, in_place=False):
            assert not place.cells and not place.before


def test_where_the_buffers_lie_in_each_other() -> None:
    def cells(collective: object, rank: int, root: int = 0) -> dict[Slot, Slot]:
        return dict(bind(collective, Case(3, root, 3), rank, (), in_place=True).cells)  # type: ignore[arg-type]

    assert cells(ALL_GATHER, 1) == {IN(1): OUT(1)}, "the part lies in the whole"
    assert cells(REDUCE_SCATTER, 1) == {OUT(1): IN(1)}
    assert cells(GATHER, 0) == {IN(0): OUT(0)}
    assert cells(GATHER, 1) == {}, "no result, so nothing to lie in"
    assert cells(BROADCAST, 0) == {}, "one buffer by definition"
    assert cells(ALL_REDUCE, 2) == {IN(b): OUT(b) for b in range(3)}


def keeps(*rounds: Round) -> set[Slot]:
    """What an all-reduce of two blocks on rank 0 keeps when running in place."""
    place = bind(ALL_REDUCE, Case(2, 0, 2), 0, rounds, in_place=True)
    return {slot for slot in place.given if place.cell(slot).space == KEPT.name}


def test_only_what_is_read_after_it_is_overwritten_is_kept() -> None:
    assert keeps(Round(Send(1, IN(0))), Round(Recv(1, OUT(0)))) == set(), "read before"
    assert keeps(Round(Recv(1, OUT(0))), Round(Send(1, IN(0)))) == {IN(0)}, "read after"
    assert keeps(Round(Recv(1, OUT(0)), Send(1, IN(0)))) == {IN(0)}, "at the same time: it may arrive first"
    assert keeps(Round(Recv(1, OUT(1)), Send(1, IN(0)))) == set(), "another block"
    assert keeps(Round(Recv(1, HELD(0)), Reduce(OUT(0), IN(0), HELD(0)))) == set(), "element by element"
    assert keeps(Round(Recv(1, HELD(0)), Reduce(OUT(0), IN(0), HELD(0)), Copy(HELD(0), IN(0)))) == {IN(0)}, "in listed order"
    assert keeps(Round(Copy(OUT(0), IN(0))), Round(Send(1, IN(0)))) == set(), "a copy to where it lies already"


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_without_what_is_kept_the_proof_in_place_fails(algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    needing = [s for s in schedules(algorithm, SIZES) if any(place.before for place in bindings(s, in_place=True))]
    monkeypatch.setattr("treering.core.binding._endangered", lambda *_: set())
    for schedule in needing:
        with pytest.raises(Flaw, match=r"\(in place\)"):
            verify(schedule)


def test_some_algorithms_need_something_kept() -> None:
    needing = {str(a) for a in ALGORITHMS for s in schedules(a, [4]) if any(p.before for p in bindings(s, in_place=True))}
    assert {"all-to-all pairwise", "all-to-all linear"} <= needing


@pytest.mark.parametrize(("rounds", "message"), [
    ([Round(Recv(1, OUT(0)), Send(1, IN(0)))], "receives into out.0. while its memory is being sent"),
    ([Round(Recv(1, OUT(0))), Round(Send(1, IN(0)))], "sends in.0., which is overwritten"),
    ([Round(Recv(1, OUT(0))), Round(Reduce(OUT(0), OUT(0), IN(0)))], r"out.0. = out.0. ⊕ in.0.: in.0. is overwritten"),
])
def test_each_way_to_overwrite_is_named(rounds: list[Round], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treering.core.binding._endangered", lambda *_: set())
    schedule = by_hand(ALL_REDUCE, 2, lambda rank: rounds)
    with pytest.raises(Flaw, match=message):
        check_in_place(schedule, 0)


def test_a_result_that_is_overwritten_at_last_is_named() -> None:
    schedule = by_hand(ALL_REDUCE, 2, lambda rank: [Round(Recv(1, OUT(0))), Round(Recv(1, IN(0)))])
    with pytest.raises(Flaw, match=r"at the end: out\[0\] is overwritten by what shares its memory \(in place\)"):
        check_in_place(schedule, 0)
