"""How all pictures write things: blocks, runs of blocks, titles."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ...core.algorithm import Schedule
from ...core.schedule import Block, format_block
from .film import Film


def pairs(schedule: Schedule) -> bool:
    """Whether blocks are named by source and destination, as in all-to-all."""
    return schedule.collective.units(schedule.size) > schedule.size


def blocks(many: Iterable[Block]) -> str:
    """Write some blocks in order, runs of neighbours as such.

    Examples
    --------
    >>> blocks([6, 0, 1, 2]), blocks([(0, 1), (0, 2)])
    ('0-2,6', '0→1,0→2')
    """
    runs: list[list[int]] = []
    words: list[str] = []
    for block in sorted(many):
        if isinstance(block, tuple):
            words.append(format_block(block))
        elif runs and block == runs[-1][-1] + 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    words += [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ",".join(words)


def title(schedule: Schedule) -> str:
    """Name a schedule: ``all-reduce ring on 6 ranks``."""
    root = f", root {schedule.case.root}" if schedule.collective.rooted else ""
    return f"{schedule.collective} {schedule.name} on {schedule.size} rank{'s' * (schedule.size > 1)}{root}"


def subtitle(film: Film) -> str:
    """Say what it takes: ``10 rounds · the busiest rank sends 5/3 of the payload``."""
    rounds = len(film.frames)
    if film.flaw:
        return f"breaks off after {rounds} round{'s' * (rounds != 1)}"
    payload = film.schedule.case.blocks // (film.schedule.size if pairs(film.schedule) else 1)
    sent = [0] * film.schedule.size
    for frame in film.frames:
        for message in frame.messages:
            sent[message.source] += len(message.blocks)
    share = Fraction(max(sent), payload)
    many = f"{share} of" if share.denominator > 1 else f"{share} times" if share > 1 else "as much as"
    return f"{rounds} round{'s' * (rounds != 1)}" + (f", the busiest rank sends {many} the payload" if share else "")
