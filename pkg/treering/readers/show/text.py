"""The round × rank grid in text."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ...core.algorithm import Schedule
from ...core.schedule import Block, Recv, Send, format_block
from .film import Film, Frame, Held, film
from .words import blocks, pairs, subtitle, title

NARROWEST = 9
"""Columns that a rank needs at least."""
SPACED = 12
"""Up to this many blocks stand apart from each other."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
BARS = "▁▂▃▄▅▆▇█"
MARGIN = 7
"""Columns for the number of the round."""


def text(schedule: Schedule, width: int | None = None, mark: tuple[int, int | None] | None = None) -> str:
    """Draw a schedule as a grid of rounds and ranks: which block goes where, and what each rank holds after each round.

    Parameters
    ----------
    schedule
        It may be broken: the grid ends where it cannot go on.
    width
        Columns to fit into; by default those of the terminal. Ranks that do not fit are left out.
    mark
        A place ``(rank, round)`` to point at, as a `Flaw` names it; round None is the end. The grid ends there.

    Examples
    --------
    >>> from treering.table import schedule
    >>> print(text(schedule("all-gather", "ring", size=3), width=60))
    all-gather ring on 3 ranks: 2 rounds, the busiest rank sends 2/3 of the payload
    <BLANKLINE>
     round │ rank 0    │ rank 1    │ rank 2
    ───────┼───────────┼───────────┼───────────
    before │ 0 · ·     │ · 1 ·     │ · · 2
    ───────┼───────────┼───────────┼───────────
         1 │ →1:0 ←2:2 │ →2:1 ←0:0 │ →0:2 ←1:1
           │ 0 · 2     │ 0 1 ·     │ · 1 2
    ───────┼───────────┼───────────┼───────────
         2 │ →1:2 ←2:1 │ →2:0 ←0:2 │ →0:1 ←1:0
           │ 0 1 2     │ 0 1 2     │ 0 1 2
    <BLANKLINE>
    →1:0 sends block 0 to rank 1; ←1:0 receives it from there.
    Below that, the blocks a rank holds, · for none that is
    still needed.
    """
    return _Grid(film(schedule), width or shutil.get_terminal_size().columns, mark).draw()


@dataclass
class _Row:
    label: str
    cells: list[list[str]]
    heading: str = ""


