"""What tests under mpiexec share: one report for all ranks, and no run that hangs.

Every rank runs pytest. Rank 0 reports; another rank reports only if a test fails there. After each test the ranks wait for
each other, so that a test that fails on one rank and leaves the others waiting ends the run instead of hanging it.
"""

from __future__ import annotations

import faulthandler
import io
import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mpi4py import MPI

    from treering.running.comm import Comm

TEST_LIMIT = 120.0
"""Seconds after which a test that has not ended prints where each thread stands, and ends the run."""

GRACE = 10.0
"""Seconds that a rank whose test has failed gives the others to end theirs too."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Plain pytest must work without any MPI, so these files are not even imported.
    return None if config.getoption("with_mpi") else True


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("with_mpi"):
        from mpi4py import MPI

        config.pluginmanager.register(Ranks(MPI.COMM_WORLD, config))


@pytest.fixture
def comm() -> Iterator[MPI.Intracomm]:
    """All ranks, with no message of another test under way."""
    from mpi4py import MPI

    private = MPI.COMM_WORLD.Dup()
    yield private
    private.Free()


@pytest.fixture
def ours(comm: MPI.Intracomm) -> Comm:
    """The same, with treering's collectives."""
    from treering.running.comm import Comm

    return Comm(comm)


class Ranks:
    """Keeps the ranks of a test run together."""

    def __init__(self, world: MPI.Intracomm, config: pytest.Config) -> None:
        self.world = world
        self.meeting = world.Dup()
        self.failure: pytest.TestReport | None = None
        self.status = 0
        self.log = io.StringIO()
        # pytest numbers its temporary folders and removes old ones, which ranks in one place do under each other's hands.
        self.folder = tempfile.TemporaryDirectory(prefix=f"treering-rank-{world.rank}-", ignore_cleanup_errors=True)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = self.folder.name
        # pytest captures what tests write to standard error; these messages must get out.
        self.stderr = os.fdopen(os.dup(sys.stderr.fileno()), "w")
        if world.rank:
            config.pluginmanager.unregister(name="terminalreporter")
            config.pluginmanager.register(pytest.TerminalReporter(config, self.log), "terminalreporter")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        faulthandler.dump_traceback_later(TEST_LIMIT, exit=True, file=self.stderr)
        self.failure = None
        try:
            result = yield
            self._meet()
        finally:
            faulthandler.cancel_dump_traceback_later()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failure = report

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.status = exitstatus

    def pytest_unconfigure(self) -> None:
        self.folder.cleanup()
        if self.world.rank and self.status:
            self._say(self.log.getvalue())

    def _meet(self) -> None:
        """Wait until all ranks have ended the test; if it failed here, only so long as they may end by themselves."""
        arrival = self.meeting.Ibarrier()
        deadline = time.monotonic() + GRACE
        while not arrival.Test():
            if self.failure and time.monotonic() > deadline:
                self._say(f"{self.failure.nodeid} failed here and left others waiting:\n{self.failure.longreprtext}\n")
                # MPICH's launcher drops what it has not yet passed on when a job aborts.
                time.sleep(0.3)
                self.world.Abort(1)
            time.sleep(0.001)

    def _say(self, text: str) -> None:
        self.stderr.write(f"\n===== rank {self.world.rank} of {self.world.size} =====\n{text}")
        self.stderr.flush()
