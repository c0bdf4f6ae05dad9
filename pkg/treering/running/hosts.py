"""Hosts and how many ranks each of them takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """A host, how many ranks it takes, and at most how many where the hostfile says so."""

    name: str
    slots: int = 1
    most: int | None = None

    def __str__(self) -> str:
        return f"{self.name}:{self.slots}" if ":" not in self.name else f"[{self.name}]:{self.slots}"


def total_slots(hosts: Iterable[Host]) -> int:
    """Count the ranks that fit on some hosts."""
    return sum(host.slots for host in hosts)