@dataclass
class _Grid:
    film: Film
    width: int
    mark: tuple[int, int | None] | None
    column: int = field(init=False)
    ranks: range = field(init=False)

    def __post_init__(self) -> None:
        size = self.film.schedule.size
        room = self.width - MARGIN
        shown = max(1, min(size, room // (NARROWEST + 3)))
        widest = max((len(token) for row in self.rows(range(size), 10**6) for cell in row.cells for token in cell), default=0)
        self.column = max(NARROWEST, min(room // shown - 3, widest))
        # Around the marked rank, if there is one.
        first = min(max(0, self.mark[0] - shown // 2), size - shown) if self.mark else 0
        self.ranks = range(first, first + shown)

    def draw(self) -> str:
        rule = "┼".join(["─" * MARGIN, *("─" * (self.column + 2) for _ in self.ranks)])
        lines = [f"{title(self.film.schedule)}: {subtitle(self.film)}", ""]
        lines += self.lines(_Row("round ", [[f"rank {rank}"] for rank in self.ranks]))
        for row in self.rows(self.ranks, self.column):
            lines += [rule.replace("─", "═").replace("┼", "╪") if row.heading else rule]
            lines += [f"{'':{MARGIN}}  {row.heading}"] if row.heading else []
            lines += self.lines(row)
        return "\n".join(line.rstrip() for line in [*lines, "", *self.legend(shortened=any("×" in line for line in lines))])

    def lines(self, row: _Row) -> list[str]:
        depth = zip_longest(*row.cells, fillvalue="")
        return [
            "│ ".join([f"{'' if at else row.label:>{MARGIN}}", *(f"{part:<{self.column + 1}}" for part in parts)])
            for at, parts in enumerate(depth)]

    def rows(self, ranks: range, column: int) -> Iterable[_Row]:
        """The rows from before the first round to the last, or to the marked place."""
        place = self.marked_frame()
        last = len(self.film.frames) if place is None else min(place, len(self.film.frames))
        yield self.marked(_Row("before ", [self.holding(self.film.before[r], column) for r in ranks]), ranks, place == 0)
        phase = ""
        for number, frame in enumerate(self.film.frames[:last], 1):
            flows = [_flow(self.messages(frame, rank, column), column) for rank in ranks]
            cells = _stacked(flows, [self.holding(frame.held[rank], column) for rank in ranks])
            heading, phase = frame.phase if frame.phase != phase else "", frame.phase
            yield self.marked(_Row(f"{number} ", cells, heading), ranks, number == place)
        if self.film.waiting and (place is None or place > len(self.film.frames)):
            cells = [_flow(self.stopped(rank, column), column) for rank in ranks]
            yield self.marked(_Row("stuck ", cells), ranks, place is not None)

    def marked_frame(self) -> int | None:
        """The frame of the marked place; one more than there are where it was never reached or is the end."""
        if self.mark is None:
            return None
        rank, round_ = self.mark
        if round_ is None:
            return len(self.film.frames) + bool(self.film.waiting)
        reached = self.film.frame_of(rank, round_)
        return len(self.film.frames) + bool(self.film.waiting) if reached is None else reached

    def marked(self, row: _Row, ranks: range, here: bool) -> _Row:
        if here and self.mark and self.mark[0] in ranks:
            cell = row.cells[ranks.index(self.mark[0])]
            cell.append("^" * max(map(len, cell), default=1))
            cell.append("✗ here")
        return row

    def messages(self, frame: Frame, rank: int, column: int) -> list[str]:
        sends = [_token("→", m.destination, m.blocks, "", column) for m in frame.messages if m.source == rank]
        takes = [_token("←", m.source, m.blocks, "+" * m.reduced, column) for m in frame.messages if m.destination == rank]
        return [*sends, *takes] or ["-"]

    def stopped(self, rank: int, column: int) -> list[str]:
        """What a rank that cannot go on waits for."""
        if rank not in self.film.waiting:
            return ["finished"]
        return [
            _token(*_direction(message), [slot.block for slot in message.slots], "", column - 1) + "?"
            for message in self.film.waiting[rank]]

    def holding(self, held: Held, column: int) -> list[str]:
        schedule = self.film.schedule
        if pairs(schedule):
            names = [format_block(block) for block in held]
            short = f"{len(held)} blocks"
            return _flow(names, column) if len(names) <= SPACED else [short]
        if schedule.case.blocks > column:
            full = sum(mask == (1 << schedule.size) - 1 for mask in held.values())
            return [f"{len(held)}/{schedule.case.blocks}" + f" Σ{full}" * schedule.collective.reduces]
        gap = " " if schedule.case.blocks <= SPACED and 2 * schedule.case.blocks - 1 <= column else ""
        return [gap.join(self.symbol(block, held.get(block)) for block in range(schedule.case.blocks))]

    def symbol(self, block: int, mask: int | None) -> str:
        """One character for what a rank holds of a block."""
        if not mask:
            return "·"
        if not self.film.schedule.collective.reduces:
            return str(block) if self.film.schedule.case.blocks <= 10 else "■"
        many, size = mask.bit_count(), self.film.schedule.size
        if many == size:
            return "Σ"
        return DIGITS[many] if size <= len(DIGITS) else BARS[(many - 1) * len(BARS) // size]

    def legend(self, shortened: bool) -> list[str]:
        schedule = self.film.schedule
        below = "the blocks a rank holds"
        if schedule.collective.reduces:
            some = "1 2 …" if schedule.size <= 10 else "1 … 9 a b …" if schedule.size <= len(DIGITS) else "▁ … █"
            below = f"how many contributions to each block a rank holds, {some}, Σ for all"
        block = "0→1" if pairs(schedule) else "0"
        plus = f"; ←1:+{block} reduces it too" if schedule.collective.reduces else ""
        many = "; ×4 is four blocks" * shortened
        said = f"→1:{block} sends block {block} to rank 1; ←1:{block} receives it from there{plus}{many}. "
        said += f"Below that, {below}, · for none that is still needed."
        if len(self.ranks) < schedule.size:
            said += f" Only ranks {self.ranks[0]} to {self.ranks[-1]} of {schedule.size} fit here."
        return textwrap.wrap(said, self.width, break_on_hyphens=False)


def _direction(message: Send | Recv) -> tuple[str, int]:
    return ("→" if isinstance(message, Send) else "←"), message.peer


def _token(arrow: str, peer: int, many: Sequence[Block], how: str, column: int) -> str:
    whole = f"{arrow}{peer}:{how}{blocks(many)}"
    return whole if len(whole) <= column else f"{arrow}{peer}:{how}×{len(many)}"


def _stacked(upper: Sequence[list[str]], lower: Sequence[list[str]]) -> list[list[str]]:
    """Cells of two parts, of which the lower ones begin at the same height."""
    height = max(map(len, upper))
    return [[*above, *[""] * (height - len(above)), *below] for above, below in zip(upper, lower)]


def _flow(tokens: Iterable[str], column: int) -> list[str]:
    """Set words in lines of a width; one that is too long stands alone."""
    lines: list[str] = []
    for token in tokens:
        if lines and len(lines[-1]) + 1 + len(token) <= column:
            lines[-1] += f" {token}"
        else:
            lines.append(token)
    return lines
