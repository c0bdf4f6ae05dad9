"""Types and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from treering.core.algorithm import Algorithm
from treering.core.collective import Collective
from treering.core.errors import UnknownName

Command = TypeVar("Command", bound=Callable[..., Any])

_SIZE = re.compile(r"([0-9]+)([KMG]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_RANKS = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def parse_size(text: str) -> int:
    """Read one size in bytes: ``17``, ``64k``, ``2M``, ``1G``, in powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 4, 64K, 2M or 1G (powers of 1024)")
    return int(match[1]) * _UNITS[match[2].upper()]


def parse_sizes(text: str) -> tuple[int, ...]:
    """Read sizes: one, a list, or a range ``start:end:factor``; lists may hold ranges.

    Examples
    --------
    >>> parse_sizes("0,1,17,1K")
    (0, 1, 17, 1024)
    >>> parse_sizes("4:1K:4")
    (4, 16, 64, 256, 1024)
    """
    return tuple(size for part in text.split(",") for size in _size_range(part))


def parse_ranks(text: str) -> tuple[int, ...]:
    """Read numbers of ranks, each once and in order.

    Examples
    --------
    >>> parse_ranks("1,2,5-8")
    (1, 2, 5, 6, 7, 8)
    """
    numbers: set[int] = set()
    for part in text.split(","):
        match = _RANKS.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part!r} is not a number of ranks such as 4, or a range such as 1-64")
        first, last = int(match[1]), int(match[2] or match[1])
        if first < 1:
            raise ValueError(f"{part!r}: there is at least one rank")
        if last < first:
            raise ValueError(f"{part!r} ends before it starts")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


class Parsed(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions of click
    """A parameter type made of a function that reads text; what it refuses, it says."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text; a default that is already a value stays as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (ValueError, UnknownName) as error:
            self.fail(str(error), param, ctx)


def _find_collective(text: str) -> Collective:
    # Imports all algorithms, which a command without a collective does not need.
    from treering.table import find_collective

    return find_collective(text)


def _find_algorithm(text: str) -> tuple[Algorithm, dict[str, int]]:
    from treering.table import find_algorithm

    return find_algorithm(click.get_current_context().params["collective"], text)


SIZE = Parsed("SIZE", parse_size)
"""One size in bytes, as an int."""

SIZES = Parsed("SIZES", parse_sizes)
"""A size, a list or a range, as a tuple of ints."""

RANKS = Parsed("RANKS", parse_ranks)
"""Numbers of ranks, as a tuple of ints."""

COLLECTIVE = Parsed("COLLECTIVE", _find_collective)
"""A collective in any of its spellings."""

ALGORITHM = Parsed("ALGORITHM", _find_algorithm)
"""An algorithm with its parameters, ``chain:segments=4``; declared after a parameter ``collective``, whose it is."""


FILES = "treering.files"
"""Key in click's ``ctx.meta`` under which a command finds the algorithms of the user's files."""


def file_option(command: Command) -> Command:
    """Add ``-f FILE.py`` to a command: its algorithms are then known by name, and those of `own_algorithms`."""
    return click.option(
        "-f", "--file", "files", multiple=True, is_eager=True, expose_value=False, callback=_load, metavar="FILE.py",
        type=click.Path(path_type=Path), help="Take the algorithms that a Python file of yours declares, too.")(command)


def own_algorithms() -> list[Algorithm]:
    """The algorithms of the files that were given by ``-f``."""
    found: list[Algorithm] = click.get_current_context().meta.get(FILES, [])
    return found


def _load(ctx: click.Context, param: click.Parameter, files: tuple[Path, ...]) -> None:
    if files:
        from treering.table import load

        ctx.meta[FILES] = [algorithm for path in files for algorithm in load(path)]


def results_options(command: Command) -> Command:
    """Add ``--json FILE`` and ``--force`` to a command, which gets them as ``json`` and ``force``.

    A file that exists is refused before any work is done.
    """
    command = click.option(
        "--force", is_flag=True, is_eager=True, help="Overwrite result files that exist.")(command)
    return click.option(
        "--json", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), callback=refuse_existing,
        help="Write the results to FILE as JSON.")(command)


def refuse_existing(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a result file that exists, unless ``--force`` says otherwise: the callback of an option that names one."""
    if path and path.exists() and not ctx.params.get("force"):
        raise click.UsageError(f"{path} exists; --force overwrites it", ctx)
    return path


def _size_range(part: str) -> Iterable[int]:
    bounds = part.split(":")
    if len(bounds) == 1:
        return [parse_size(part)]
    if len(bounds) != 3:
        raise ValueError(f"{part!r} is not a range start:end:factor such as 4:64M:4")
    start, end = parse_size(bounds[0]), parse_size(bounds[1])
    factor = int(bounds[2]) if bounds[2].strip().isdecimal() else 0
    if factor < 2 or start < 1 or end < start:
        raise ValueError(f"{part!r}: a range needs 1 <= start <= end and a factor of at least 2")
    sizes = [start]
    while sizes[-1] * factor <= end:
        sizes.append(sizes[-1] * factor)
    return sizes
