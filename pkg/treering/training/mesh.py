"""Named axes over ranks: who communicates with whom.

>>> mesh = Mesh.of({"dp": 2, "tp": 4, "pp": 2})
>>> str(mesh)
'tp=4, dp=2, pp=2 (fastest first)'
>>> mesh.members(Group(("dp",)), {"tp": 1, "pp": 1})
[9, 13]
>>> mesh.stride("pp")
8
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from ..core.errors import Refused

AXES: Mapping[str, str] = {
    "tp": "tensor parallel: each weight cut over the ranks (Megatron column/row)",
    "fsdp": "fully sharded data parallel: weights gathered when used (PyTorch FSDP2); with dp it is HSDP's inner axis",
    "dp": "data parallel: weights whole, gradients summed (PyTorch DDP)",
    "pp": "pipeline parallel: each rank has some of the layers (1F1B)",
}
"""The axes there are, fastest-varying first: Megatron's order tp, cp, dp, pp, with fsdp inside dp as DeviceMesh has it."""


@dataclass(frozen=True)
class Group:
    """Which ranks communicate: those that differ only in the given axes.

    Attributes
    ----------
    axes
        One axis, or several whose ranks act as one group.
    ends
        Only the first and the last position of the (single) axis: the two stages that hold a tied embedding.
    """

    axes: tuple[str, ...]
    ends: bool = False

    def __str__(self) -> str:
        return "+".join(self.axes) + (" ends" if self.ends else "")


@dataclass(frozen=True)
class Mesh:
    """A shape with named axes, fastest-varying first: rank = Σ coordinate · stride."""

    axes: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, sizes: Mapping[str, int], order: tuple[str, ...] = tuple(AXES)) -> Mesh:
        """Return the mesh of the named sizes; axes that are not named have size 1.

        Parameters
        ----------
        sizes
            Ranks along each axis.
        order
            All axes, fastest first.
        """
        return cls(tuple((axis, sizes.get(axis, 1)) for axis in order))

    @cached_property
    def sizes(self) -> dict[str, int]:
        return dict(self.axes)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return prod(self.sizes.values())

    @property
    def parallel_axes(self) -> list[str]:
        """The axes of more than one rank, fastest first."""
        return [axis for axis, size in self.axes if size > 1]

    def stride(self, axis: str) -> int:
        """Distance in ranks between neighbours along an axis."""
        stride = 1
        for name, size in self.axes:
            if name == axis:
                return stride
            stride *= size
        raise KeyError(axis)

    def coordinates(self, rank: int) -> dict[str, int]:
        """Position of a rank along every axis."""
        return {axis: rank // self.stride(axis) % size for axis, size in self.axes}

    def rank(self, coordinates: Mapping[str, int]) -> int:
        """Return the rank at a position; axes left out count as 0."""
        return sum(coordinate * self.stride(axis) for axis, coordinate in coordinates.items())

    def group_size(self, group: Group) -> int:
        """Return the number of ranks of each group of this kind."""
        whole = prod(self.sizes[axis] for axis in group.axes)
        return min(whole, 2) if group.ends else whole

    def members(self, group: Group, at: Mapping[str, int]) -> list[int]:
        """Return the ranks of the group at the given coordinates (those along the group's axes do not matter), ascending."""
        ranges = []
        for axis in group.axes:
            size = self.sizes[axis]
            ranges.append(sorted({0, size - 1}) if group.ends else list(range(size)))
        fixed = {axis: where for axis, where in at.items() if axis not in group.axes}
        return sorted(self.rank({**fixed, **dict(zip(group.axes, spot, strict=True))}) for spot in product(*ranges))

    def groups(self, group: Group) -> Iterator[list[int]]:
        """Yield the members of every group of this kind, in order of their first rank."""
        others = [(axis, range(size)) for axis, size in reversed(self.axes) if axis not in group.axes]
        for spot in product(*(where for _, where in others)):
            yield self.members(group, dict(zip((axis for axis, _ in others), spot, strict=True)))

    def __str__(self) -> str:
        shown = ", ".join(f"{axis}={size}" for axis, size in self.axes if size > 1)
        return f"{shown} (fastest first)" if shown else "one rank"


def parse_layout(text: str, ranks: int | None = None) -> dict[str, int]:
    """Read ``dp=2,tp=4`` into sizes.

    Parameters
    ----------
    text
        Axes with their sizes. One size may be ``auto``: what is left of the ranks.
    ranks
        The number of ranks, where it is given.

    Raises
    ------
    Refused
        When an axis is unknown or repeated, a size is no positive integer, or the product is not the number of ranks.
    """
    sizes: dict[str, int] = {}
    automatic = None
    for item in text.split(","):
        axis, _, size = (part.strip() for part in item.partition("="))
        if axis not in AXES:
            raise Refused(f"layout {text!r}: no axis {axis!r}; the axes are {', '.join(sorted(AXES))}, e.g. dp=2,tp=2")
        if axis in sizes:
            raise Refused(f"layout {text!r}: axis {axis} is given twice")
        if size == "auto" and automatic is None:
            automatic = axis
            sizes[axis] = 1
        elif size.isascii() and size.isdigit() and len(size) <= 9 and int(size) > 0:
            sizes[axis] = int(size)
        else:
            raise Refused(f"layout {text!r}: the size of {axis} must be a positive integer, not {size!r}")
    product_text = " x ".join(f"{axis} {size}" for axis, size in sizes.items() if axis != automatic)
    if automatic is not None:
        if ranks is None:
            raise Refused(f"layout {text!r}: {automatic}=auto needs the number of ranks (-n)")
        if ranks % prod(sizes.values()):
            raise Refused(f"layout {text!r}: {product_text} does not divide {ranks} ranks")
        sizes[automatic] = ranks // prod(sizes.values())
    elif ranks is not None and prod(sizes.values()) != ranks:
        raise Refused(f"layout {text!r}: {product_text} = {prod(sizes.values())} ranks, but there are {ranks}")
    return sizes
