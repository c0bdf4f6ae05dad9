"""How many elements each block has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .collective import Case, Collective
from .errors import Refused
from .schedule import Block

Counts: TypeAlias = int | Sequence[int]
"""Elements of each unit of a payload: one number for all, or one each."""


def balanced(total: int, parts: int, index: int) -> int:
    """The size of one of several parts of a whole whose sizes differ by one at most, the larger ones first.

    Examples
    --------
    >>> [balanced(10, 4, i) for i in range(4)]
    [3, 3, 2, 2]
    """
    return total // parts + (index < total % parts)


def elements(collective: Collective, case: Case, counts: Counts) -> Callable[[Block], int]:
    """A function from a block to its number of elements.

    Parameters
    ----------
    counts
        Elements of each unit: of the whole vector for broadcast, reduce and all-reduce; of each rank's part for scatter,
        gather, all-gather and reduce-scatter, one number for all or a number each; of what one rank has for another for
        all-to-all.

    Raises
    ------
    Refused
        For a negative count, or as many counts as there are not units.
    """
    units = collective.units(case.size)
    if isinstance(counts, int):
        smallest = counts
    else:
        smallest = min(counts, default=0)
        if len(counts) != units:
            raise Refused(f"{collective} over {case.size} ranks takes {units} counts, not {len(counts)}")
    if smallest < 0:
        raise Refused(f"{collective}: a count of {smallest} elements is less than none")
    pieces = case.blocks // units

    def of(block: Block) -> int:
        index = block if isinstance(block, int) else block[0] * case.size + block[1]
        unit, piece = divmod(index, pieces)
        return balanced(counts if isinstance(counts, int) else counts[unit], pieces, piece)

    return of


def total(collective: Collective, size: int, counts: Counts) -> int:
    """Elements of the full payload that figures speak of: the whole vector, or the parts of all ranks together.

    For all-to-all it is what one rank has for all. This is the size that benchmarks name, nccl-tests' S.
    """
    if not isinstance(counts, int):
        return sum(counts)
    units = collective.units(size)
    return counts * (units if units <= size else size)
