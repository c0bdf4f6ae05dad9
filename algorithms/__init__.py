"""The algorithms: nothing but schedules. Importing this package enters all of them into the table."""

from . import dissemination, exchange, halving, linear, ring, tree

__all__ = ["dissemination", "exchange", "halving", "linear", "ring", "tree"]
