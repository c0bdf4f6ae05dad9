"""Composition: algorithms made of algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from .schedule import IN, OUT, Block, Copy, Operation, Recv, Reduce, Round, Send, Slot, Space


def mapped(
    rounds: Iterable[Round], slots: Callable[[Sequence[Slot]], Iterable[Slot]], peer: Callable[[int], int] = int,
) -> Iterator[Round]:
    """The same rounds with slots become others, each one or equally many, and every peer another.

    A copy that became one of a slot to itself goes.
    """
    for round_ in rounds:
        yield Round(*(new for op in round_.operations for new in _mapped(op, slots, peer)), phase=round_.phase)


def _mapped(
    op: Operation, slots: Callable[[Sequence[Slot]], Iterable[Slot]], peer: Callable[[int], int],
) -> Iterable[Operation]:
    if isinstance(op, (Send, Recv)):
        return (type(op)(peer(op.peer), *slots(op.slots)),)
    if isinstance(op, Copy):
        return [Copy(into, source) for into, source in zip(slots([op.into]), slots([op.source])) if into != source]
    return map(Reduce, slots([op.into]), slots([op.left]), slots([op.right]))


def on_group(
    rounds: Iterable[Round], ranks: Sequence[int] | Callable[[int], int] = int,
    blocks: Callable[[int], Iterable[Block]] | None = None,
) -> Iterator[Round]:
    """Run a schedule on a group of ranks, or on coarser or differently named blocks.

    Parameters
    ----------
    rounds
        Of the schedule as the members see it, who are numbered from 0.
    ranks
        The rank of each member, as a sequence or a function; by default they are what they are. One rank's rounds name few
        of the others: of a large group a `range` or a function costs less than a list.
    blocks
        The blocks that each block of that schedule stands for; by default itself. They may be several: a broadcast of one
        block becomes one of many by ``blocks=lambda b: range(many)``.
    """
    peer = ranks if callable(ranks) else ranks.__getitem__
    if blocks is None:
        return mapped(rounds, lambda slots: slots, peer)

    def stand_for(slots: Sequence[Slot]) -> list[Slot]:
        return [Slot(slot.space, block) for slot in slots for block in blocks(slot.block)]  # type: ignore[arg-type]

    return mapped(rounds, stand_for, peer)


def named(phase: str, rounds: Iterable[Round]) -> Iterator[Round]:
    """Give a run of rounds a name, as a phase of something larger."""
    return (round_.within(phase) for round_ in rounds)


def in_result(rounds: Iterable[Round]) -> Iterator[Round]:
    """Take the payload from where results lie: ``in`` becomes ``out``."""
    return moved(rounds, IN, OUT)


def moved(rounds: Iterable[Round], old: Space, new: Space) -> Iterator[Round]:
    """The same rounds with one space in place of another."""
    name = old.name
    return mapped(rounds, lambda slots: [new(slot.block) if slot.space == name else slot for slot in slots])


def then(first: Iterable[Round], *others: Iterable[Round]) -> Iterator[Round]:
    """One after the other: each takes as its input what those before left as their result.

    Examples
    --------
    All-reduce is reduce-scatter, then all-gather::

        yield from then(reduce_scatter(rank, size), all_gather(rank, size))
    """
    yield from first
    for rounds in others:
        yield from in_result(rounds)


def reverse(rounds: Iterable[Round]) -> Iterator[Round]:
    """Run a movement backwards: what scattered now gathers, over the same messages in the opposite direction.

    Sends become receives and ``in`` becomes ``out``. Only for schedules that move blocks: a reduction has no inverse.
    """
    def swapped(slot: Slot) -> Slot:
        return {IN.name: OUT, OUT.name: IN}[slot.space](slot.block) if slot.space in (IN.name, OUT.name) else slot

    for round_ in _backwards(rounds):
        yield Round(*(Copy(swapped(op.source), swapped(op.into)) for op in reversed(round_.local) if isinstance(op, Copy)))
        yield Round(
            *(Recv(op.peer, *map(swapped, op.slots)) for op in reversed(round_.sends)),
            *(Send(op.peer, *map(swapped, op.slots)) for op in reversed(round_.recvs)), phase=round_.phase)


def merge(*schedules: Iterable[Round]) -> Iterator[Round]:
    """Several at once: the first rounds of all together, then the second ones, and so on. Their slots must be different."""
    for rounds in zip_longest(*schedules, fillvalue=Round()):
        yield Round(*(op for round_ in rounds for op in round_.operations), phase=rounds[0].phase)


def transpose(rank: int, rounds: Iterable[Round]) -> Iterator[Round]:
    """Run a movement of copies backwards as a reduction: a broadcast becomes a reduce, an all-gather a reduce-scatter.

    Where a rank sent copies of a block it now receives partial sums of it, and adds them to its own contribution; where a
    block came from, there goes its sum. The lower of two ranks stands on the left of the operator, so rank order is kept
    where the ranks that get a block from another are a run beside those that it has served before.

    Parameters
    ----------
    rank
        Whose rounds these are.
    rounds
        Of a schedule without reductions that brings a rank no block twice.

    Examples
    --------
    >>> for round_ in transpose(4, [Round(Recv(3, OUT(0))), Round(Send(5, OUT(0)))]):
    ...     print(round_)
    receive from 5[0] from 5; partial[0] = in[0] ⊕ from 5[0]
    send partial[0] to 3
    """
    there = list(_backwards(rounds))
    passed_on = {slot.block for round_ in there for recv in round_.recvs for slot in recv.slots}
    sums: dict[Block, Slot] = {}

    def so_far(block: Block) -> Slot:
        return sums.get(block, IN(block))

    def added(peer: int, block: Block) -> Reduce:
        sides = (Space(f"from {peer}")(block), so_far(block))
        sums[block] = (_PARTIAL if block in passed_on else OUT)(block)
        return Reduce(sums[block], *(sides if peer < rank else reversed(sides)))

    for round_ in there:
        back = list(reversed(round_.sends))
        arriving = [Recv(op.peer, *(Space(f"from {op.peer}")(slot.block) for slot in op.slots)) for op in back]
        leaving = [Send(op.peer, *(so_far(slot.block) for slot in op.slots)) for op in reversed(round_.recvs)]
        yield Round(
            *arriving, *leaving, *[added(op.peer, slot.block) for op in back for slot in op.slots], phase=round_.phase)


_PARTIAL = Space("partial")


def _backwards(rounds: Iterable[Round]) -> Iterator[Round]:
    for round_ in reversed(tuple(rounds)):
        if any(isinstance(op, Reduce) for op in round_.local):
            raise TypeError("a schedule that reduces cannot be reversed")
        yield round_
