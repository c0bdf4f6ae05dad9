"""What the environment says about how this process was started. No MPI is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from treering.core.errors import LaunchError

RANKS_VARIABLE = "TREERING_RANKS"
"""Set by `treering.running.launch` for the processes it starts: how many there must be."""


@dataclass(frozen=True)
class Launcher:
    """The innermost program that started this process as one of several ranks.

    Attributes
    ----------
    name
        What people call it.
    ranks
        How many ranks it started.
    rank, local_rank
        Which of them this process is, in all and on its host; None where the launcher does not say.
    advice
        What to do if MPI nevertheless makes a world of one rank.
    """

    name: str
    ranks: int
    rank: int | None
    local_rank: int | None
    advice: str


@dataclass(frozen=True)
class _Signs:
    """How one kind of launcher is known: by its processes, and by the variables it sets."""

    name: str
    processes: frozenset[str]
    ranks: str
    rank: str
    local_rank: str
    advice: str

    def read(self, environ: Mapping[str, str]) -> Launcher | None:
        ranks = _number(environ, self.ranks)
        if ranks is None:
            return None
        return Launcher(self.name, ranks, _number(environ, self.rank), _number(environ, self.local_rank), self.advice)


_KINDS = (
    _Signs(
        "Open MPI's mpiexec", frozenset({"prterun", "prted", "orted", "orterun"}),
        "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
        "it is not the launcher of the MPI that mpi4py found"),
    # Hydra is the launcher of MPICH and of Intel MPI; srun --mpi=pmi2 sets the same variables.
    _Signs(
        "Hydra (the mpiexec of MPICH and Intel MPI)", frozenset({"hydra_pmi_proxy"}),
        "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID",
        "Open MPI cannot be started by Hydra, it silently makes separate worlds: use Open MPI's own mpiexec"),
    # Slurm's step variables only: SLURM_NTASKS is also set in a plain batch script, which is not a step.
    _Signs(
        "srun", frozenset({"slurmstepd"}),
        "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID",
        "use srun --mpi=pmix for Open MPI, srun --mpi=pmi2 for MPICH and Intel MPI, "
        "or mpiexec inside sbatch or salloc"),
)


def launcher(environ: Mapping[str, str] = os.environ) -> Launcher | None:
    """Tell which launcher started this process, the innermost where one was started inside another.

    Returns
    -------
    Launcher or None
        None if the process was started alone. A Slurm step of one task counts as alone: an interactive shell is one.
    """
    found = {kind: start for kind in _KINDS if (start := kind.read(environ))}
    if len(found) > 1:
        # All of them left their variables behind. The nearest process above us is the one whose ranks we are.
        for process in _ancestors():
            for kind, start in found.items():
                if process in kind.processes:
                    return _unless_alone(kind, start)
    # The order of the kinds is the usual nesting: mpiexec under srun, not the other way round.
    for kind, start in found.items():
        return _unless_alone(kind, start)
    return None


def is_first_rank(environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this process is the one that should speak for all: rank 0, or started alone."""
    start = launcher(environ)
    return start is None or not start.rank


def require_full_world(size: int, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse to go on in a world of one rank where the launcher started more.

    Such processes would each do the whole work alone and report success.

    Parameters
    ----------
    size
        Size of MPI.COMM_WORLD.

    Raises
    ------
    LaunchError
        The message says what does not belong together and what to do.
    """
    if size > 1:
        return
    start = launcher(environ)
    if start and start.ranks > 1:
        raise LaunchError(
            f"{start.name} started {start.ranks} ranks, but MPI made {start.ranks} separate worlds of one rank: "
            f"{start.advice}. 'treering doctor' shows what belongs together.")
    expected = _number(environ, RANKS_VARIABLE) or 1
    if expected > 1:
        raise LaunchError(
            f"treering launched {expected} ranks, but MPI made a world of one: the launcher it found is not that of "
            "the MPI library in use. 'treering doctor' shows both.")


def without_launcher(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Copy an environment without what a launcher told this process, so that another launcher can be started.

    What users set themselves (``OMPI_MCA_*``, ``I_MPI_*``, ``UCX_*`` …) stays.
    """
    return {name: value for name, value in environ.items() if not _of_launcher(name)}


_LAUNCHER_NAMES = {
    "PMI_FD", "PMI_HOSTNAME", "PMI_ID", "PMI_PORT", "PMI_RANK", "PMI_SIZE", "PMI_SPAWNED", "HYDRA_LAUNCH_TYPE",
    "OMPI_ARGV", "OMPI_COMMAND", "OMPI_FILE_LOCATION", "OMPI_NUM_APP_CTX", "OMPI_UNIVERSE_SIZE",
    "OMPI_MCA_num_procs", "OMPI_MCA_initial_wdir", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_ess_base_vpid",
    "OMPI_MCA_orte_hnp_uri", RANKS_VARIABLE,
}
_LAUNCHER_PREFIXES = ("PMIX_", "HYDRA_BSTRAP_", "MPI_LOCAL", "OMPI_COMM_WORLD_", "OMPI_WORLD_", "I_MPI_INFO_")


def _of_launcher(name: str) -> bool:
    return name in _LAUNCHER_NAMES or name.startswith(_LAUNCHER_PREFIXES)


def _unless_alone(kind: _Signs, start: Launcher) -> Launcher | None:
    return None if start.ranks == 1 and "slurmstepd" in kind.processes else start


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isdecimal() else None


def _ancestors() -> Iterator[str]:
    """Names of the processes above this one, nearest first; none where /proc cannot be read."""
    pid = os.getppid()
    while pid > 1:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        yield fields["Name"]
        pid = int(fields["PPid"])
