"""``treering step``: what does one training step communicate, and how long does that take here?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treering.cli.exits import Exit
from treering.cli.options import results_options
from treering.cli.world import enter_world

if TYPE_CHECKING:
    from mpi4py import MPI

    from treering.training.job import Job
    from treering.training.ledger import StepLedger
    from treering.training.traffic import Outcome


@click.command(epilog="Example: treering step examples/gpt2.json --layout dp=2,tp=2 --run")
@click.argument("config", type=click.Path(path_type=Path), metavar="CONFIG.json")
@click.option("--layout", required=True, metavar="AXES", help="Ranks along each axis: fsdp=4, or dp=2,tp=2,pp=2.")
@click.option("-n", "ranks", type=click.IntRange(1), help="Number of ranks, for a size of auto: dp=auto,tp=2.")
@click.option("--seq", type=int, help="Tokens of a sequence; by default the model's longest, but at most 8192.")
@click.option("--micro-batch", type=int, default=1, show_default=True, help="Sequences a rank works on at a time.")
@click.option("--microbatches", type=int, help="Micro-batches in a step; by default one for every pipeline stage.")
@click.option("--dtype", default="bf16", show_default=True, help="Of weights and activations.")
@click.option("--grad-dtype", help="In which gradients are reduced; by default as --dtype (Megatron-LM: fp32).")
@click.option("--reshard/--no-reshard", default=True, show_default=True,
              help="Whether FSDP's layers give up their weights between forward and backward.")
@click.option("--vocab-multiple", type=int, default=1, show_default=True,
              help="Pad the vocabulary to a multiple of this times tp (Megatron-LM: 128).")
@click.option("--run", is_flag=True, help="Send the messages over MPI, beside MPI's own collectives.")
@click.option("--sample", is_flag=True, help="With --run: send each distinct message once and scale the time.")
@click.option("--iters", type=click.IntRange(1), default=1, show_default=True, help="With --run: number of steps.")
@results_options
def command(config: Path, layout: str, ranks: int | None, run: bool, sample: bool, iters: int, json: Path | None,
            force: bool, **sizes: Any) -> Exit:
    """Compose the communication of one training step of the model that CONFIG.json describes.

    Printed is every message of the step with its exact bytes. With --run they are sent, on as many ranks as the layout
    has, and the bytes that were sent are checked against the ledger.
    """
    from treering.cli.step_report import print_report, results
    from treering.training.job import Job, Settings
    from treering.training.mesh import Mesh, parse_layout
    from treering.training.model import read_model
    from treering.training.step import trace

    if (sample or iters > 1) and not run:
        raise click.UsageError("--sample and --iters are about --run")
    job = Job(read_model(config), Mesh.of(parse_layout(layout, ranks)), Settings(**sizes))
    ledger = trace(job)
    outcome = None
    if run:
        world = enter_world(job.mesh.size)
        outcome = _run(job, world, ledger, sample, iters)
        if world.rank > 0:
            return _exit(outcome)
    print_report(config.stem, job, ledger, outcome)
    if json:
        from treering.measuring.results import header, write_json

        write_json(json, {**header(), **results(config.stem, job, ledger, outcome)}, force=force)
    return _exit(outcome)


def _run(job: Job, world: MPI.Intracomm, ledger: StepLedger, sample: bool, iters: int) -> Outcome:
    from treering.cli.layout import progress
    from treering.running.comm import Comm
    from treering.training.traffic import run_traffic

    own = (ledger.sampled() if sample else ledger).of_stage(job.mesh.coordinates(world.rank)["pp"]).ledger
    with progress("sending", own.count() * iters, shown=world.rank == 0) as advance:
        return run_traffic(job, world, ledger, Comm, sample=sample, iters=iters, progress=advance)


def _exit(outcome: Outcome | None) -> Exit:
    return Exit.OK if outcome is None or outcome.traced_bytes == outcome.ledger_bytes else Exit.WRONG
