"""How a training step's ledger is printed, and written as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rich.table import Table

from treering.cli import layout
from treering.training.variants import groups, variants
from treering.training.volume import ALGORITHMS

if TYPE_CHECKING:
    from treering.training.job import Job
    from treering.training.ledger import Row, StepLedger
    from treering.training.traffic import Outcome

def facts(name: str, job: Job) -> dict[str, Any]:
    """Gather what a step's header says."""
    model, mesh = job.model, job.mesh
    return {
        "model": name,
        "family": model.architecture.family,
        "parameters": model.parameter_count,
        "active_parameters": model.active_count,
        "layout": {axis: mesh.sizes[axis] for axis in mesh.parallel_axes},
        "order": [axis for axis, _ in mesh.axes],
        "ranks": mesh.size,
        "seq": job.seq,
        "micro_batch": job.micro_batch,
        "microbatches": job.microbatches,
        "global_batch": job.global_batch,
        "dtype": job.dtype,
        "grad_dtype": job.grad_dtype,
        "vocab": job.vocab,
        "variants": dict(variants(job)),
    }


def results(name: str, job: Job, ledger: StepLedger, outcome: Outcome | None) -> dict[str, Any]:
    """Gather everything for a file; bytes and seconds."""
    times = outcome.times if outcome else {}
    rows = [{**vars(row), "seconds": vars(times[row.role]) if row.role in times else None,
             "mpi_stands_in": stands_in(row)} for row in ledger.rows()]
    stages = [
        {"stages": one.stages, "ranks": one.ranks, "parameters": one.parameters, "sent": one.ledger.sent_bytes()}
        for one in ledger.classes
    ]
    run = {name: value for name, value in vars(outcome).items() if name != "times"} if outcome else None
    return {"step": facts(name, job), "algorithms": ALGORITHMS, "stages": stages, "rows": rows,
            "total": ledger.total_bytes(), "run": run}


def print_report(name: str, job: Job, ledger: StepLedger, outcome: Outcome | None) -> None:
    """Print header, ledger and totals and, after a run, what it showed."""
    console = layout.console()
    parts = [_header(name, job, ledger), _ledger(ledger), _totals(ledger)]
    if outcome:
        parts.append(_times(ledger, outcome))
    for part in parts:
        console.print(part)
        console.print()
    if outcome:
        for line in _conclusion(ledger, outcome):
            console.print(line)


def _header(name: str, job: Job, ledger: StepLedger) -> Table:
    model, mesh = job.model, job.mesh
    table = Table.grid(padding=(0, 2, 0, 0))
    active = f", {model.active_count:,} active for a token" if model.active_count < model.parameter_count else ""
    table.add_row("model", f"{name} ({model.architecture.family}): {model.parameter_count:,} parameters{active}")
    if job.vocab != model.architecture.vocab:
        table.add_row("", f"vocabulary padded from {model.architecture.vocab} to {job.vocab} rows")
    axes = ", ".join(f"{axis}={mesh.sizes[axis]}" for axis in mesh.parallel_axes) or "one rank"
    table.add_row("layout", f"{axes}: {mesh.size} ranks; order, fastest first: {', '.join(a for a, _ in mesh.axes)}")
    for axis in mesh.parallel_axes:
        table.add_row(f"  {axis}", groups(job, axis))
    table.add_row("weights", "; ".join(f"{_stages(one.stages, job)}{one.parameters:,} a rank"
                                       for one in ledger.classes) + " before sharding over data axes")
    table.add_row("step", f"seq {job.seq}, micro-batch {job.micro_batch}, microbatches {job.microbatches}, "
                          f"global batch {job.global_batch}; {job.dtype}, gradients {job.grad_dtype}")
    for axis, variant in variants(job):
        table.add_row("counted" if axis == next(variants(job))[0] else "", f"{axis}: {variant}")
    table.add_row("", "without the inputs' broadcast within tp and the first weights'")
    table.add_row("", f"bytes sent with {', '.join(f'{how} {what}' for what, how in ALGORITHMS.items())}")
    table.add_row("proved", _proof(ledger))
    return table


