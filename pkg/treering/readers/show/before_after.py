"""What a collective does: what every rank holds before and after it."""

from __future__ import annotations

from ...core.collective import Case, Collective
from ...core.schedule import Slot

SPELLED_OUT = 4
"""Sums of up to this many contributions are written in full."""


def before_after(collective: Collective, size: int, root: int = 0) -> str:
    """Write what every rank holds before and after a collective.

    A letter says whose contribution it is, a number which block.

    Examples
    --------
    >>> from treering.core import ALL_REDUCE, ALL_TO_ALL
    >>> print(before_after(ALL_TO_ALL, 3))
    all-to-all on 3 ranks
    <BLANKLINE>
    rank  before       after
       0  A0 A1 A2  →  A0 B0 C0
       1  B0 B1 B2  →  A1 B1 C1
       2  C0 C1 C2  →  A2 B2 C2
    """
    case = Case(size, root, collective.units(size))
    rows = [("rank", "before", "", "after")]
    for rank in case.everyone:
        before, after = (
            " ".join(_contribution(slot, origins, case) for slot, origins in state(rank, case).items()) or "·"
            for state in (collective.before, collective.after))
        rows.append((str(rank), before, "→", after))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]}" for row in rows]
    at = f", root {root}" if collective.rooted else ""
    return "\n".join([f"{collective} on {size} rank{'s' * (size > 1)}{at}", "", *lines])


def _contribution(slot: Slot, origins: range, case: Case) -> str:
    # A payload of one block needs no number.
    index = slot.block[1] if isinstance(slot.block, tuple) else "" if case.blocks == 1 else slot.block
    names = [f"{_letters(rank)}{index}" for rank in origins]
    return "+".join(names if len(names) <= SPELLED_OUT else [*names[:2], "…", names[-1]])


def _letters(rank: int) -> str:
    """A, B, …, Z, AA, AB, … as spreadsheets name their columns."""
    letters = ""
    rank += 1
    while rank:
        rank, letter = divmod(rank - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters
