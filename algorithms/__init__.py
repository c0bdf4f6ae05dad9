"""The algorithms: nothing but schedules. Importing this package enters all of them into the table."""

from . import (
    barrier,
    circulant,
    circulant_blocks,
    dissemination,
    exchange,
    halving,
    hierarchical,
    linear,
    pipeline,
    prefix,
    ring,
    tree,
)

__all__ = [
    "barrier",
    "circulant",
    "circulant_blocks",
    "dissemination",
    "exchange",
    "halving",
    "hierarchical",
    "linear",
    "pipeline",
    "prefix",
    "ring",
    "tree",
]
