"""The collectives: for each, what every rank holds before and after. The definition *is* the specification.

A state says which ranks' contributions a slot holds: ``range(r, r + 1)`` is the block as rank r contributed it, a longer
range is that block reduced over those ranks in rank order. `verify` checks schedules against these states, and nothing else;
the order of the slots is the order in which their blocks lie in the caller's buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from .schedule import IN, OUT, Block, Slot

State: TypeAlias = Mapping[Slot, range]
"""For each slot of a rank, the ranks whose contributions to that block it holds."""


@dataclass(frozen=True)
class Case:
    """One instance of a collective: how many ranks, which root, and into how many blocks the payload is cut."""

    size: int
    root: int
    blocks: int

    def own(self, rank: int) -> range:
        """The blocks that belong to a rank, where the payload has a part for every rank."""
        each = self.blocks // self.size
        return range(rank * each, (rank + 1) * each)

    def owner(self, block: int) -> int:
        """The rank that a block belongs to, where the payload has a part for every rank."""
        return block * self.size // self.blocks

    @property
    def everyone(self) -> range:
        return range(self.size)


@dataclass(frozen=True)
class Collective:
    """A collective operation, defined by the states before and after it.

    Attributes
    ----------
    name
        As printed, e.g. ``"all-reduce"``.
    before, after
        Map ``(rank, case)`` to the state of that rank. After the collective a rank may hold anything in slots not named.
    units
        How many separately sized parts the payload has for a number of ranks; a schedule cuts each of them into equally
        many blocks.
    rooted
        Whether one rank is distinguished.
    reduces
        Whether it takes an operator.
    aliases
        Names that are understood besides ``name``.
    front
        Whether the in-place form leaves its result at the start of the buffer, as MPI asks of reduce-scatter, instead of
        where the same block of the input lay.
    repeats
        Whether a contribution may count more than once, as in a barrier, whose result is only that everyone has come. Where
        the result is a number, a repeated contribution would change it.
    """

    name: str
    before: Callable[[int, Case], State]
    after: Callable[[int, Case], State]
    units: Callable[[int], int]
    rooted: bool = False
    reduces: bool = False
    aliases: tuple[str, ...] = ()
    front: bool = False
    repeats: bool = False

    def __str__(self) -> str:
        return self.name

    def place(self, rank: int, case: Case, space: str) -> tuple[Slot, ...]:
        """The slots of ``in`` or ``out`` for which the caller's buffer on a rank has room, in their order there."""
        states = {**self.before(rank, case), **self.after(rank, case)}
        return tuple(slot for slot in states if slot.space == space)

    def runs_in_place(self, rank: int, case: Case) -> bool:
        """Whether a rank's two buffers can be one: it has both, and what is in the smaller has its place in the larger."""
        inner, outer = sorted((self.place(rank, case, space) for space in (IN.name, OUT.name)), key=len)
        return bool(inner) and {partner(slot) for slot in inner} <= set(outer)

    @property
    def one_buffer(self) -> bool:
        """Whether payload and result lie in one buffer by definition, as in broadcast."""
        return not any(slot.space == IN.name for slot in self.before(0, Case(1, 0, 1)))


def partner(slot: Slot) -> Slot:
    """The slot on the other side that shares memory with this one when a collective runs in place.

    Rank r's block for d shares memory with the block of d for r, since both stand at place d.
    """
    block = slot.block
    return (OUT if slot.space == IN.name else IN)(block if isinstance(block, int) else (block[1], block[0]))


def _each(space: Callable[[Block], Slot], blocks: Iterable[int], origins: range) -> State:
    return {space(b): origins for b in blocks}


def _only(rank: int) -> range:
    return range(rank, rank + 1)


def _mine(rank: int, case: Case) -> State:
    """The rank's own part, contributed by itself."""
    return _each(IN, case.own(rank), _only(rank))


def _whole(rank: int, case: Case) -> State:
    """All blocks, contributed by this rank."""
    return _each(IN, range(case.blocks), _only(rank))


def _collected(rank: int, case: Case) -> State:
    """The part of every rank."""
    return {OUT(b): _only(case.owner(b)) for b in range(case.blocks)}


def _reduced(rank: int, case: Case) -> State:
    """All blocks, reduced over everyone."""
    return _each(OUT, range(case.blocks), case.everyone)


def _at_root(state: Callable[[int, Case], State]) -> Callable[[int, Case], State]:
    return lambda rank, case: state(rank, case) if rank == case.root else {}


def _one(size: int) -> int:
    return 1


def _per_rank(size: int) -> int:
    return size


def _per_pair(size: int) -> int:
    return size * size


def _from_root(rank: int, case: Case) -> State:
    return _each(OUT, range(case.blocks), _only(case.root))


BROADCAST = Collective(
    "broadcast", before=_at_root(_from_root), after=_from_root, units=_one, rooted=True, aliases=("bcast",))
SCATTER = Collective(
    "scatter", before=_at_root(_whole), after=lambda rank, case: _each(OUT, case.own(rank), _only(case.root)),
    units=_per_rank, rooted=True)
GATHER = Collective("gather", before=_mine, after=_at_root(_collected), units=_per_rank, rooted=True)
REDUCE = Collective("reduce", before=_whole, after=_at_root(_reduced), units=_one, rooted=True, reduces=True)
ALL_GATHER = Collective("all-gather", before=_mine, after=_collected, units=_per_rank)
ALL_REDUCE = Collective("all-reduce", before=_whole, after=_reduced, units=_one, reduces=True)
REDUCE_SCATTER = Collective(
    "reduce-scatter", before=_whole, after=lambda rank, case: _each(OUT, case.own(rank), case.everyone),
    units=_per_rank, reduces=True, aliases=("reduce-scatter-block",), front=True)
ALL_TO_ALL = Collective(
    "all-to-all", before=lambda rank, case: {IN((rank, d)): _only(rank) for d in case.everyone},
    after=lambda rank, case: {OUT((s, rank)): _only(s) for s in case.everyone}, units=_per_pair)
SCAN = Collective(
    "scan", before=_whole, after=lambda rank, case: _each(OUT, range(case.blocks), range(rank + 1)), units=_one, reduces=True)
EXSCAN = Collective(
    "exscan", before=_whole, after=lambda rank, case: _each(OUT, range(case.blocks), range(rank)) if rank else {}, units=_one,
    reduces=True, aliases=("exclusive-scan",))
BARRIER = Collective("barrier", before=_whole, after=_reduced, units=_one, reduces=True, repeats=True)

COLLECTIVES = (
    BROADCAST, SCATTER, GATHER, REDUCE, ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, ALL_TO_ALL, SCAN, EXSCAN, BARRIER)
