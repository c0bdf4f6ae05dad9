"""Examines whether MPI works here: each finding says what was found, how good it is and what to do."""

from __future__ import annotations

import enum
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import treering
from treering.core.errors import LaunchError, Refused
from treering.running import machine
from treering.running.environment import launcher
from treering.running.hostfile import read_hostfile
from treering.running.hosts import Host, total_slots
from treering.running.launch import Family, Library, Mpiexec, answers, find_library, find_mpiexec
from treering.running.slurm import allocation

LAUNCH_LINE = "To start N ranks"
"""Topic of the finding that is a line to type."""

TRIAL_LIMIT = 60.0
"""Seconds within which two ranks must have started and ended."""


class Status(enum.Enum):
    """How good a finding is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what it is, what was found, and what to do where that is not good."""

    topic: str
    found: str
    status: Status = Status.OK
    advice: str = ""


def examine(hostfile: Path | None = None) -> Iterator[Finding]:
    """Look at everything that a run over MPI needs, one finding after the other.

    MPI itself is only asked in processes of their own, with a time limit, so that a broken one can neither hang nor end us.

    Parameters
    ----------
    hostfile
        A hostfile to check too.

    Raises
    ------
    Refused
        If this process is one of several ranks: it cannot start others.
    """
    if start := launcher():
        raise Refused(f"{start.name} started this as one of {start.ranks} ranks; the doctor starts ranks itself, run it alone")
    yield from _python()
    hosts: tuple[Host, ...] = ()
    if hostfile:
        hosts, finding = _hostfile(hostfile)
        yield finding
    try:
        library = find_library()
    except LaunchError as error:
        yield Finding("MPI library", str(error), Status.PROBLEM, "without one, nothing with --run works")
    else:
        yield Finding("MPI library", f"{library.text} ({library.path or 'path unknown'})")
        yield from _launching(library, hostfile, hosts)
    yield from _slurm()
    yield from _machine()


def _python() -> Iterator[Finding]:
    yield Finding("Python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("treering", f"{treering.__version__} ({Path(treering.__file__).parent})")
    try:
        yield Finding("mpi4py", version("mpi4py"))
    except PackageNotFoundError:
        yield Finding("mpi4py", "not installed", Status.PROBLEM, "python -m pip install mpi4py")


def _hostfile(path: Path) -> tuple[tuple[Host, ...], Finding]:
    try:
        hosts = read_hostfile(path)
    except Refused as error:
        return (), Finding("hostfile", str(error), Status.PROBLEM, "correct that line")
    listed = ", ".join(f"{host.slots} on {host.name}" for host in hosts)
    return hosts, Finding("hostfile", f"{total_slots(hosts)} ranks on {len(hosts)} hosts: {listed}")


def _launching(library: Library, hostfile: Path | None, hosts: tuple[Host, ...]) -> Iterator[Finding]:
    try:
        mpiexec = find_mpiexec(library)
    except LaunchError as error:
        yield Finding("launcher", str(error), Status.PROBLEM, "ranks can only be started by the launcher of the same MPI")
        return
    yield Finding("launcher", str(mpiexec.path))
    answer, finding = try_two_ranks(mpiexec)
    yield finding
    if answer:
        level = answer["thread_level"]
        yield Finding("thread level", level, Status.OK if level == "MULTIPLE" else Status.WARNING,
                      "" if level == "MULTIPLE" else "communication cannot progress in a thread of its own")
        yield _gpus(answer["cuda"])
    yield Finding(LAUNCH_LINE, launch_line(mpiexec, hostfile, hosts))


def try_two_ranks(mpiexec: Mpiexec) -> tuple[dict[str, Any] | None, Finding]:
    """Start two ranks and see whether they are one world; return what one of them says of itself, and the finding.

    A launcher that does not belong to the library starts two worlds of one rank, with exit code 0.
    """
    line = mpiexec.line(2, [sys.executable, "-m", "treering.running.probe", "--world"])
    topic, advice = "two ranks", f"try it by hand: {shlex.join(line)}"
    try:
        done = subprocess.run(
            line, env=mpiexec.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TRIAL_LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, Finding(topic, f"did not start or end: {error}", Status.PROBLEM, advice)
    worlds = list(answers(done.stdout))
    if done.returncode or not worlds:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return None, Finding(topic, f"failed with exit code {done.returncode}: {last}", Status.PROBLEM, advice)
    if [world["size"] for world in worlds] != [2, 2]:
        sizes = ", ".join(str(world["size"]) for world in worlds)
        return None, Finding(topic, f"worlds of size {sizes} instead of one of size 2", Status.PROBLEM,
                             "launcher and library do not belong together; " + advice)
    return worlds[0], Finding(topic, "start, find each other and end")


def launch_line(mpiexec: Mpiexec, hostfile: Path | None, hosts: tuple[Host, ...]) -> str:
    """Write the line that starts ranks of a program of one's own, as people type it."""
    ranks = str(total_slots(hosts)) if hosts else "N"
    words = [str(mpiexec.path), "-n", ranks]
    if hostfile:
        words += [mpiexec.family.hostfile_flag, str(hostfile)]
    elif mpiexec.family is Family.OPEN_MPI:
        words += ["--oversubscribe"]
    line = shlex.join([*words, "python", "-m", "treering"])
    settings = "".join(f"{name}={value} " for name, value in mpiexec.environment({}).items())
    return f"{settings}{line} …"


def _gpus(cuda: bool | None) -> Finding:
    gpus = machine.gpus()
    aware = {True: "MPI takes GPU memory", False: "MPI does not take GPU memory", None: "MPI does not say"}[cuda]
    if gpus and not cuda:
        return Finding("GPUs", f"{', '.join(gpus)}; {aware}", Status.WARNING,
                       "messages from GPU memory must be staged through the host; a CUDA-aware MPI sends them directly")
    return Finding("GPUs", f"{', '.join(gpus) or 'none'}; {aware}")


def _slurm() -> Iterator[Finding]:
    try:
        hosts = allocation()
    except Refused as error:
        yield Finding("Slurm", str(error), Status.PROBLEM, "these variables of the job contradict each other")
        return
    if hosts:
        listed = ", ".join(f"{host.slots} on {host.name}" for host in hosts)
        yield Finding("Slurm", f"in a job with {total_slots(hosts)} tasks: {listed}")
    elif shutil.which("srun"):
        yield Finding("Slurm", "installed; this process is not in a job")
    else:
        yield Finding("Slurm", "none")


def _machine() -> Iterator[Finding]:
    cores, threads = machine.usable_cores(), len(machine.usable_threads())
    few = "more ranks than this share the cores, so that their times say little about a cluster" if cores < 4 else ""
    yield Finding("cores", f"{cores} ({threads} hardware threads)", Status.WARNING if few else Status.OK, few)
    if sizes := machine.memory():
        available, total = (size / 2**30 for size in sizes)
        yield Finding("memory", f"{available:.1f} GiB of {total:.1f} GiB available")
    cards = machine.interfaces()
    yield Finding("network", ", ".join(map(str, cards)) or "none but the loopback")
