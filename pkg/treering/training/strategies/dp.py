"""Data parallelism as PyTorch's DistributedDataParallel has it: gradients all-reduced in buckets as they become ready.

Counted is the steady state, from the second iteration on: the buckets follow the order in which gradients arrive. (The
first iteration uses one bucket in the order of construction.) With several microbatches all but the last run under
``no_sync``. Source: PyTorch torch/csrc/distributed/c10d/reducer.hpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..flat import cast, flatten
from ..mesh import Group
from ..model import Unit
from ..placements import Partial, Replicated
from ..tape import Tape
from ..tensor import Tensor
from .data import DataParallel

DP = Group(("dp",))

FIRST_BUCKET_BYTES = 1 << 20
"""The first bucket is small, so that communication starts early."""

BUCKET_BYTES = 25 << 20
"""A bucket is closed as soon as it holds this much, so it may hold more."""


class DistributedDataParallel(DataParallel):
    """Whole weights on every rank; one all-reduce a bucket, during the last backward pass."""

    axes = ("dp",)
    _limit = FIRST_BUCKET_BYTES

    def use(self, tape: Tape, unit: Unit) -> Mapping[str, Tensor]:
        """Return the weights, which are always here."""
        weights = self._held[unit.name]
        for role, weight in weights.items():
            tape.watch(weight, partial(self._ready, f"{unit.name}.{role}"))
        return weights

    def used(self, tape: Tape, unit: Unit) -> None:
        """Keep the weights."""

    def _ready(self, name: str, gradient: Tensor) -> None:
        self.gradients[name] = cast(gradient, self._grad_dtype)
        if self._last:
            self._bucket.append(name)
            if sum(self.gradients[one].elements * self.gradients[one].itemsize for one in self._bucket) >= self._limit:
                self._reduce_bucket()

    def begin_backward(self, *, last: bool) -> None:
        """Open the first bucket when the last backward pass begins."""
        super().begin_backward(last=last)
        self._bucket: list[str] = []

    def _reduce_bucket(self) -> None:
        parts = [self.gradients[name] for name in self._bucket]
        self._collectives.all_reduce(DP, flatten(parts, self._grad_dtype, DP.axes, Partial()), "gradient buckets")
        for name, part in zip(self._bucket, parts, strict=True):
            self.gradients[name] = part.placed(DP.axes, Replicated())
        self._bucket = []
        self._limit = BUCKET_BYTES

    def finish(self) -> None:
        """Reduce the last bucket, full or not."""
        if self._bucket:
            self._reduce_bucket()
