"""``treering doctor``: does MPI work here, and how are ranks started?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treering.cli.exits import Exit
from treering.cli.options import results_options

if TYPE_CHECKING:
    from rich.table import Table

    from treering.running.doctor import Finding


@click.command(epilog="Example: treering doctor --hostfile hostfiles/openmpi")
@click.option("--hostfile", type=click.Path(dir_okay=False, path_type=Path), help="Check a hostfile too.")
@results_options
def command(hostfile: Path | None, json: Path | None, force: bool) -> Exit:
    """Tell which MPI and launcher are here, whether they match, and what to type.

    MPI is asked in processes of their own, so that a broken one cannot harm. The exit code is 0 unless there is a problem.
    """
    from rich.console import Console

    from treering.running.doctor import LAUNCH_LINE, Status, examine

    console = Console()
    with console.status("asking MPI"):
        findings = list(examine(hostfile))
    console.print(_table(finding for finding in findings if finding.topic != LAUNCH_LINE))
    for finding in findings:
        if finding.topic == LAUNCH_LINE:
            # Not in the table, which would break the line that people copy.
            click.echo(f"\n{finding.topic}:\n  {finding.found}")
    if json:
        from treering.measuring.results import header, write_json

        rows = [vars(finding) | {"status": finding.status.value} for finding in findings]
        write_json(json, {**header(), "findings": rows}, force=force)
    return Exit.ENVIRONMENT if any(finding.status is Status.PROBLEM for finding in findings) else Exit.OK


def _table(findings: Iterable[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from treering.running.doctor import Status

    colours = {Status.OK: "green", Status.WARNING: "yellow", Status.PROBLEM: "bold red"}
    table = Table.grid(padding=(0, 2, 0, 0))
    for finding in findings:
        colour = colours[finding.status]
        found = Text(finding.found, overflow="fold")
        if finding.advice:
            found.append(f"\n{finding.advice}", style=colour)
        table.add_row(Text(finding.status.value, style=colour), finding.topic, found)
    return table
