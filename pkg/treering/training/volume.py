"""How many elements the ranks of a group send for one collective."""

from __future__ import annotations

from dataclasses import dataclass

ALGORITHMS = {"all-gather": "ring", "reduce-scatter": "ring", "all-reduce": "ring"}
"""Which algorithms the ledger counts, and a run of the traffic uses. No algorithm sends less in all."""


@dataclass(frozen=True)
class Volume:
    """What the busiest rank of a group sends, and what all its ranks send together."""

    busiest: int
    total: int


def volume(operation: str, elements: int, size: int) -> Volume:
    """Elements sent for a payload S in ``size`` balanced blocks, which differ by at most one element.

    Counted for the algorithms that send least: ring all-gather and reduce-scatter, an all-reduce made of the two, pairwise
    all-to-all, chain or tree broadcast.

    Parameters
    ----------
    operation
        The collective, or ``"send"``.
    elements
        The payload S (see `Message`).
    size
        Ranks in the group.
    """
    if operation == "send":
        return Volume(elements, elements)
    if size == 1:
        return Volume(0, 0)
    smallest, larger = divmod(elements, size)
    if operation in ("all-gather", "reduce-scatter"):
        return Volume(elements - smallest, (size - 1) * elements)
    if operation == "all-reduce":
        # A rank leaves out one block in each half, and the two are neighbours on the ring.
        left_out = 2 * smallest + (1 if larger == size - 1 else 0)
        return Volume(2 * elements - left_out, 2 * (size - 1) * elements)
    if operation == "all-to-all":
        return Volume(elements - smallest, size * elements - elements)
    if operation == "broadcast":
        return Volume(elements, (size - 1) * elements)
    raise ValueError(f"no volume for {operation!r}")
