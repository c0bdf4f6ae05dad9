"""The algorithms: nothing but schedules. Importing this package enters all of them into the table."""

from . import exchange, halving, linear, pipeline, ring, tree

__all__ = ["exchange", "halving", "linear", "pipeline", "ring", "tree"]
