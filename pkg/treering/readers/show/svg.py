"""The drawing: ranks across, time downwards, an arrow for every message and what each rank holds between the rounds."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from ...core.algorithm import Schedule
from ...core.schedule import Block, format_block
from .film import Film, Frame, Held, Message, film
from .words import blocks, pairs, subtitle, title

LABELLED = 16
"""Up to this many ranks arrows are labelled and blocks are drawn."""
LEFT, TOP, BOTTOM = 96, 104, 40
SQUARE = 13
"""Height of the squares for blocks, and their width where there is room."""

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d2733; --soft: #66758a; --line: #d5dde8; --band: #f4f7fb; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #10161f; --ink: #e6edf6; --soft: #93a4ba; --line: #2a3747; --band: #161f2b; }
}
text { font: 13px ui-sans-serif, system-ui, "Helvetica Neue", Arial, sans-serif; fill: var(--ink); }
.title { font-size: 20px; font-weight: 650; }
.soft { fill: var(--soft); }
.life { stroke: var(--line); stroke-width: 2; }
.band { fill: var(--band); }
.empty { fill: var(--line); }
.label {
  font-size: 12px; font-weight: 600; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round;
}
.message { fill: none; stroke-width: 2; }
"""


def svg(schedule: Schedule) -> str:
    """Draw a schedule as one SVG picture, which brings its style along and adapts to light and dark."""
    return _Drawing(film(schedule)).draw()


def colour(index: int, many: int) -> str:
    """The colour of one of several blocks, spread around the colour circle."""
    # Yellow and green look brighter than blue and red of the same lightness, so these are darkened.
    hue = (index / max(many, 1) + 0.58) % 1
    lightness = 0.42 if 0.1 < hue < 0.5 else 0.55
    red, green, blue = (round(255 * part) for part in colorsys.hls_to_rgb(hue, lightness, 0.68))
    return f"#{red:02x}{green:02x}{blue:02x}"


@dataclass
class _Drawing:
    film: Film

    def __post_init__(self) -> None:
        self.schedule = self.film.schedule
        self.size = self.schedule.size
        self.small = self.size <= LABELLED
        self.across = max(44, min(132, 1320 // self.size)) if self.small else 1320 / self.size
        self.down = 92 if self.small else 36
        self.width = max(round(LEFT + self.across * (self.size - 0.5)) + 8, 420)
        self.height = TOP + self.down * len(self.film.frames) + BOTTOM

    def draw(self) -> str:
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(title(self.schedule))}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{self.width}" height="{self.height}" style="fill: var(--paper)"/>',
            f'<text class="title" x="24" y="36">{escape(title(self.schedule))}</text>',
            f'<text class="soft" x="24" y="58">{escape(subtitle(self.film))}</text>',
            *self.background(), *self.lifelines()]
        for number, frame in enumerate(self.film.frames):
            parts += self.arrows(number, frame)
        for number, held in enumerate([self.film.before, *(frame.held for frame in self.film.frames)]):
            parts += self.holdings(number, held)
        return "\n".join([*parts, "</svg>\n"])

    def x(self, rank: int) -> float:
        return round(LEFT + self.across * rank, 1)

    def y(self, number: int) -> int:
        """The height between two rounds."""
        return TOP + self.down * number

    def background(self) -> Iterator[str]:
        """Bands, and the names of rounds and phases."""
        for number in range(0, len(self.film.frames), 2):
            yield f'<rect x="0" y="{self.y(number)}" width="{self.width}" height="{self.down}" class="band"/>'
        phase = ""
        for number, frame in enumerate(self.film.frames):
            yield f'<text class="soft" x="32" y="{self.y(number) + self.down / 2 + 5}">{number + 1}</text>'
            if frame.phase != phase:
                at = self.y(number) + 8
                yield f'<text class="soft" x="10" y="{at}" transform="rotate(90 10 {at})">{escape(frame.phase)}</text>'
            phase = frame.phase

    def lifelines(self) -> Iterator[str]:
        every = 1 if self.small else -(-self.size // 16)
        for rank in range(self.size):
            x = self.x(rank)
            yield f'<line class="life" x1="{x}" y1="{TOP}" x2="{x}" y2="{self.y(len(self.film.frames))}"/>'
            if rank % every == 0:
                yield f'<text x="{x}" y="{TOP - 18}" text-anchor="middle">{rank}</text>'

    def arrows(self, number: int, frame: Frame) -> Iterator[str]:
        gap = 13 if self.small else 3
        top, bottom = self.y(number) + gap, self.y(number + 1) - gap
        labels = []
        for message in frame.messages:
            x1, x2, paint = self.x(message.source), self.x(message.destination), self.paint(message.blocks[0])
            # Steep at both ends, so that crossing messages can be told apart.
            bend = (bottom - top) * 0.4
            yield (f'<path class="message" stroke="{paint}" d="M{x1} {top} C{x1} {top + bend:.0f} {x2} {bottom - bend:.0f} '
                   f'{x2} {bottom - 4}"/>')
            yield f'<path fill="{paint}" d="M{x2} {bottom} l-4.5 -9 h9 z"/>'
            if self.small:
                labels.append(self.label(message, x1, x2, top, bottom))
        yield from labels

    def label(self, message: Message, x1: float, x2: float, top: int, bottom: int) -> str:
        # Near its source, where no other label is.
        x, y = x1 + max(-0.25 * self.across, min(0.25 * self.across, 0.07 * (x2 - x1))), top + 0.19 * (bottom - top)
        words = blocks(message.blocks)
        if len(words) * 7 > 0.7 * self.across:
            words = f"×{len(message.blocks)}"
        plus = "+" if message.reduced else ""
        return f'<text class="label" x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle">{plus}{words}</text>'

    def holdings(self, number: int, held: tuple[Held, ...]) -> Iterator[str]:
        """A row of little squares for what each rank holds, filled by how many contributions are in."""
        places = self.size if pairs(self.schedule) else self.schedule.case.blocks
        side = min(SQUARE, 0.84 * self.across / places)
        if not self.small or side < 2:
            return
        gap = min(1.0, side / 5)
        for rank in range(self.size):
            left, top = self.x(rank) - places * side / 2, self.y(number) - SQUARE / 2
            for place, (block, mask) in enumerate(self.squares(rank, held[rank], places)):
                x = left + place * side
                shape = f'x="{x:.1f}" width="{side - gap:.1f}" rx="{side / 5:.1f}"'
                yield f'<rect class="empty" {shape} y="{top:.1f}" height="{SQUARE}"/>'
                if block is not None:
                    tall = SQUARE * (mask.bit_count() / self.size if self.schedule.collective.reduces else 1)
                    yield (f'<rect fill="{self.paint(block)}" {shape} y="{top + SQUARE - tall:.1f}" height="{tall:.1f}">'
                           f'<title>{format_block(block)}</title></rect>')

    def squares(self, rank: int, held: Held, places: int) -> list[tuple[Block | None, int]]:
        """Each place with its block. In an all-to-all a rank's blocks stand side by side, as many as there are places."""
        if pairs(self.schedule):
            return [*list(held.items())[:places], *[(None, 0)] * (places - len(held))]
        return [(block if held.get(block) else None, held.get(block, 0)) for block in range(places)]

    def paint(self, block: Block) -> str:
        """Blocks of an all-to-all have the colour of their source."""
        if isinstance(block, tuple):
            return colour(block[0], self.size)
        return colour(block, self.schedule.case.blocks)
