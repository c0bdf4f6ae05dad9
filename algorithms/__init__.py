"""The algorithms: nothing but schedules. Importing this package enters all of them into the table."""

from . import circulant, circulant_blocks, dissemination, exchange, halving, linear, ring, tree

__all__ = ["circulant", "circulant_blocks", "dissemination", "exchange", "halving", "linear", "ring", "tree"]