def _proof(ledger: StepLedger) -> str:
    """Say for which of the groups the algorithms have been proved."""
    from treering.readers.certificate import is_proved
    from treering.table import find_algorithm, find_collective

    used = {(m.operation, m.size) for one in ledger.classes for m in one.ledger.times if m.operation in ALGORITHMS}
    unproved = [
        f"{operation} on {size} ranks" for operation, size in sorted(used)
        if not is_proved(find_algorithm(find_collective(operation), ALGORITHMS[operation])[0], size)]
    if unproved:
        return f"not yet: {', '.join(unproved)}; treering verify proves them"
    return f"all algorithms, for groups of {', '.join(map(str, sorted({size for _, size in used})))} ranks" if used else "-"


def _columns(first: Iterable[str], numbers: Iterable[str]) -> Table:
    """Make a table whose numbers are never broken; where the terminal is narrow, the tensors' names are."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in first:
        table.add_column(column, overflow="fold", no_wrap=column != "tensor")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _by_phase(table: Table, ledger: StepLedger, cells: Callable[[Row], Iterable[str]]) -> Table:
    phase = ""
    for row in ledger.rows():
        if row.phase != phase:
            phase = row.phase
            table.add_row(phase)
        table.add_row(f"  {row.operation} {row.axis}", f"{row.label}, {row.dtype}", *cells(row))
    return table


def _ledger(ledger: StepLedger) -> Table:
    table = _columns(("operation, axis", "tensor"), ("times", "sent/rank, B", "sent in all, B"))
    return _by_phase(table, ledger, lambda row: (f"{row.times:,}", f"{row.sent:,}", f"{row.total:,}"))


def _times(ledger: StepLedger, outcome: Outcome) -> Table:
    table = _columns(("operation, axis", "tensor"), ("treering, s", "MPI's own, s", "ratio"))

    def cells(row: Row) -> Iterable[str]:
        times = outcome.times[row.role]
        if times.mpi is None:
            return f"{times.treering:.4f}", "the same ", ""
        mark = "*" if stands_in(row) else " "
        return f"{times.treering:.4f}", f"{times.mpi:.4f}{mark}", f"{times.treering / times.mpi:.2f}"

    return _by_phase(table, ledger, cells)


def stands_in(row: Row) -> bool:
    """Whether MPI's own collective has to reduce something else of the same size: MPI has no sum of 16-bit floats."""
    return row.operation in ("all-reduce", "reduce-scatter") and row.dtype in ("bf16", "fp16")


def _totals(ledger: StepLedger) -> Table:
    table = _columns(("total",), ("messages/rank", "sent/rank, B", "sent in all, B"))
    for axis in (*dict.fromkeys(row.axis for row in ledger.rows()), None):
        table.add_row(axis or "all",
                      f"{max(one.ledger.count(axis) for one in ledger.classes):,}",
                      f"{max(one.ledger.sent_bytes(axis) for one in ledger.classes):,}", f"{ledger.total_bytes(axis):,}")
    return table


def _conclusion(ledger: StepLedger, outcome: Outcome) -> Iterable[str]:
    if outcome.sample:
        yield "sampled: each distinct message was sent once, and its time multiplied"
    if outcome.cut:
        yield f"messages beyond {outcome.largest_piece:,} B were sent in pieces, to bound the memory"
    yield ("seconds a step, slowest rank" + (f", median of {outcome.iters} steps" if outcome.iters > 1 else "")
           + "; nothing is computed and nothing overlaps; sends include waiting for the neighbour")
    if any(stands_in(row) for row in ledger.rows()):
        yield "*MPI has no sum of 16-bit floats: its own collective adds int16 of the same size, which is less work"
    steps = f" in {outcome.iters} steps" if outcome.iters > 1 else ""
    if outcome.traced_bytes == outcome.ledger_bytes:
        yield f"bytes sent{steps} = ledger: {outcome.traced_bytes:,} B"
    else:
        yield f"WRONG: {outcome.traced_bytes:,} B were sent{steps}, the ledger says {outcome.ledger_bytes:,} B"


def _stages(stages: tuple[int, ...], job: Job) -> str:
    if job.mesh.sizes["pp"] == 1:
        return ""
    return f"stage {stages[0]}: " if len(stages) == 1 else f"stages {stages[0]}-{stages[-1]}: "
