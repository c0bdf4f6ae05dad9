"""How a command with ``--run`` gets its ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from treering.cli.main import ARGUMENTS
from treering.core.errors import Refused
from treering.running.environment import launcher, require_full_world
from treering.running.launch import relaunch

if TYPE_CHECKING:
    from mpi4py import MPI


def enter_world(ranks: int | None = None) -> MPI.Intracomm:
    """Return MPI.COMM_WORLD of as many ranks as asked for, launching them first if this process was started alone.

    Started under a launcher, the world is the launcher's. Started alone with ``ranks`` above one, this process becomes the
    launcher of the same command line: nothing after this call runs here, it runs on every rank.

    Parameters
    ----------
    ranks
        How many ranks the command needs, or None for what the launcher gives.

    Raises
    ------
    Refused
        If the launcher gave another number of ranks.
    LaunchError
        If the ranks cannot be started, or did not find each other.
    """
    start = launcher()
    if start is None and ranks and ranks > 1:
        relaunch(ranks, click.get_current_context().meta[ARGUMENTS])
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    require_full_world(world.size)
    if ranks and world.size != ranks:
        raise Refused(f"this needs {ranks} ranks, but {start.name if start else 'MPI'} started {world.size}")
    return world
