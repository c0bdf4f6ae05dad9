"""What the commands that read schedules print alike: the console, sizes and tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 120
"""Columns where the output is no terminal: wide enough that few cells are broken."""

_UNITS = {"G": 2**30, "M": 2**20, "K": 2**10}


def console() -> Console:
    """Where to print tables."""
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)


@contextmanager
def progress(doing: str, total: int, *, shown: bool) -> Iterator[Callable[..., None]]:
    """Show a bar, where it is wanted and there is a terminal; yields what to call when one thing is done, with anything."""
    from rich.progress import Progress

    stderr = Console(stderr=True)
    with Progress(console=stderr, disable=not (shown and stderr.is_terminal), transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda *done: bar.advance(task)


def size_text(size: int) -> str:
    """Write a size in the largest unit, of powers of 1024, that makes it a whole number.

    Examples
    --------
    >>> size_text(64 * 2**20), size_text(1536), size_text(1000)
    ('64M', '1536', '1000')
    """
    for unit, factor in _UNITS.items():
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def table(*columns: str, title: str | None = None, numbers: tuple[str, ...] = ()) -> Table:
    """Make a table; the columns of numbers stand right."""
    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made
