"""Kinds of element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def kind_of(dtype: np.dtype[Any]) -> str:
    """numpy's letter for the kind of number, bfloat16 counted as floating point; ``"pair"`` for a value and its index."""
    if dtype == BFLOAT16:
        return "f"
    return "pair" if dtype.names and len(dtype.names) == 2 else dtype.kind
