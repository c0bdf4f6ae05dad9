"""Fully sharded data parallelism as PyTorch's FSDP2 has it: `fully_shard` on every layer and on the root.

Every unit's weights are gathered for its forward pass and, where they were given up in between, again for its backward
pass; its gradients are reduce-scattered after it. The root (embedding, last norm, head) is kept between the two. Each
tensor is cut along dim 0, padded to equal parts. With pipeline stages weights stay gathered for the whole step and
gradients are reduced once, as torchtitan sets it. With a dp axis beside it this is HSDP: the reduced shards are
all-reduced over dp, in the last microbatch only. Source: PyTorch torch/distributed/fsdp/_fully_shard.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..collectives import Collectives
from ..flat import cast, flatten, padded
from ..mesh import Group
from ..model import Unit
from ..placements import Partial, Partitioned, Replicated
from ..tape import Tape
from ..tensor import Tensor
from .data import DataParallel, Held
from .dp import DP

FSDP = Group(("fsdp",))


class _Sharded:
    """What is gathered and reduced together: a layer, or all that belongs to the root."""

    def __init__(self, label: str, *, root: bool) -> None:
        self.label = label
        self.root = root
        self.weights: dict[str, Tensor] = {}
        self.gathered = False
        self.gradients: dict[str, Tensor] = {}
        self.opened: Tape | None = None


class FullyShardedDataParallel(DataParallel):
    """Weights, gradients and optimizer states cut over the fsdp axis.

    Parameters
    ----------
    collectives, held, grad_dtype
        As in `DataParallel`.
    reshard
        Whether layers give up their gathered weights after the forward pass (``reshard_after_forward``).
    once
        Whether the step gathers and reduces only once, whatever the number of microbatches (torchtitan's way with
        pipelines).
    """

    axes = ("dp", "fsdp")

    def __init__(self, collectives: Collectives, held: Held, grad_dtype: str, *, reshard: bool, once: bool) -> None:
        super().__init__(collectives, held, grad_dtype)
        self._reshard = reshard and not once
        self._once = once
        self._parts = collectives.mesh.group_size(FSDP)
        self._root = _Sharded("root", root=True)
        self._layers: dict[str, _Sharded] = {}

    def use(self, tape: Tape, unit: Unit) -> Mapping[str, Tensor]:
        """Gather the unit's weights, or find them gathered."""
        group = self._group(unit)
        if group.opened is not tape:
            group.opened = tape
            tape.mark(partial(self._after_backward, group))
        self._gather(group)
        weights = self._held[unit.name]
        for role, weight in weights.items():
            tape.watch(weight, partial(group.gradients.__setitem__, f"{unit.name}.{role}"))
        return weights

    def used(self, tape: Tape, unit: Unit) -> None:
        """Give up the gathered weights until the backward pass comes by."""
        group = self._group(unit)
        if self._reshard and not group.root:
            group.gathered = False
            tape.mark(partial(self._gather, group))

    def _group(self, unit: Unit) -> _Sharded:
        if unit.kind != "layer":
            group = self._root
            members = [name for name in ("embedding", "head") if name in self._held]
        else:
            group = self._layers.setdefault(unit.name, _Sharded("layer", root=False))
            members = [unit.name]
        if not group.weights:
            group.weights = {f"{name}.{role}": weight for name in members for role, weight in self._held[name].items()}
        return group

    def _gather(self, group: _Sharded) -> None:
        if not group.gathered:
            whole = sum(padded(weight, self._parts).elements for weight in group.weights.values())
            dtype = next(iter(group.weights.values())).dtype
            shard = Tensor((whole // self._parts,), dtype).placed(FSDP.axes, Partitioned(0))
            self._collectives.all_gather(FSDP, shard, f"{group.label} weights")
            group.gathered = True

    def _after_backward(self, group: _Sharded) -> None:
        if self._once and not self._last:
            return
        group.gathered = False
        gradients = {name: cast(gradient, self._grad_dtype) for name, gradient in group.gradients.items()}
        whole = [padded(gradient, self._parts) for gradient in gradients.values()]
        flat = flatten(whole, self._grad_dtype, self.axes, Partial())
        shard = self._collectives.reduce_scatter(FSDP, flat, f"{group.label} gradients")
        if self._last:
            self._collectives.all_reduce(DP, shard, f"{group.label} gradient shards")
        for name, gradient in zip(gradients, whole, strict=True):
            part = gradient.resized(0, gradient.shape[0] // self._parts)
            self.gradients[name] = part.placed(DP.axes, Replicated()).placed(FSDP.axes, Partitioned(0))

    def finish(self) -> None:
        """Do nothing: every unit was reduced as its backward pass ended."""
