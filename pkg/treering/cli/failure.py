"""How a command ends when it fails, alone or as one of many ranks."""

from __future__ import annotations

import os
import sys
import time
import traceback
from typing import TYPE_CHECKING

import click

from treering.cli.exits import Exit, exit_code
from treering.core.errors import TreeringError
from treering.running.environment import is_first_rank

if TYPE_CHECKING:
    from mpi4py import MPI

PATIENCE = 1.0
"""Seconds for which a rank that failed lets rank 0 say the same first."""

DELIVERY = 0.3
"""Seconds between a message and the abort: MPICH's launcher drops what it has not yet passed on."""


def report(error: click.ClickException | TreeringError) -> int:
    """Print an error that explains itself, once if it happened on all ranks, and return its exit code.

    Where MPI runs on several ranks this does not return: the others may wait for this rank for ever, so the job is aborted.
    """
    code = exit_code(error) if isinstance(error, TreeringError) else Exit.USAGE
    world = _running_world()
    first = is_first_rank()
    if not first:
        # Launchers end the job when one rank fails: if rank 0 fails too, it must be able to say so before.
        time.sleep(PATIENCE)
    # Before MPI is up all ranks have seen the same command line and nothing else, and so failed alike.
    if world or first:
        _print(error, world)
    if world:
        _abort(world, code)
    return code


def report_bug(error: Exception) -> int:
    """Print the traceback of an unforeseen error with its rank, and abort the job if there are others."""
    world = _running_world()
    on = f" on rank {world.rank} of {world.size}" if world else ""
    sys.stdout.flush()
    # One write, so that the tracebacks of several ranks do not mix.
    sys.stderr.write(f"treering: unforeseen error{on}:\n{''.join(traceback.format_exception(error))}")
    sys.stderr.flush()
    if world:
        _abort(world, Exit.WRONG)
    return Exit.WRONG


def reader_left() -> int:
    """End quietly when the program that read our output has gone, as in ``treering list | head``."""
    # Python would complain at exit when it flushes what nobody reads.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.READER_LEFT


def _print(error: click.ClickException | TreeringError, world: MPI.Intracomm | None = None) -> None:
    sys.stdout.flush()
    on = f" (rank {world.rank} of {world.size})" if world else ""
    if isinstance(error, click.UsageError):
        error.show()
    else:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        print(f"treering: error{on}: {message}", file=sys.stderr, flush=True)


def _abort(world: MPI.Intracomm, code: int) -> None:
    time.sleep(DELIVERY)
    world.Abort(code)


def _running_world() -> MPI.Intracomm | None:
    """Return the world that this process is a rank of, if MPI is up and there are others; never loads MPI."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return None
    world: MPI.Intracomm = mpi.COMM_WORLD
    return world if world.size > 1 else None
