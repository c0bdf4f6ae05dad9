"""The algorithms: nothing but schedules. Importing this package enters all of them into the table."""

from . import (
    barrier,
    bine,
    circulant,
    circulant_blocks,
    composed,
    dissemination,
    dual_root,
    exchange,
    halving,
    hierarchical,
    linear,
    pipeline,
    prefix,
    ring,
    tree,
    two_tree,
)

__all__ = [
    "barrier",
    "bine",
    "circulant",
    "circulant_blocks",
    "composed",
    "dissemination",
    "dual_root",
    "exchange",
    "halving",
    "hierarchical",
    "linear",
    "pipeline",
    "prefix",
    "ring",
    "tree",
    "two_tree",
]
