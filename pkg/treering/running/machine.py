"""What this machine has: cores, memory, network interfaces, GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SYS = Path("/sys/class")


@dataclass(frozen=True)
class Interface:
    """A network interface that is up; bits/s if its driver says so."""

    name: str
    kind: str
    speed: float | None

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}{f', {self.speed / 1e9:g} Gbit/s' if self.speed else ''})"


def usable_threads() -> set[int]:
    """Name the hardware threads that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def usable_cores() -> int:
    """Count the cores that this process may use; hardware threads of one core count once."""
    return len({_siblings(thread) for thread in usable_threads()})


def memory() -> tuple[int, int] | None:
    """Return the available and the total memory in bytes, or None where the system does not say.

    A limit on our control group, as containers and Slurm set it, counts as the total.
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    kilobytes = {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
    available, total = kilobytes["MemAvailable"] * 1024, kilobytes["MemTotal"] * 1024
    limit = _read(Path("/sys/fs/cgroup/memory.max"))
    if limit.isdecimal() and int(limit) < total:
        total = int(limit)
        used = _read(Path("/sys/fs/cgroup/memory.current"))
        available = min(available, total - int(used or 0))
    return available, total


def interfaces() -> list[Interface]:
    """List the network interfaces that are up, and InfiniBand devices; not the loopback."""
    found = []
    for folder in sorted(_SYS.glob("net/*")):
        state = _read(folder / "operstate")
        if folder.name != "lo" and state in ("up", "unknown"):
            speed = _read(folder / "speed")
            # A driver that does not know says -1.
            found.append(Interface(folder.name, "network", int(speed) * 1e6 if speed.isdecimal() else None))
    for folder in sorted(_SYS.glob("infiniband/*")):
        found.append(Interface(folder.name, "RDMA device", None))
    return found


def gpus() -> list[str]:
    """List NVIDIA's GPUs as nvidia-smi names them; none if it is not installed or does not answer."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        done = subprocess.run([command, "-L"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.partition(" (UUID")[0] for line in done.stdout.splitlines() if line.startswith("GPU ")]


def _siblings(thread: int) -> str:
    """Tell which hardware threads share a core with this one; itself alone where the system does not say."""
    return _read(Path(f"/sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list")) or str(thread)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
