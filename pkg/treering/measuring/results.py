"""Results as files: a header that says how they came about, JSON and CSV that are never overwritten silently."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from treering import __version__
from treering.core.errors import Refused

# What changes how MPI runs. Never the whole environment: it holds people's secrets.
ENVIRONMENT_NAMES = frozenset({
    "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS", "SLURM_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND", "SLURM_STEP_NUM_TASKS",
})
ENVIRONMENT_PREFIXES = ("OMPI_MCA_", "PRTE_MCA_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "UCX_", "FI_", "TREERING_")


def header(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Say under which circumstances results came about.

    Parameters
    ----------
    arguments
        The command line; by default that of this process.

    Returns
    -------
    dict
        Version, command line, date, Python, machine, the MPI library (None if MPI is not loaded) and the variables that
        change how MPI runs.
    """
    command = sys.argv if arguments is None else ["treering", *arguments]
    return {
        "treering": __version__,
        "command": shlex.join(command),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "mpi": mpi_library(),
        "environment": {name: value for name, value in sorted(environ.items()) if _allowed(name)},
    }


def mpi_library() -> str | None:
    """Name the MPI library and its version, in one line; None if MPI is not loaded."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi.Get_library_version().strip("\0\n ").splitlines()[0] if mpi else None


def write_json(path: Path, payload: Any, *, force: bool = False) -> None:
    """Write results as JSON, all or nothing.

    Parameters
    ----------
    path
        Where to; its folder must exist.
    payload
        Anything made of dicts, lists, text and numbers; dataclasses, tuples, paths and numpy numbers are understood too.
    force
        Whether to replace a file that exists.

    Raises
    ------
    Refused
        If the file exists or cannot be written.
    """
    # JSON has no nan: a result that is not a number must say so as None.
    text = json.dumps(payload, indent=2, default=_plain, allow_nan=False, ensure_ascii=False)
    _write(path, text + "\n", force)


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], *, force: bool = False) -> None:
    """Write results as CSV, all or nothing: one row for each mapping, the columns named by the first."""
    rows = list(rows)
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    _write(path, text.getvalue(), force)


def _write(path: Path, text: str, force: bool) -> None:
    if path.exists() and not force:
        raise Refused(f"{path} exists and is not overwritten; --force does it")
    try:
        # A folder of its own on the same file system, so that no half-written file ever has the final name.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".treering-") as folder:
            temporary = Path(folder, path.name)
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error}") from error


def _allowed(name: str) -> bool:
    # Intel MPI describes the processor to its own ranks in dozens of these.
    return name in ENVIRONMENT_NAMES or (name.startswith(ENVIRONMENT_PREFIXES) and not name.startswith("I_MPI_INFO_"))


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it knows."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (set, frozenset, range)):
        return sorted(value)
    if hasattr(value, "tolist"):
        # numpy's numbers and arrays, without importing numpy
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
