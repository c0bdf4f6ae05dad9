"""Lower bounds: what no algorithm can do with less, on one-ported, full-duplex ranks.

From Chan, Heimlich, Purkayastha & van de Geijn, Collective communication, CCPE 19(13), 2007. Volumes are those of the
busiest rank, in multiples of the payload m.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..core.algorithm import POWER_OF_TWO, Algorithm
from ..core.collective import Collective
from .count import Figures, count

SAMPLE = (3, 4, 5, 6, 7, 8, 16)
"""Numbers of ranks on which to see whether an algorithm meets a bound: odd, even and powers of two, none too small to tell."""


@dataclass(frozen=True)
class Bounds:
    """The least that a collective takes on a number of ranks.

    Attributes
    ----------
    rounds
        Messages that follow each other: the factor of α.
    volume
        Payloads that some rank sends or receives: the factor of β·m.
    reduced
        Payloads that some rank reduces: the factor of γ·m; zero where nothing is reduced.
    """

    rounds: int
    volume: Fraction
    reduced: Fraction

    def met_by(self, figures: Figures) -> frozenset[str]:
        """Which of the bounds an algorithm meets: of ``rounds``, ``volume``, ``reduced``."""
        return frozenset(name for name in vars(self) if getattr(figures, name) == getattr(self, name))


def bounds(collective: Collective, size: int) -> Bounds:
    """The lower bounds of a collective on a number of ranks; of one that is a user's own, that it takes nothing or more.

    Examples
    --------
    >>> from treering.core import ALL_REDUCE
    >>> bounds(ALL_REDUCE, 6)
    Bounds(rounds=3, volume=Fraction(5, 3), reduced=Fraction(5, 6))
    """
    all_but_own, nothing = Fraction(size - 1, size), Fraction(0)
    # A vector that nobody has in part already must leave, or reach, the root as a whole.
    whole = Fraction(size > 1)
    known = {
        "broadcast": (whole, nothing),
        "reduce": (whole, all_but_own),
        "scatter": (all_but_own, nothing),
        "gather": (all_but_own, nothing),
        "all-gather": (all_but_own, nothing),
        "reduce-scatter": (all_but_own, all_but_own),
        "all-reduce": (2 * all_but_own, all_but_own),
        "all-to-all": (all_but_own, nothing),
        # The last rank must hear of others. There are size - 1 sums to make, one for each rank but the first, or one less.
        "scan": (whole, all_but_own),
        "exscan": (whole, max(nothing, Fraction(size - 2, size))),
        # Every rank must say that it has come; the payload is the token by which it does.
        "barrier": (whole, all_but_own),
    }
    if collective.name not in known:
        return Bounds(0, nothing, nothing)
    # Who knows of one rank at most doubles in a round.
    return Bounds((size - 1).bit_length(), *known[collective.name])


def met_by(algorithm: Algorithm) -> dict[str, bool]:
    """Which lower bounds an algorithm meets, and whether for every number of ranks (else only for powers of two).

    Found by the counter on a few numbers of ranks, with the default parameters.

    Examples
    --------
    >>> from treering.table import find_algorithm, find_collective
    >>> met_by(find_algorithm(find_collective("all-reduce"), "halving-doubling")[0])
    {'volume': False, 'reduced': False}
    """
    sizes = [size for size in SAMPLE if not algorithm.why_not(size)]
    met = {size: bounds(algorithm.collective, size).met_by(count(algorithm.schedule(size))) for size in sizes}
    names = ["rounds", "volume", *["reduced"] * algorithm.collective.reduces]
    in_powers = [name for name in names if all(name in met[size] for size in sizes if POWER_OF_TWO.holds(size))]
    return {name: all(name in met[size] for size in sizes) for name in in_powers}


TOGETHER = {
    "broadcast": "one at a time: a payload in n blocks takes n - 1 + ⌈log2 p⌉ rounds",
    "reduce": "one at a time: a payload in n blocks takes n - 1 + ⌈log2 p⌉ rounds",
    "scatter": "together, by a binomial tree",
    "gather": "together, by a binomial tree",
    "all-gather": "together, by dissemination (Bruck)",
    "reduce-scatter": "together, by halving for a power of two and by circulant graphs otherwise",
    "all-reduce": "one at a time by the schedules here; 2⌈log2 p⌉ rounds are enough for the least volume and reduction",
    "all-to-all": "one at a time: least volume takes p - 1 rounds, ⌈log2 p⌉ rounds take m/2·log2 p (Bruck 1997)",
    "scan": "one at a time: a chain sends least, doubling distances take fewest rounds",
    "exscan": "one at a time: a chain sends least, doubling distances take fewest rounds",
    "barrier": "one at a time: dissemination takes fewest rounds, and in each of them everyone sends a token",
}
"""How the bounds on rounds and volume can be met: the end of a sentence."""
