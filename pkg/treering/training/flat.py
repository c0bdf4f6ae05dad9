"""Many tensors as one flat buffer: how buckets and FSDP's units are sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .placements import Placement
from .tensor import Tensor


def flatten(tensors: Iterable[Tensor], dtype: str, axes: tuple[str, ...], placement: Placement) -> Tensor:
    """Return the tensors one behind the other, as a buffer placed so along the axes."""
    return Tensor((sum(tensor.elements for tensor in tensors),), dtype).placed(axes, placement)


def padded(tensor: Tensor, parts: int) -> Tensor:
    """Return it with dim 0 lengthened so that it can be cut into equal parts."""
    return tensor.resized(0, -(-tensor.shape[0] // parts) * parts)


def cast(tensor: Tensor, dtype: str) -> Tensor:
    """Return it in another dtype."""
    return tensor if tensor.dtype == dtype else replace(tensor, dtype=dtype)
