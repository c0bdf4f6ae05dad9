"""Groups of ranks, and how any number of ranks is folded to a power of two, or of another radix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Fold:
    """The largest power of a radix of ranks that stay active, when the others each lean on one of them.

    Every active rank acts for a run of neighbouring ranks, of which it is the first, so rank order is kept. The runs are as
    equal in length as can be, the longer ones first: for radix 2 the first ``2 * (size - active)`` ranks are in pairs.

    Examples
    --------
    >>> fold = Fold(6)
    >>> [list(fold.members(v)) for v in range(fold.active)]
    [[0, 1], [2, 3], [4], [5]]
    """

    size: int
    radix: int = 2

    @cached_property
    def digits(self) -> int:
        """The exponent of the power."""
        digits, power = 0, self.radix
        while power <= self.size:
            digits, power = digits + 1, power * self.radix
        return digits

    @cached_property
    def active(self) -> int:
        """How many ranks stay active: the largest power of the radix that is not more than the size."""
        active: int = self.radix ** self.digits
        return active

    @cached_property
    def leaning(self) -> int:
        """How many ranks lean on the first rank, which has most of them."""
        return -(-self.size // self.active) - 1

    def leans(self, rank: int) -> bool:
        return rank != self.rank(self.position(rank))

    def position(self, rank: int) -> int:
        """Where an active rank, or the one that a rank leans on, stands among the active ones."""
        each, longer = divmod(self.size, self.active)
        return max(rank // (each + 1), (rank - longer) // each)

    def rank(self, position: int) -> int:
        """The rank that is active at a position."""
        each, longer = divmod(self.size, self.active)
        return position * each + min(position, longer)

    def members(self, position: int) -> range:
        """The ranks for which the one at a position acts."""
        return self.span(position, position + 1)

    def span(self, start: int, stop: int) -> range:
        """The ranks for which the positions from ``start`` to before ``stop`` act."""
        return range(self.rank(start), self.rank(stop))


def factors(size: int, most: int) -> Iterator[int]:
    """Factors of a size, the largest that are not more than a limit first; a prime factor that is more than that stays whole.

    Examples
    --------
    >>> [list(factors(size, 4)) for size in (64, 12, 22)]
    [[4, 4, 4], [4, 3], [2, 11]]
    """
    while size > 1:
        small = (factor for factor in range(min(most, size), 1, -1) if size % factor == 0)
        found = next(small, 0) or next(factor for factor in range(most + 1, size + 1) if size % factor == 0)
        yield found
        size //= found
