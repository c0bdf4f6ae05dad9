"""Slots, operations and rounds: the words in which every algorithm is written.

A schedule is a pure function of ``(rank, size, parameters)`` that yields `Round` objects. It knows no MPI, no arrays and
no bytes: it moves *blocks*, the named parts of a payload, between *slots*, the places where blocks lie on a rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Block: TypeAlias = int | tuple[int, int]
"""One part of the payload: an index, or ``(source, destination)`` for all-to-all."""


class Slot(NamedTuple):
    """Where a block lies on a rank."""

    space: str
    block: Block

    def __repr__(self) -> str:
        return f"{self.space}[{format_block(self.block)}]"


def format_block(block: Block) -> str:
    """Write a block as people read it: ``5``, or ``2→0`` for what rank 2 has for rank 0."""
    return f"{block[0]}→{block[1]}" if isinstance(block, tuple) else str(block)


@dataclass(frozen=True)
class Space:
    """A named set of slots on every rank; call it with a block to name one slot.

    ``IN`` is what the caller gave and is never written. ``OUT`` is where the collective leaves its result. Any other name is
    scratch; so is a slot of ``IN`` or ``OUT`` for which the collective has no place on this rank.

    Examples
    --------
    >>> OUT(3), Space("partial")(0)
    (out[3], partial[0])
    """

    name: str

    def __call__(self, block: Block) -> Slot:
        # Slot(self.name, block), in half the time: schedules name slots by the million.
        return tuple.__new__(Slot, (self.name, block))


IN = Space("in")
OUT = Space("out")

_put = object.__setattr__  # how the classes below, which are frozen, fill their fields


@dataclass(frozen=True, init=False, slots=True)
class Send:
    """Send the blocks of some slots to a peer, as one message."""

    peer: int
    slots: tuple[Slot, ...]

    def __init__(self, peer: int, *slots: Slot) -> None:
        _put(self, "peer", peer)
        _put(self, "slots", slots)

    def __str__(self) -> str:
        return f"send {_listed(self.slots)} to {self.peer}"


@dataclass(frozen=True, init=False, slots=True)
class Recv:
    """Receive one message of a peer into some slots, which name the same blocks as the peer's send."""

    peer: int
    slots: tuple[Slot, ...]

    def __init__(self, peer: int, *slots: Slot) -> None:
        _put(self, "peer", peer)
        _put(self, "slots", slots)

    def __str__(self) -> str:
        return f"receive {_listed(self.slots)} from {self.peer}"


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy one slot into another on the same rank."""

    into: Slot
    source: Slot

    def __str__(self) -> str:
        return f"{self.into} = {self.source}"


@dataclass(frozen=True, slots=True)
class Reduce:
    """Put ``left ⊕ right`` into a slot, which may be one of the two. The sides matter: not every operator commutes."""

    into: Slot
    left: Slot
    right: Slot

    def __str__(self) -> str:
        return f"{self.into} = {self.left} ⊕ {self.right}"


Message: TypeAlias = Send | Recv
Local: TypeAlias = Copy | Reduce
Operation: TypeAlias = Send | Recv | Copy | Reduce


@dataclass(frozen=True, init=False, slots=True)
class Round:
    """The operations of one rank that may be in flight together.

    Sends read the state before the round; when all messages of the round are complete, copies and reductions apply in the
    order given. A round completes on its rank alone: there is no barrier between the rounds of different ranks.

    Parameters
    ----------
    *operations
        Sends, receives, copies and reductions.
    phase
        The name of the run of rounds this one belongs to, for people.
    """

    sends: tuple[Send, ...]
    recvs: tuple[Recv, ...]
    local: tuple[Local, ...]
    phase: str

    def __init__(self, *operations: Operation, phase: str = "") -> None:
        sends: list[Send] = []
        recvs: list[Recv] = []
        local: list[Local] = []
        for op in operations:
            if isinstance(op, Send):
                sends.append(op)
            elif isinstance(op, Recv):
                recvs.append(op)
            elif isinstance(op, (Copy, Reduce)):
                local.append(op)
            else:
                raise TypeError(f"{op!r} is no operation of a round")
        _put(self, "sends", tuple(sends))
        _put(self, "recvs", tuple(recvs))
        _put(self, "local", tuple(local))
        _put(self, "phase", phase)

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self.sends, *self.recvs)

    @property
    def operations(self) -> tuple[Operation, ...]:
        return (*self.sends, *self.recvs, *self.local)

    def within(self, phase: str) -> Round:
        """The same round as part of a larger phase."""
        renamed = object.__new__(Round)
        _put(renamed, "sends", self.sends)
        _put(renamed, "recvs", self.recvs)
        _put(renamed, "local", self.local)
        _put(renamed, "phase", f"{phase}/{self.phase}" if self.phase else phase)
        return renamed

    def __bool__(self) -> bool:
        return bool(self.sends or self.recvs or self.local)

    def __str__(self) -> str:
        return "; ".join(map(str, self.operations))


def reads(op: Local) -> tuple[Slot, ...]:
    """The slots that a local operation reads."""
    return (op.source,) if isinstance(op, Copy) else (op.left, op.right)


def _listed(slots: Iterable[Slot]) -> str:
    return ", ".join(map(repr, slots))
