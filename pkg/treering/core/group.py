"""Groups of ranks, and how a number of ranks that is no power of two is folded to one that is."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Fold:
    """The largest power of two of ranks that stay active, when the others each lean on a neighbour.

    The first ``2 * extra`` ranks pair up, neighbour with neighbour, and the even one of each pair acts for both; so every
    active rank stands for a run of neighbouring ranks, and rank order is kept.

    Examples
    --------
    >>> fold = Fold(6)
    >>> [list(fold.members(v)) for v in range(fold.active)]
    [[0, 1], [2, 3], [4], [5]]
    """

    size: int

    @cached_property
    def active(self) -> int:
        """How many ranks stay active: the largest power of two that is not more than the size."""
        return 1 << (self.size.bit_length() - 1)

    @cached_property
    def extra(self) -> int:
        """How many ranks lean on the one before them."""
        return self.size - self.active

    def leans(self, rank: int) -> bool:
        return rank < 2 * self.extra and rank % 2 == 1

    def position(self, rank: int) -> int:
        """Where an active rank, or the pair that a rank belongs to, stands among the active ones."""
        return rank // 2 if rank < 2 * self.extra else rank - self.extra

    def rank(self, position: int) -> int:
        """The rank that is active at a position."""
        return self.members(position)[0]

    def members(self, position: int) -> range:
        """The ranks for which the one at a position acts."""
        return self.span(position, position + 1)

    def span(self, start: int, stop: int) -> range:
        """The ranks for which the positions from ``start`` to before ``stop`` act."""
        return range(start + min(start, self.extra), stop + min(stop, self.extra))


@dataclass(frozen=True)
class Nodes:
    """Ranks on nodes, one node after the other; nodes may have different numbers of ranks.

    Examples
    --------
    >>> nodes = Nodes.of(8, 3)
    >>> [list(nodes.members(n)) for n in range(nodes.count)]
    [[0, 1, 2], [3, 4, 5], [6, 7]]
    >>> nodes.place(4)
    (1, 1)
    """

    starts: tuple[int, ...]

    @classmethod
    def of(cls, size: int, each: int) -> Nodes:
        """Nodes of equally many ranks, but for the last, which has the rest."""
        return cls((*range(0, size, each), size))

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    def members(self, node: int) -> range:
        return range(self.starts[node], self.starts[node + 1])

    def place(self, rank: int) -> tuple[int, int]:
        """The node of a rank, and where it stands there."""
        node = bisect.bisect_right(self.starts, rank) - 1
        return node, rank - self.starts[node]

    def leaders(self, root: int = 0) -> tuple[int, ...]:
        """One rank of every node: the root on its own, the first on the others."""
        home = self.place(root)[0]
        return tuple(root if node == home else self.starts[node] for node in range(self.count))
