"""The algorithms: nothing but schedules. Importing this package enters all of them into the table."""

from . import (
    binary_blocks, circulant, circulant_blocks, dissemination, exchange, halving, in_order, linear, multiplying, ring, swing,
    tree)

__all__ = [
    "binary_blocks", "circulant", "circulant_blocks", "dissemination", "exchange", "halving", "in_order", "linear",
    "multiplying", "ring", "swing", "tree",
]
