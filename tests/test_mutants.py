"""One thing broken in a right schedule: the verifier must reject it, with the right reason.

Some changes do no harm: two rounds that commute, or operands swapped where order is not promised and only one rank has the
result. Which those are is not left to the verifier: a second opinion (`oracle`) must agree with it on every mutant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import oracle
import pytest
from cases import ALGORITHMS, rewritten, schedules, written

from treering.core import IN, Algorithm, Copy, Recv, Reduce, Round, Schedule, Send, Slot
from treering.core.schedule import Operation
from treering.readers.match import Flaw
from treering.readers.verify import verify

NOT_THERE = r"holds nothing|which holds nothing yet|lacks the contribution"
ASTRAY = r"waits forever|expects block|counts the contribution of .* twice"  # the last where a later message came instead

REASONS = {
    "wrong peer": ASTRAY,
    "itself as peer": r"that is no other rank",
    "no such peer": r"that is no other rank",
    "wrong block sent": r"expects block|while its memory is being sent",
    "wrong block received": r"expects block|receives (twice )?into|writes .*the caller's input",
    "no blocks": r"the message is empty",
    "dropped send": ASTRAY,
    "dropped receive": rf"{ASTRAY}|which holds nothing yet",
    "dropped copy": NOT_THERE,
    "dropped reduction": NOT_THERE,
    "doubled reduction": r"counts the contribution of .* twice",
    "copy of another block": r"the names of the blocks differ|which holds nothing yet|the caller's input",
    "reduction with another block": r"reduces block|which holds nothing yet|the caller's input",
    "swapped sides": r"not reduced in rank order|by another tree",
    "swapped rounds": rf"{ASTRAY}|{NOT_THERE}|not reduced in rank order|by another tree|does not belong there",
    "received into what is sent": r"receives into .* while its memory is being sent|the caller's input",
    "received twice": r"receives twice into",
    "input written": r"writes in\[.*\], the caller's input",
}
"""For each way to break a schedule, what the verifier may say."""

HARMLESS = {"swapped sides", "swapped rounds"}
"""The ways that do not always do harm."""
HARMLESS_REPEATED = HARMLESS | {"doubled reduction", "dropped reduction"}
"""Those where a contribution may come more than once, as in a barrier."""


class Mutant(NamedTuple):
    kind: str
    schedule: Schedule


def mutants(schedule: Schedule) -> Iterator[Mutant]:
    """All single changes on one rank of a small schedule, or of the middle rank of a larger one."""
    ranks = range(schedule.size) if schedule.size < 5 else [schedule.size // 2]
    for rank in ranks:
        rounds = list(schedule.rounds(rank))
        for index, round_ in enumerate(rounds):
            for kind, changed in broken(schedule, rank, round_):
                yield Mutant(kind, with_rounds(schedule, rank, [*rounds[:index], changed, *rounds[index + 1:]]))
        for index in range(len(rounds) - 1):
            swapped = [*rounds[:index], rounds[index + 1], rounds[index], *rounds[index + 2:]]
            yield Mutant("swapped rounds", with_rounds(schedule, rank, swapped))


def with_rounds(schedule: Schedule, rank: int, rounds: list[Round]) -> Schedule:
    programs = written(schedule)
    programs[rank] = rounds
    return rewritten(schedule, programs)


def broken(schedule: Schedule, rank: int, round_: Round) -> Iterator[tuple[str, Round]]:
    """All single changes to one round."""
    operations = round_.operations
    for place, op in enumerate(operations):
        for kind, instead in replacements(schedule, rank, round_, op):
            yield kind, Round(*operations[:place], *instead, *operations[place + 1:])


def replacements(schedule: Schedule, rank: int, round_: Round, op: Operation) -> Iterator[tuple[str, list[Operation]]]:
    if isinstance(op, (Send, Recv)):
        yield from of_message(schedule, rank, op)
    if isinstance(op, Send):
        yield "dropped send", []
        yield "wrong block sent", [Send(op.peer, renamed(schedule, op.slots[0]), *op.slots[1:])]
    elif isinstance(op, Recv):
        yield "dropped receive", []
        yield "wrong block received", [Recv(op.peer, renamed(schedule, op.slots[0]), *op.slots[1:])]
        yield "received twice", [op, op]
        for send in round_.sends[:1]:
            yield "received into what is sent", [Recv(op.peer, send.slots[0], *op.slots[1:])]
    elif isinstance(op, Copy):
        yield "dropped copy", []
        yield "copy of another block", [Copy(op.into, renamed(schedule, op.source))]
    else:
        yield "dropped reduction", []
        yield "doubled reduction", [op, Reduce(op.into, op.into, op.right)]
        yield "swapped sides", [Reduce(op.into, op.right, op.left)]
        yield "reduction with another block", [Reduce(op.into, op.left, renamed(schedule, op.right))]
    for slot in schedule.collective.before(rank, schedule.case):
        if slot.space == IN.name and not isinstance(op, Send):
            yield "input written", [into(op, slot)]
            break


def of_message(schedule: Schedule, rank: int, op: Send | Recv) -> Iterator[tuple[str, list[Operation]]]:
    kind = type(op)
    for peer in range(schedule.size):
        if peer not in (rank, op.peer):
            yield "wrong peer", [kind(peer, *op.slots)]
    yield "itself as peer", [kind(rank, *op.slots)]
    yield "no such peer", [kind(schedule.size, *op.slots)]
    yield "no blocks", [kind(op.peer)]


def into(op: Recv | Copy | Reduce, slot: Slot) -> Operation:
    if isinstance(op, Recv):
        return Recv(op.peer, slot, *op.slots[1:])
    return Copy(slot, op.source) if isinstance(op, Copy) else Reduce(slot, op.left, op.right)


def renamed(schedule: Schedule, slot: Slot) -> Slot:
    """The slot of the block after this one, in the same space."""
    if isinstance(slot.block, int):
        return Slot(slot.space, slot.block + 1)
    source, target = slot.block
    return Slot(slot.space, (source, (target + 1) % schedule.size))


def reason_against(schedule: Schedule) -> str | None:
    try:
        verify(schedule)
    except Flaw as flaw:
        return flaw.what
    return None


def oracle_accepts(schedule: Schedule) -> bool:
    try:
        oracle.judge(schedule)
    except oracle.Wrong:
        return False
    return True


def ends(size: int) -> list[int]:
    return sorted({0, size - 1})


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_every_mutant_is_rejected_for_the_right_reason_or_does_no_harm(algorithm: Algorithm) -> None:
    killed: Counter[str] = Counter()
    for schedule in schedules(algorithm, range(2, 6), ends):
        assert oracle_accepts(schedule)
        for kind, mutant in mutants(schedule):
            reason = reason_against(mutant)
            harmless = oracle_accepts(mutant)
            assert (reason is None) == harmless, f"{kind} in {schedule}: verifier: {reason}; oracle accepts: {harmless}"
            if reason is None:
                assert kind in (HARMLESS_REPEATED if algorithm.collective.repeats else HARMLESS), f"{kind} in {schedule}"
            else:
                assert re.search(REASONS[kind], reason), f"{kind} in {schedule}: {reason}"
                killed[kind] += 1
    assert killed["wrong peer"] and killed["dropped send"] and killed["dropped receive"] and killed["wrong block sent"]
    if algorithm.collective.reduces:
        assert killed["dropped reduction"] and (killed["doubled reduction"] or algorithm.collective.repeats)
    if algorithm.in_order:
        assert killed["swapped sides"]


def test_all_ways_to_break_a_schedule_occur() -> None:
    seen = {kind for algorithm in ALGORITHMS for s in schedules(algorithm, [3], ends) for kind, _ in mutants(s)}
    assert seen == set(REASONS)
