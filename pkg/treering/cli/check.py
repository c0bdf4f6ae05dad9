"""What ``treering verify --run`` does: run the algorithms over MPI, compare, and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from treering.cli.exits import Exit
from treering.cli.layout import console, progress, size_text, table
from treering.cli.world import enter_world
from treering.core.algorithm import Algorithm
from treering.core.errors import Refused, UnknownName

if TYPE_CHECKING:
    from treering.measuring.check import Outcome

DEFAULT_SIZES = (0, 1, 17, 1024, 64 * 1024, 1024 * 1024)
"""Bytes: nothing, less than an element, fewer elements than ranks, and sizes in which every part is cut."""

FEW = 3
"""How many names are given of a long list."""


def check_on_ranks(
    ranks: int | None, algorithms: Sequence[Algorithm], sizes: Sequence[int] | None, dtypes: Sequence[str],
    ops: Sequence[str], json: Path | None = None, force: bool = False,
) -> Exit:
    """Run the checks on every rank, print the report on rank 0, and say how it ended."""
    from treering.measuring.inputs import DATATYPES, OPERATORS

    sizes, dtypes, ops = sizes or DEFAULT_SIZES, _named(dtypes, DATATYPES, "datatype"), _named(ops, OPERATORS, "operator")
    world = enter_world(ranks)
    from treering.measuring.check import check
    from treering.running.comm import Comm

    start = perf_counter()
    with progress("checking", len(algorithms), shown=world.rank == 0) as advance:
        outcomes = check(Comm(world), algorithms, sizes, dtypes, ops, advance)
    if world.rank == 0:
        _print(algorithms, outcomes, world.size, sizes, dtypes, ops, perf_counter() - start)
        _print_left_out(algorithms, world.size)
        if json:
            from treering.measuring.results import header, write_json

            settings = {"ranks": world.size, "bytes": sizes, "dtypes": dtypes, "ops": ops}
            write_json(json, {**header(), **settings, "results": outcomes}, force=force)
    if not any(outcome.cases for outcome in outcomes):
        raise Refused("nothing was checked: all was left out, for the reasons above")
    return Exit.OK if all(outcome.right for outcome in outcomes) else Exit.WRONG


def _named(given: Sequence[str], known: Sequence[str], what: str) -> Sequence[str]:
    """The names that were given, all of them known."""
    if "all" in given:
        return known
    if unknown := [name for name in given if name not in known]:
        raise UnknownName(f"no {what} is called {unknown[0]!r}; there are {', '.join(known)}, or all")
    return given


def _print(
    algorithms: Sequence[Algorithm], outcomes: Sequence[Outcome], ranks: int, sizes: Sequence[int], dtypes: Sequence[str],
    ops: Sequence[str], seconds: float,
) -> None:
    from treering.measuring.results import mpi_library

    out = console()
    what = "; ".join([", ".join(dtypes), ", ".join(ops), f"bytes {', '.join(map(size_text, sizes))}"])
    out.print(f"{ranks} ranks, {mpi_library()}; {what}")
    numbers = ("calls", "elements", "wrong")
    rows = table("collective", "algorithm", *numbers, "bits", "MPI's own", numbers=numbers)
    for outcome in outcomes:
        rows.add_row(
            outcome.collective, outcome.algorithm, str(outcome.cases), str(outcome.elements),
            f"[red]{outcome.wrong}[/red]" if outcome.wrong else "0",
            f"[red]differ in {outcome.differing}[/red]" if outcome.differing else "same", _own(outcome))
    out.print(rows)
    for outcome in outcomes:
        if outcome.example:
            out.print(f"[red]WRONG[/red] {outcome.collective} {outcome.algorithm}: {outcome.example}")
    _print_differences(out, outcomes)
    cases, elements, wrong = (sum(getattr(o, name) for o in outcomes) for name in ("cases", "elements", "wrong"))
    out.print(_proved(algorithms, ranks))
    many = f"{len(outcomes)} algorithm{'s' * (len(outcomes) != 1)}, {cases} calls on {ranks} ranks"
    out.print(
        f"{many}, {elements} elements compared with numpy and MPI's own in {seconds:.1f} s: [bold]{wrong} wrong[/bold]")


def _proved(algorithms: Sequence[Algorithm], ranks: int) -> str:
    """Say for which algorithms there is a certificate."""
    from treering.readers.certificate import is_proved

    able = [algorithm for algorithm in algorithms if algorithm.why_not(ranks) is None]
    unproved = [str(algorithm) for algorithm in able if not is_proved(algorithm, ranks)]
    if unproved:
        names = ", ".join(unproved[:FEW]) + (f" and {len(unproved) - FEW} more" if len(unproved) > FEW else "")
        return f"Not yet proved for {ranks} ranks: {names}; treering verify -n {ranks} proves them."
    return f"Proved for {ranks} ranks: all {len(able)}."


def _own(outcome: Outcome) -> str:
    """How MPI's own result compares with numpy's."""
    if not outcome.mpi:
        return "n/a"
    differs = sum(outcome.mpi.values())
    return f"differs from numpy in {differs}" if differs else "agrees"


def _print_differences(out: Any, outcomes: Sequence[Outcome]) -> None:
    """Name the operations in which MPI's own result is not numpy's: that is no fault of ours, but should be known."""
    differing = {name: count for outcome in outcomes for name, count in outcome.mpi.items() if count}
    if differing:
        names = ", ".join(differing)
        out.print(f"MPI's own result differs from numpy's, to the last bit or the bound of rounding, in {names}.")
    undefined = sorted({name for outcome in outcomes for name in outcome.undefined})
    if undefined:
        out.print(f"Not defined, so left out: {', '.join(undefined)}.")


def _print_left_out(algorithms: Sequence[Algorithm], ranks: int) -> None:
    for algorithm in algorithms:
        if reason := algorithm.why_not(ranks):
            console().print(f"Left out: {reason}.")
