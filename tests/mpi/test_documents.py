"""The examples of the documents, run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from treering import Comm
from treering.core import TABLE

sys.path.insert(0, str(Path(__file__).parents[1]))
from documents import ROOT, blocks, contributed, imported

if TYPE_CHECKING:
    from mpi4py import MPI

pytestmark = pytest.mark.mpi


def test_the_example_of_contributing_runs(comm: MPI.Intracomm, tmp_path: Path) -> None:
    imported(contributed(), tmp_path)
    record = TABLE.pop(("all-to-all", "tournament"))
    if record.why_not(comm.size):
        return
    parts = 10 * comm.rank + np.arange(comm.size)
    theirs = np.empty_like(parts)
    Comm(comm).Alltoall(parts, theirs, algorithm=record)
    assert (theirs == 10 * np.arange(comm.size) + comm.rank).all()


def test_the_first_example_prints_what_the_readme_says(comm: MPI.Intracomm, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "first.py"))
    printed = capsys.readouterr().out
    (shown,) = [block for block in blocks("README.md", "console") if "examples/first.py" in block]
    if comm.rank:
        assert printed == ""
    elif comm.size == 4:
        assert printed == shown.partition("\n")[2]
    else:
        assert printed.endswith(f"all-reduce ring: asked for; proved for {comm.size} ranks\n")


def test_the_plan_example_sends_what_it_says(comm: MPI.Intracomm, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "plan.py"))
    assert f"rank {comm.rank}: largest {comm.size - 1}, " in capsys.readouterr().out
