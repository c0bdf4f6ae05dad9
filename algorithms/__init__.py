"""The algorithms: nothing but schedules. Importing this package enters all of them into the table."""

from . import (
    barrier,
    bine,
    composed,
    dual_root,
    exchange,
    halving,
    linear,
    pipeline,
    prefix,
    ring,
    tree,
    two_tree,
)

__all__ = [
    "barrier", "bine", "composed", "dual_root", "exchange", "halving", "linear", "pipeline", "prefix", "ring", "tree",
    "two_tree",
]
