"""Binding: which slots are the caller's memory, which share memory when running in place, and which are scratch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .collective import Case, Collective, partner
from .schedule import Copy, Round, Slot, Space, reads

KEPT = Space("kept")
"""Scratch for what running in place would overwrite while it is still needed."""


@dataclass(frozen=True)
class Binding:
    """The places of one rank's slots.

    Attributes
    ----------
    given, result
        The slots for which the caller's send and receive buffers have room, in order.
    cells
        For slots that share the memory of another, or are kept in scratch: the slot by whose name that memory goes.
    before
        The copies that save what would be overwritten, to be made before the first round.
    """

    given: tuple[Slot, ...]
    result: tuple[Slot, ...]
    cells: Mapping[Slot, Slot]
    before: tuple[Copy, ...]

    def cell(self, slot: Slot) -> Slot:
        """The slot by whose name the memory of a slot goes."""
        return self.cells.get(slot, slot)


def bind(collective: Collective, case: Case, rank: int, rounds: Iterable[Round], in_place: bool) -> Binding:
    """Find the places of a rank's slots, at the cost of a walk through its own rounds.

    In place, the shorter of the two sides lies inside the longer one, which gives the cells their names.
    """
    given = collective.place(rank, case, "in")
    result = collective.place(rank, case, "out")
    if not (in_place and collective.runs_in_place(rank, case)):
        return Binding(given, result, {}, ())
    inner = given if len(given) <= len(result) else result
    cells = {slot: partner(slot) for slot in inner}
    kept = {slot: KEPT(slot.block) for slot in _endangered(rounds, given, result)}
    before = tuple(Copy(kept[slot], cells.get(slot, slot)) for slot in given if slot in kept)
    return Binding(given, result, cells | kept, before)


def _endangered(rounds: Iterable[Round], given: tuple[Slot, ...], result: tuple[Slot, ...]) -> set[Slot]:
    """The slots of ``in`` that some operation reads after, or while, the result that shares their memory is written.

    A message that arrives may do so before another of the same round has left; a copy or reduction goes element by
    element, so it may write what it reads.
    """
    present = set(given)
    shares = {slot: partner(slot) for slot in result if partner(slot) in present}
    overwritten: set[Slot] = set()
    endangered: set[Slot] = set()
    for round_ in rounds:
        for recv in round_.recvs:
            for slot in recv.slots:
                if slot in shares:
                    overwritten.add(shares[slot])
        for send in round_.sends:
            for slot in send.slots:
                if slot in overwritten:
                    endangered.add(slot)
        for op in round_.local:
            for slot in reads(op):
                if slot in overwritten:
                    endangered.add(slot)
            into = shares.get(op.into)
            stays = isinstance(op, Copy) and op.source == into
            if into and not stays:
                overwritten.add(into)
    return endangered
