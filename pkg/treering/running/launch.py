"""Finding the launcher that belongs to the interpreter's own MPI, and starting ranks with it."""

from __future__ import annotations

import enum
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from treering.core.errors import LaunchError
from treering.running.environment import RANKS_VARIABLE, without_launcher
from treering.running.hosts import Host
from treering.running.machine import usable_cores
from treering.running.probe import MARK
from treering.running.slurm import allocation

PROBE_LIMIT = 60.0
"""Seconds within which a probe of MPI must answer; a cold file system is slow, a broken MPI never does."""


class Family(enum.Enum):
    """Kinds of MPI, each with its own launcher; the value is how both call themselves."""

    OPEN_MPI = "Open MPI"
    MPICH = "MPICH"
    INTEL = "Intel MPI"

    @classmethod
    def of_vendor(cls, vendor: str) -> Family | None:
        """Tell the family from the vendor's name as mpi4py gives it. MVAPICH and others are made from MPICH."""
        if vendor in ("MVAPICH", "MVAPICH2", "MPICH2", "MPICH3"):
            return cls.MPICH
        return next((family for family in cls if family.value == vendor), None)

    @classmethod
    def of_launcher(cls, version: str) -> Family | None:
        """Tell the family from what ``mpiexec --version`` prints."""
        signs = {"Open MPI": cls.OPEN_MPI, "OpenRTE": cls.OPEN_MPI, "prterun": cls.OPEN_MPI,
                 "Intel(R) MPI": cls.INTEL, "HYDRA": cls.MPICH}
        return next((family for sign, family in signs.items() if sign in version), None)

    @property
    def hostfile_flag(self) -> str:
        """The option by which the launcher takes a hostfile of its own style."""
        return "--hostfile" if self is Family.OPEN_MPI else "-f"


@dataclass(frozen=True)
class Library:
    """The MPI library that mpi4py loads."""

    vendor: str
    version: str
    text: str
    path: Path | None

    @property
    def family(self) -> Family | None:
        """Its family, or None if treering does not know how it is launched."""
        return Family.of_vendor(self.vendor)

    def __str__(self) -> str:
        return f"{self.vendor} {self.version}"


@dataclass(frozen=True)
class Mpiexec:
    """A launcher: its path and its family."""

    path: Path
    family: Family

    def line(self, ranks: int, program: Sequence[str], hosts: Iterable[Host] = ()) -> list[str]:
        """Write the command line that starts a program on some ranks, here or on the given hosts."""
        words = [str(self.path), "-n", str(ranks)]
        places = ",".join(map(str, hosts))
        if places:
            words += ["--host" if self.family is Family.OPEN_MPI else "-hosts", places]
        elif self.family is Family.OPEN_MPI and ranks > usable_cores() and allocation() is None:
            # Ranks that share a core must not be bound to it, and those that wait must let the others run.
            words += ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
        return [*words, *program]

    def environment(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the environment to start it in: ours, without what another launcher put there."""
        clean = without_launcher(environ)
        if self.family is Family.OPEN_MPI and os.geteuid() == 0:
            # It refuses to run as root unless told twice; containers and this machine's owner are root.
            clean |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return clean


@cache
def find_library() -> Library:
    """Ask a process of its own which MPI library mpi4py loads.

    Raises
    ------
    LaunchError
        If there is none, or it does not answer.
    """
    command = [sys.executable, "-m", "treering.running.probe"]
    try:
        done = subprocess.run(
            command, env=without_launcher(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_LIMIT)
    except subprocess.TimeoutExpired as error:
        raise LaunchError(f"loading MPI took longer than {PROBE_LIMIT:.0f} s") from error
    for answer in answers(done.stdout):
        path = Path(answer["path"]) if answer["path"] else None
        return Library(answer["vendor"], answer["version"], answer["text"], path)
    why = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    raise LaunchError(
        f"mpi4py cannot load an MPI library ({why[-1].strip()}); install one with pip install 'treering[mpich]', "
        "or load the site's module")


def answers(output: str) -> Iterator[dict[str, Any]]:
    """Pick the answers of `treering.running.probe` out of what was printed, by libraries and by several ranks in one line."""
    for text in output.split(MARK)[1:]:
        answer, _ = json.JSONDecoder().raw_decode(text)
        yield answer


def find_mpiexec(library: Library) -> Mpiexec:
    """Find the launcher that belongs to a library: beside it, then in this environment, then on the path.

    Raises
    ------
    LaunchError
        If no launcher of the library's family is found; the message names those that were seen.
    """
    if library.family is None:
        raise LaunchError(
            f"treering does not know how {library} is launched; start treering itself under its launcher, "
            f"e.g. srun -n 4 treering …")
    seen: list[str] = []
    for path in _candidates(library):
        family = family_of_mpiexec(path)
        if family is library.family:
            return Mpiexec(path, family)
        seen.append(f"{path} ({family.value if family else 'unknown'})")
    raise LaunchError(
        f"no mpiexec of {library} found; seen: {', '.join(seen) or 'none at all'}. "
        "Put the bin folder of that MPI on the PATH, or load its module.")


def _candidates(library: Library) -> Iterator[Path]:
    """List the launchers that may belong to a library, each once."""
    folders = [Path(sys.prefix, "bin")]
    if library.path:
        # lib/libmpi.so, or lib/x86_64-linux-gnu/libmpi.so, or lib/release/libmpi.so: bin is beside lib.
        folders = [parent / "bin" for parent in library.path.parents[1:4]] + folders
    found = [folder / name for folder in folders for name in ("mpiexec", "mpiexec.hydra")]
    # Debian installs several MPIs side by side, under these names.
    suffixes = {Family.OPEN_MPI: ".openmpi", Family.MPICH: ".mpich", Family.INTEL: ".hydra"}
    suffix = suffixes[library.family] if library.family else ""
    found += [folder / f"mpiexec{suffix}" for folder in folders]
    on_path = (shutil.which(name) for name in (f"mpiexec{suffix}", "mpiexec", "mpirun"))
    found += [Path(path) for path in on_path if path]
    return (path for path in dict.fromkeys(found) if os.access(path, os.X_OK))


@cache
def family_of_mpiexec(path: Path) -> Family | None:
    """Ask a launcher what it is."""
    try:
        done = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_LIMIT,
            env=without_launcher())
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Family.of_launcher(done.stdout + done.stderr)


def relaunch(ranks: int, arguments: Sequence[str], hosts: Iterable[Host] = ()) -> NoReturn:
    """Become the launcher that runs ``treering ARGUMENTS`` on some ranks.

    This process is replaced, so output, signals and the exit code are the launcher's own.

    Raises
    ------
    LaunchError
        If there is no launcher, or this process was itself launched so and must not do it again.
    """
    if RANKS_VARIABLE in os.environ:
        raise LaunchError(
            f"treering launched {os.environ[RANKS_VARIABLE]} ranks, but this process does not know to be one of them; "
            "'treering doctor' shows whether launcher and library match")
    mpiexec = find_mpiexec(find_library())
    line = mpiexec.line(ranks, [sys.executable, "-m", "treering", *arguments], hosts)
    environment = mpiexec.environment() | {RANKS_VARIABLE: str(ranks)}
    sys.stdout.flush()
    sys.stderr.flush()
    # Launchers read their standard input for rank 0, which stops them when they are in the background.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execve(line[0], line, environment)
    except OSError as error:
        raise LaunchError(f"cannot start {line[0]}: {error}") from error

