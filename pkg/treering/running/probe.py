"""Asks MPI about itself and prints the answer as one line of JSON.

Run in a process of its own (``python -m treering.running.probe [--world]``), since a broken MPI crashes, hangs or exits.
Without ``--world`` MPI is loaded but not started.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

MARK = "treering-probe "
"""Stands before the answer, because MPI libraries print to the same stream."""


def main(with_world: bool) -> None:
    """Print what MPI says."""
    import mpi4py

    mpi4py.rc.initialize = with_world
    from mpi4py import MPI

    vendor, version = MPI.get_vendor()
    path = _loaded_library()
    answer: dict[str, Any] = {
        "vendor": vendor,
        "version": ".".join(map(str, version)),
        "text": MPI.Get_library_version().strip("\0\n ").splitlines()[0],
        "path": path,
    }
    if with_world:
        levels = {getattr(MPI, f"THREAD_{name}"): name for name in ("SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE")}
        answer |= {
            "rank": MPI.COMM_WORLD.rank,
            "size": MPI.COMM_WORLD.size,
            "thread_level": levels[MPI.Query_thread()],
            "cuda": _cuda_support(path),
        }
    print(MARK + json.dumps(answer), flush=True)


def _loaded_library() -> str | None:
    """Path of the libmpi that is loaded now, where the system tells (Linux)."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    paths = (line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/" in line)
    return next((path for path in paths if Path(path).name.startswith("libmpi.so")), None) or next(
        (path for path in maps.split() if Path(path).name.startswith("libmpi")), None)


def _cuda_support(path: str | None) -> bool | None:
    """Ask whether MPI takes pointers to GPU memory, by the function that Open MPI and MPICH share; None if it has none."""
    query = getattr(ctypes.CDLL(path), "MPIX_Query_cuda_support", None) if path else None
    return None if query is None else bool(query())


if __name__ == "__main__":
    main(with_world="--world" in sys.argv)
