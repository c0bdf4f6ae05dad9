"""Scratch memory: every slot has some from when it is first written to when it is last read, and then others may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..core.schedule import Slot


class Run(NamedTuple):
    """Neighbouring elements of a buffer: ``in``, ``out`` or ``scratch``."""

    buffer: str
    start: int
    stop: int


@dataclass(eq=False)
class Place:
    """Memory of one block for a span of time. In the caller's buffers ``run`` is known; in scratch it is assigned last."""

    size: int
    born: int = 0
    dies: int = 0
    run: Run | None = None


class Scratch:
    """The scratch of one rank. Tell it every write and read in the order of time, then let it assign the memory.

    Slots of one space that are born at the same time, as the blocks of one message are, lie side by side in their order, so
    that they can be received, reduced and sent on as one.
    """

    def __init__(self) -> None:
        self.live: dict[Slot, Place] = {}
        self.born: dict[tuple[int, str], list[Place]] = {}
        self.size = 0

    def write(self, slot: Slot, size: int, now: int) -> Place:
        """The place of a slot that gets a new value, whatever it held before."""
        place = self.live[slot] = Place(size, born=now, dies=now)
        self.born.setdefault((now, slot.space), []).append(place)
        return place

    def use(self, slot: Slot, now: int) -> Place:
        """The place of a slot that is read, or changed by a reduction."""
        place = self.live[slot]
        place.dies = now
        return place

    def assign(self) -> None:
        """Give every place its run: those born together as one piece, at the first gap that is long enough."""
        taken: list[tuple[int, int, int]] = []  # start, stop, time of death, in order of address
        for (now, _), places in self.born.items():
            taken = [piece for piece in taken if piece[2] >= now]
            length, dies = sum(place.size for place in places), max(place.dies for place in places)
            start = 0
            for low, high, _ in taken:
                if low - start >= length:
                    break
                start = max(start, high)
            taken.append((start, start + length, dies))
            taken.sort()
            self.size = max(self.size, start + length)
            for place in places:
                place.run = Run("scratch", start, start + place.size)
                start += place.size
