"""The α-β model: a message of m bytes takes α + mβ seconds."""

from __future__ import annotations

LATENCY_BYTES = 20_000
"""α/β: how many bytes take as long to send as the latency of one message. 2 µs at 10 GB/s, about that of good networks."""


def weight(nbytes: int) -> float:
    """How many messages' latency it takes to send a payload: mβ/α."""
    return nbytes / LATENCY_BYTES
