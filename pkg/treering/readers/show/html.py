"""The page: a schedule that plays round by round, self-contained, for browsers and notebooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from ...core.algorithm import Schedule
from ...core.schedule import Block, format_block
from .film import Film, Held, film
from .words import pairs, subtitle, title

FRAME_HEIGHT, RANK_HEIGHT = 560, 26
"""Pixels of a page in a notebook: at least, and for each rank beyond twelve."""


def html(schedule: Schedule) -> str:
    """Make one self-contained page that shows a schedule round by round.

    It has no external resources, adapts to light and dark, and is moved by buttons, a bar, or the arrow keys.
    """
    # "<" can occur in a text of the data; as an escape it cannot end the script.
    data = json.dumps(_data(film(schedule)), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    return page.replace("{{title}}", escape(title(schedule))).replace("{{data}}", data)


def embedded(schedule: Schedule) -> str:
    """The page as a fragment for a notebook, in a frame of its own so that neither's style touches the other's."""
    height = FRAME_HEIGHT + RANK_HEIGHT * max(0, schedule.size - 12)
    page = escape(html(schedule), quote=True)
    return (f'<iframe title="{escape(title(schedule))}" srcdoc="{page}" style="width: 100%; height: {height}px; border: 0">'
            "</iframe>")


def _data(taken: Film) -> dict[str, Any]:
    """What the script needs; holdings as what changes from frame to frame, masks in hexadecimal."""
    schedule = taken.schedule
    states = [taken.before, *(frame.held for frame in taken.frames)]
    names = {block: place for place, block in enumerate(_blocks(schedule))}
    nothing: tuple[Held, ...] = ({},) * schedule.size
    return {
        "title": title(schedule), "subtitle": subtitle(taken), "flaw": taken.flaw.what if taken.flaw else None,
        "size": schedule.size, "root": schedule.case.root if schedule.collective.rooted else None,
        "pairs": pairs(schedule), "reduces": schedule.collective.reduces, "blocks": [format_block(b) for b in names],
        "frames": [
            {"phase": frame.phase,
             "messages": [[m.source, m.destination, [names[b] for b in m.blocks], int(m.reduced)] for m in frame.messages]}
            for frame in taken.frames],
        "changes": [_changes(old, new, names) for old, new in zip([nothing, *states], states)],
    }


def _blocks(schedule: Schedule) -> list[Block]:
    if pairs(schedule):
        return [(source, target) for source in range(schedule.size) for target in range(schedule.size)]
    return list(range(schedule.case.blocks))


def _changes(old: tuple[Held, ...], new: tuple[Held, ...], names: Mapping[Block, int]) -> list[tuple[int, int, str]]:
    """Every (rank, place of a block, new mask) that is not as it was."""
    return [
        (rank, place, f"{now.get(block, 0):x}")
        for rank, (was, now) in enumerate(zip(old, new))
        for block, place in ((block, names[block]) for block in {**was, **now}) if was.get(block) != now.get(block)]
