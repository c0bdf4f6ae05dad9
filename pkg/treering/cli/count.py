"""``treering count``: how many rounds, messages and bytes an algorithm takes, beside the lower bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treering.cli.options import ALGORITHM, COLLECTIVE, SIZES, file_option, refuse_existing, results_options
from treering.core.cost import weight

if TYPE_CHECKING:
    from rich.table import Table

    from treering.core.algorithm import Algorithm
    from treering.core.collective import Collective
    from treering.readers.count import Figures

KINDS = ("messages_sent", "bytes_sent", "bytes_received", "bytes_reduced", "bytes_copied")


@click.command(epilog="Example: treering count allreduce ring -n 8 -b 64M")
@click.argument("collective", type=COLLECTIVE, is_eager=True)
@click.argument("algorithm", type=ALGORITHM, required=False)
@click.option("-n", "ranks", type=click.IntRange(min=1), required=True, help="Number of ranks.")
@click.option("--root", type=click.IntRange(min=0), default=0, show_default=True, help="Root, of a rooted collective.")
@click.option(
    "-b", "sizes", type=SIZES, default="1M", show_default=True,
    help="Bytes of the payload: one size, a list 4K,1M or a range 4:64M:4, in powers of 1024.")
@click.option(
    "--by", type=click.Choice(["bytes", "rounds"]), default="bytes", show_default=True, help="What algorithms are ranked by.")
@click.option(
    "--csv", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), callback=refuse_existing,
    help="Write one row for each algorithm and size to FILE as CSV.")
@results_options
@file_option
def command(
    collective: Collective, algorithm: tuple[Algorithm, dict[str, int]] | None, ranks: int, root: int, sizes: Sequence[int],
    by: str, csv: Path | None, json: Path | None, force: bool,
) -> None:
    """Count rounds, messages and bytes of an ALGORITHM, or of all algorithms of a COLLECTIVE, beside the lower bounds.

    Rounds are messages that follow each other, on ranks that send one and receive one at a time; depth is the same with any
    number of ports. All figures are exact.
    """
    from rich.console import Console

    from treering.cli.layout import console, size_text
    from treering.readers.count import count, meaning, spread

    chosen = [algorithm] if algorithm else _all_of(collective, ranks)
    results = []
    for size in sizes:
        counts = spread(collective, ranks, size)
        figures = []
        for record, given in chosen:
            # Many ranks take seconds; the line vanishes, and is not shown where there is no terminal.
            with Console(stderr=True).status(f"counting {record}"):
                settings = record.settings(given, ranks, weight(size))
                figures.append(count(record.schedule(ranks, root, **settings), counts))
        results += [(size, each) for each in figures]
        at = f", root {root}" if collective.rooted else ""
        click.echo(f"{collective} on {ranks} rank{'s' * (ranks > 1)}{at}, {size_text(size)} bytes: {meaning(collective)}")
        console().print(_one(figures[0], size) if algorithm else _ranked(figures, size, by))
    if csv:
        from treering.measuring.results import write_csv

        write_csv(csv, [_summary(each, size) for size, each in results], force=force)
    if json:
        from treering.measuring.results import header, write_json

        write_json(json, {**header(), "figures": [_details(each, size) for size, each in results]}, force=force)


def _all_of(collective: Collective, ranks: int) -> list[tuple[Algorithm, dict[str, int]]]:
    """All algorithms that run on so many ranks; of those that do not it is said why."""
    from treering.table import algorithms_of

    chosen: list[tuple[Algorithm, dict[str, int]]] = []
    for record in algorithms_of(collective):
        if reason := record.why_not(ranks):
            click.echo(f"left out: {reason}", err=True)
        else:
            chosen.append((record, {}))
    return chosen


def _one(figures: Figures, size: int) -> Table:
    """The figures of one algorithm: of the busiest rank, of all ranks, and what is the least for the busiest rank."""
    from treering.cli.layout import table

    least, total, most = _least(figures, size), figures.total, figures.most
    columns = ("busiest rank", "all ranks", "lower bound")
    made = table(figures.schedule.name, *columns, numbers=columns)
    made.add_row("rounds", f"{figures.rounds:,}", "", f"{least['rounds']:,}")
    made.add_row("depth", f"{figures.depth:,}")
    made.add_row("messages sent", f"{most('messages_sent'):,}", f"{total.messages_sent:,}")
    made.add_row("bytes sent", f"{most('bytes_sent'):,}", f"{total.bytes_sent:,}")
    made.add_row("bytes received", f"{most('bytes_received'):,}", f"{total.bytes_received:,}")
    made.add_row("  the larger of both", f"{_volume(figures):,}", "", f"{least['volume']:,}")
    if figures.schedule.collective.reduces:
        made.add_row("bytes reduced", f"{most('bytes_reduced'):,}", f"{total.bytes_reduced:,}", f"{least['reduced']:,}")
    made.add_row("bytes copied", f"{most('bytes_copied'):,}", f"{total.bytes_copied:,}")
    if pair := figures.pair:
        busiest = f"Busiest rank: {figures.busiest()}. Busiest pair: {pair.source} to {pair.destination}"
        made.caption = f"{busiest}, {pair.bytes:,} bytes."
        made.caption_justify = "left"
    return made


def _ranked(many: Sequence[Figures], size: int, by: str) -> Table:
    """All algorithms, best first, below the lower bounds."""
    from treering.cli.layout import table

    reduces = many[0].schedule.collective.reduces
    numbers = ("rounds", "depth", "messages", "bytes", "per payload", *["bytes reduced"] * reduces)
    made = table("", "algorithm", *numbers, numbers=numbers)
    least = _least(many[0], size)
    reduced = [f"{least['reduced']:,}"] * reduces
    bound = [f"{least['rounds']:,}", "", "", f"{least['volume']:,}", "", *reduced]
    made.add_row("", "lower bound", *bound, style="dim", end_section=True)
    for figures in sorted(many, key=lambda figures: _cost(figures) if by == "rounds" else _cost(figures)[::-1]):
        best = not any(_beats(_cost(other), _cost(figures)) for other in many)
        payloads = f"{_volume(figures) / size:.4g}" if size else ""
        reduced = [f"{figures.most('bytes_reduced'):,}"] * reduces
        made.add_row(
            "*" if best else "", figures.schedule.name, f"{figures.rounds:,}", f"{figures.depth:,}",
            f"{figures.most('messages_sent'):,}", f"{_volume(figures):,}", payloads, *reduced)
    made.caption = (f"Of the busiest rank: messages sent, and bytes sent or received, whichever are more. Ordered by {by}. "
                    "*: no other takes fewer rounds without more bytes, or fewer bytes without more rounds.")
    made.caption_justify = "left"
    return made


def _cost(figures: Figures) -> tuple[int, int]:
    return figures.rounds, _volume(figures)


def _beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether one is better in something and worse in nothing."""
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def _volume(figures: Figures) -> int:
    """What the busiest rank sends or receives, whichever is more, in bytes."""
    return max(figures.most("bytes_sent"), figures.most("bytes_received"))


def _least(figures: Figures, size: int) -> dict[str, int]:
    """The lower bounds in rounds and bytes: some rank has at least its share, rounded up as bytes are whole."""
    from treering.readers.bounds import bounds

    least = bounds(figures.schedule.collective, figures.schedule.size)
    return {"rounds": least.rounds if size else 0, "volume": ceil(least.volume * size), "reduced": ceil(least.reduced * size)}


def _summary(figures: Figures, size: int) -> dict[str, Any]:
    """One row of a file."""
    schedule, total = figures.schedule, figures.total
    return {
        "collective": schedule.collective.name, "algorithm": schedule.name, "ranks": schedule.size, "root": schedule.case.root,
        "size": size, "rounds": figures.rounds, "depth": figures.depth,
        **{f"max_{kind}": figures.most(kind) for kind in KINDS},
        **{f"total_{kind}": getattr(total, kind) for kind in KINDS},
        **{f"bound_{name}": value for name, value in _least(figures, size).items()},
    }


def _details(figures: Figures, size: int) -> dict[str, Any]:
    return {**_summary(figures, size), "busiest_pair": figures.pair, "per_rank": figures.ranks}
