"""A tensor as one rank holds it: local shape, dtype, and where the rest of it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from ..core.errors import Refused
from .placements import Placement, Replicated

ITEMSIZES: Mapping[str, int] = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8, "int64": 8}
"""Bytes an element."""

TRAINED = ("bf16", "fp16", "fp32", "fp64")
"""The dtypes that weights and gradients may have."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """This rank's part of a tensor.

    Attributes
    ----------
    shape
        Of the part that is here.
    dtype
        A key of `ITEMSIZES`.
    placements
        For each axis of the mesh along which it is not replicated, how it lies there.
    data
        The values, when the step runs on real arrays; None when only shapes are traced.
    """

    shape: tuple[int, ...]
    dtype: str
    placements: Mapping[str, Placement] = field(default_factory=dict)
    data: Any = None

    @property
    def elements(self) -> int:
        """Elements of the part that is here."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return ITEMSIZES[self.dtype]

    def on(self, axis: str) -> Placement:
        """Return the placement along an axis."""
        return self.placements.get(axis, Replicated())

    def placed(self, axes: tuple[str, ...], placement: Placement) -> Tensor:
        """Return the same part, said to be placed so along the axes."""
        placements = {axis: where for axis, where in self.placements.items() if axis not in axes}
        if placement != Replicated():
            placements.update(dict.fromkeys(axes, placement))
        return replace(self, placements=placements)

    def resized(self, dim: int, length: int) -> Tensor:
        """Return it with another local length along a dim."""
        shape = list(self.shape)
        shape[dim] = length
        return replace(self, shape=tuple(shape))


def check_dtype(name: str) -> str:
    """Return the dtype's one spelling; ``bfloat16`` and ``float32`` are understood.

    Raises
    ------
    Refused
        When models are not trained in it.
    """
    short = name.lower().replace("bfloat", "bf").replace("float", "fp")
    if short not in TRAINED:
        raise Refused(f"no dtype {name!r} for a training step; there are {', '.join(TRAINED)}")
    return short
