"""The world that a launcher gives is the one that treering sees."""

import click
import pytest

from treering.cli.main import ARGUMENTS
from treering.cli.world import enter_world
from treering.core.errors import Refused
from treering.running.environment import is_first_rank, launcher, require_full_world

pytestmark = pytest.mark.mpi


def test_launcher_and_mpi_agree(comm):
    start = launcher()
    assert start is not None
    assert (start.ranks, start.rank) == (comm.size, comm.rank)
    # All are on this host, but not always counted in the order of their ranks.
    assert sorted(comm.allgather(start.local_rank)) == list(range(comm.size))
    assert is_first_rank() == (comm.rank == 0)


def test_a_full_world_is_accepted(comm):
    require_full_world(comm.size)


def test_a_command_uses_the_world_it_was_started_in(comm):
    with click.Context(click.Command("verify")) as context:
        context.meta[ARGUMENTS] = ()
        assert enter_world(comm.size).size == enter_world().size == comm.size


def test_another_number_of_ranks_than_started_is_refused_on_every_rank(comm):
    with pytest.raises(Refused, match=f"needs {comm.size + 1} ranks, but .* started {comm.size}"):
        enter_world(comm.size + 1)
