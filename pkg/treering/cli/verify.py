"""``treering verify``: prove algorithms; with ``--run``, check them against MPI's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treering.cli.exits import Exit
from treering.cli.options import ALGORITHM, COLLECTIVE, RANKS, SIZES, file_option, own_algorithms, results_options

if TYPE_CHECKING:
    from rich.table import Table

    from treering.core.algorithm import Algorithm
    from treering.core.collective import Collective
    from treering.readers.certificate import Certificate
    from treering.readers.sweep import Fault, Proof, Subject

SIZES_PROVED = tuple(range(1, 65))
REFRESH = 0.1
"""Seconds between two pictures of the progress bar."""


@click.command(epilog="Examples: treering verify allreduce ring -n 1-64; treering verify --run -n 4")
@click.argument("collective", type=COLLECTIVE, required=False, is_eager=True)
@click.argument("algorithm", type=ALGORITHM, required=False)
@click.option("-n", "ranks", type=RANKS, help="Numbers of ranks, 1-64 unless given; with --run, one number.")
@click.option(
    "--roots", type=click.Choice(["some", "all"]), default="some", show_default=True,
    help="Prove all roots, or on more than 16 ranks only the first, the middle and the last.")
@click.option("--run", is_flag=True, help="Run the algorithms over MPI and compare with MPI's own collectives and numpy.")
@click.option("-b", "sizes", type=SIZES, help="With --run: bytes of the payload, e.g. 0,1,17,1K,1M.")
@click.option("--dtype", "dtypes", default="float32", show_default=True, help="With --run: datatypes, a list or 'all'.")
@click.option("--op", "ops", default="sum", show_default=True, help="With --run: operators, a list or 'all'.")
@click.option("--ship", is_flag=True, hidden=True, help="Maintainers: prove the whole table and write certificates.json.")
@results_options
@file_option
def command(
    collective: Collective | None, algorithm: Subject | None, ranks: Sequence[int] | None, roots: str, run: bool,
    sizes: Sequence[int] | None, dtypes: str, ops: str, ship: bool, json: Path | None, force: bool,
) -> Exit:
    """Prove that an ALGORITHM computes its collective, or all algorithms of a COLLECTIVE, or of a FILE, or all there are.

    All ranks run symbolically: nothing is lost or counted twice, nothing waits forever, operands keep their order where that
    is claimed, and all ranks get the same bits. With --run the algorithms run over MPI instead, and every element is compared.
    """
    records = _table(collective) if collective or not own_algorithms() else own_algorithms()
    subjects = [algorithm] if algorithm else [(record, {}) for record in records]
    if run:
        from treering.cli.check import check_on_ranks

        return check_on_ranks(
            _one_number(ranks), [record.at(**given) if given else record for record, given in subjects], sizes,
            dtypes.split(","), ops.split(","), json, force)
    if ship:
        return _ship()
    proofs = _prove(subjects, ranks or SIZES_PROVED, roots)
    from treering.readers.certificate import certify, keep

    keep(certify(proofs))
    if json:
        from treering.measuring.results import header, write_json

        write_json(json, {**header(), "proofs": [_row(proof) for proof in proofs]}, force=force)
    return Exit.WRONG if any(proof.fault for proof in proofs) else Exit.OK


def _prove(subjects: Sequence[Subject], ranks: Sequence[int], roots: str) -> list[Proof]:
    """Prove, and print what was proved and what failed."""
    from treering.cli.layout import console
    from treering.readers.sweep import all_roots, count_cases, prove, some_roots

    which = all_roots if roots == "all" else some_roots
    cases = count_cases(subjects, ranks, which)
    start = time.perf_counter()
    with _progress(cases) as advance:
        proofs = list(prove(subjects, ranks, which, progress=advance))
    console().print(_report(proofs))
    for proof in proofs:
        if proof.fault:
            _print_flaw(proof, proof.fault)
    failed = sum(1 for proof in proofs if proof.fault)
    elapsed = time.perf_counter() - start
    outcome = f"{failed} WRONG" if failed else "all proved"
    click.echo(f"{len(proofs)} algorithm{'s' * (len(proofs) != 1)}, {cases} cases in {elapsed:.1f} s: {outcome}")
    return proofs


def _report(proofs: Sequence[Proof]) -> Table:
    from treering.cli.layout import table
    from treering.readers.ranges import spelled
    from treering.readers.sweep import SMALL

    rows = table("collective", "algorithm", "proved on ranks", "roots", "seconds", numbers=("seconds",))
    for proof in proofs:
        every = all(len(proof.roots(size)) == size for size in proof.sizes)
        roots = "" if not proof.algorithm.collective.rooted else "all" if every else f"all up to {SMALL} ranks, then 3"
        sizes = spelled(proof.sizes) or "none"
        wrong = f"[red]; wrong on {proof.fault.size}[/red]" if proof.fault else ""
        rows.add_row(str(proof.algorithm.collective), proof.name, sizes + wrong, roots, f"{proof.seconds:.1f}")
    return rows


def _print_flaw(proof: Proof, fault: Fault) -> None:
    """Say what is wrong, and draw the schedule of the smallest failing case up to the place where it is."""
    from treering.readers.show import text

    click.echo(f"WRONG: {proof.flaw}\n")
    schedule = proof.algorithm.schedule(fault.size, fault.root, **proof.parameters)
    click.echo(text(schedule, mark=(fault.rank, fault.round)))


def _row(proof: Proof) -> dict[str, Any]:
    fault = proof.fault._asdict() | {"message": str(proof.flaw)} if proof.fault else None
    rooted = proof.algorithm.collective.rooted
    roots = {size: list(proof.roots(size)) for size in proof.sizes} if rooted else None
    return {
        "collective": str(proof.algorithm.collective), "algorithm": proof.name, "sizes": proof.sizes, "roots": roots,
        "seconds": proof.seconds, "fault": fault}


def _ship() -> Exit:
    """Prove what the shipped certificates do not cover as the sources are now, and write them anew.

    All roots are proved with default parameters, and some with the other values that are chosen for a payload.
    """
    from treering.readers.certificate import SHIPPED, certify, named, read, variants, write

    table: list[Subject] = [(record, {}) for record in _table(None)]
    varied: list[Subject] = [(record, given) for record, _ in table for given in variants(record)]
    shipped = read(SHIPPED)
    fresh = {named(*one): shipped[named(*one)] for one in (*table, *varied) if _is_fresh(shipped.get(named(*one)), *one)}
    stale = [[one for one in subjects if named(*one) not in fresh] for subjects in (table, varied)]
    proofs = [*_prove(stale[0], SIZES_PROVED, "all"), *_prove(stale[1], SIZES_PROVED, "some")]
    write(SHIPPED, fresh | dict(certify(proofs)))
    return Exit.WRONG if any(proof.fault for proof in proofs) else Exit.OK


def _is_fresh(certificate: Certificate | None, record: Algorithm, given: Mapping[str, int]) -> bool:
    """Whether a certificate is of the present source, and covers all that is to be shipped."""
    from treering.readers.source import fingerprint

    if certificate is None or certificate.source != fingerprint(record):
        return False
    roots = certificate.all_roots | certificate.some_roots if given else certificate.all_roots
    return roots >= {size for size in SIZES_PROVED if record.why_not(size) is None}


def _table(collective: Collective | None) -> list[Algorithm]:
    from treering.table import algorithms_of, collectives

    return [record for one in ([collective] if collective else collectives()) for record in algorithms_of(one)]


def _one_number(ranks: Sequence[int] | None) -> int | None:
    if ranks and len(ranks) > 1:
        raise click.UsageError("with --run, -n is one number of ranks")
    return ranks[0] if ranks else None


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], object]]:
    """A bar, if there is a terminal; yields what is called with how much more is done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from treering.cli.layout import console

    # Without a thread that refreshes it: proofs fork processes.
    columns = (TextColumn("proving"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(), transient=True, auto_refresh=False, disable=not console().is_terminal) as bar:
        task, shown = bar.add_task("", total=total), 0.0

        def advance(cases: int) -> None:
            nonlocal shown
            bar.advance(task, cases)
            if time.monotonic() - shown > REFRESH:
                bar.refresh()
                shown = time.monotonic()

        yield advance
