"""``treering show``: what a collective does, and how an algorithm does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treering.cli.options import ALGORITHM, COLLECTIVE, file_option, refuse_existing

if TYPE_CHECKING:
    from treering.core.algorithm import Algorithm, Schedule
    from treering.core.collective import Collective

PICTURES = (".html", ".svg", ".txt")


@click.command(epilog="Example: treering show allreduce ring -n 6 -o ring.html")
@click.argument("collective", type=COLLECTIVE, is_eager=True)
@click.argument("algorithm", type=ALGORITHM, required=False)
@click.option("-n", "ranks", type=click.IntRange(min=1), default=4, show_default=True, help="Number of ranks.")
@click.option("--root", type=click.IntRange(min=0), default=0, show_default=True, help="Root, of a rooted collective.")
@click.option("--width", type=click.IntRange(min=20), help="Columns of the text; by default those of the terminal.")
@click.option("--force", is_flag=True, is_eager=True, help="Overwrite a file that exists.")
@click.option(
    "-o", "output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), callback=refuse_existing,
    help=f"Draw to FILE, whose name ends in {', '.join(PICTURES)}: a page to step through, a picture, or text.")
@file_option
def command(
    collective: Collective, algorithm: tuple[Algorithm, dict[str, int]] | None, ranks: int, root: int, width: int | None,
    force: bool, output: Path | None,
) -> None:
    """Draw an ALGORITHM round by round: which block goes where, and what each rank holds after each round.

    Without an ALGORITHM, print what every rank holds before and after the COLLECTIVE.
    """
    if algorithm is None:
        if output:
            raise click.UsageError("a file needs an algorithm to draw; treering list names them")
        click.echo(_before_after(collective, ranks, root))
        return
    record, given = algorithm
    schedule = record.schedule(ranks, root, **given)
    if output is None:
        click.echo(_text(schedule, width))
        return
    if output.suffix not in PICTURES:
        raise click.BadParameter(f"{output} ends in none of {', '.join(PICTURES)}", param_hint="-o")
    _write(output, _drawers(width)[output.suffix](schedule))


def _before_after(collective: Collective, ranks: int, root: int) -> str:
    from treering.core.errors import Refused
    from treering.readers.show import before_after

    if root >= ranks:
        raise Refused(f"{collective}: root {root} is not one of the ranks 0 to {ranks - 1}")
    if root and not collective.rooted:
        raise Refused(f"{collective} has no root")
    return before_after(collective, ranks, root)


def _text(schedule: Schedule, width: int | None) -> str:
    from treering.readers.show import text

    return text(schedule, width)


def _drawers(width: int | None) -> dict[str, Callable[[Schedule], str]]:
    from treering.readers.show import html, svg

    return {".html": html, ".svg": svg, ".txt": lambda schedule: _text(schedule, width) + "\n"}


def _write(output: Path, drawn: str) -> None:
    from treering.core.errors import Refused

    try:
        output.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot write {output}: {error}") from error
