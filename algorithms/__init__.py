"""The algorithms: nothing but schedules. Importing this package enters all of them into the table."""

from . import barrier, exchange, halving, linear, pipeline, prefix, ring, tree

__all__ = ["barrier", "exchange", "halving", "linear", "pipeline", "prefix", "ring", "tree"]
