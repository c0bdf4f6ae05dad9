"""Slots, operations and rounds."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields

import pytest

from treering.core import IN, OUT, Copy, Recv, Reduce, Round, Send, Slot, Space


def test_a_space_makes_slots() -> None:
    assert OUT(3) == Slot("out", 3) and isinstance(OUT(3), Slot)
    assert {Space("partial")((2, 0)): 1}[Slot("partial", (2, 0))] == 1


def test_slots_and_operations_read_well() -> None:
    transit = Space("transit")
    assert repr(transit((2, 0))) == "transit[2→0]"
    assert str(Send(1, OUT(0), OUT(4))) == "send out[0], out[4] to 1"
    assert str(Recv(2, transit((2, 0)))) == "receive transit[2→0] from 2"
    assert str(Round(Copy(OUT(1), IN(1)), Reduce(OUT(0), IN(0), transit(0)))) == "out[1] = in[1]; out[0] = in[0] ⊕ transit[0]"


def test_a_round_sorts_operations_by_kind_and_keeps_their_order() -> None:
    sends, recvs, local = [Send(1, IN(0)), Send(2, IN(0))], [Recv(2, OUT(2)), Recv(1, OUT(1))], [Copy(OUT(0), IN(0))]
    mixed = Round(sends[0], recvs[0], local[0], sends[1], recvs[1], phase="gather")
    assert (mixed.sends, mixed.recvs, mixed.local) == (tuple(sends), tuple(recvs), tuple(local))
    assert mixed.messages == (*sends, *recvs)
    assert mixed.operations == (*sends, *recvs, *local)
    assert mixed.phase == "gather"


def test_a_round_is_true_if_it_does_something() -> None:
    assert not Round() and not Round(phase="idle")
    assert Round(Copy(OUT(0), IN(0)))


def test_a_round_takes_nothing_but_operations() -> None:
    with pytest.raises(TypeError, match="no operation"):
        Round(OUT(0))  # type: ignore[arg-type]


def test_a_round_within_a_phase_differs_in_nothing_else() -> None:
    round_ = Round(Send(1, IN(0)))
    assert round_.within("reduce") == Round(Send(1, IN(0)), phase="reduce")
    assert round_.within("inner").within("outer").phase == "outer/inner"
    assert round_.phase == ""


@pytest.mark.parametrize("thing", [Send(1, OUT(0)), Round(Recv(1, OUT(0)), phase="x"), Copy(OUT(0), IN(0)), OUT])
def test_all_are_values(thing: object) -> None:
    assert pickle.loads(pickle.dumps(thing)) == thing
    assert len({thing, thing}) == 1
    with pytest.raises(FrozenInstanceError):
        setattr(thing, fields(thing)[0].name, 3)  # type: ignore[arg-type]
