"""What really ran, round by round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Entry(NamedTuple):
    """One round of one collective on this rank. Times are in seconds on the clock of `time.perf_counter`."""

    name: str
    round: int
    sent: tuple[tuple[int, int], ...]
    received: tuple[tuple[int, int], ...]
    start: float
    end: float


@dataclass
class Trace:
    """The rounds that this rank ran while the trace was on; ``sent`` and ``received`` are pairs of peer and bytes."""

    entries: list[Entry] = field(default_factory=list)

    @property
    def sent_bytes(self) -> int:
        return sum(size for entry in self.entries for _, size in entry.sent)

    @property
    def received_bytes(self) -> int:
        return sum(size for entry in self.entries for _, size in entry.received)

    @property
    def messages(self) -> int:
        """Messages sent."""
        return sum(len(entry.sent) for entry in self.entries)
