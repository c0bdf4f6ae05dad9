"""Which algorithm runs when none was named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.algorithm import Algorithm
from ..core.collective import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    EXSCAN,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    SCATTER,
    Collective,
)
from ..core.cost import weight
from ..core.errors import Refused
from ..readers.certificate import is_proved
from ..table import algorithms_of, find_algorithm

SHORT = 32 * 1024
"""Bytes of payload below which the number of rounds decides, and above which the bytes do."""

_SHORT = {
    BROADCAST: "binomial", SCATTER: "binomial", GATHER: "binomial", REDUCE: "binomial", ALL_GATHER: "bruck",
    ALL_REDUCE: "doubling", REDUCE_SCATTER: "halving", ALL_TO_ALL: "bruck",
    SCAN: "doubling", EXSCAN: "exchange", BARRIER: "dissemination"}
_LONG = {
    BROADCAST: "scatter-ring", SCATTER: "linear", GATHER: "linear", REDUCE: "scatter-ring", ALL_GATHER: "ring",
    ALL_REDUCE: "ring", REDUCE_SCATTER: "ring", ALL_TO_ALL: "pairwise",
    SCAN: "chain", EXSCAN: "chain", BARRIER: "dissemination"}
_IN_ORDER = {
    REDUCE: "binomial-in-order", ALL_REDUCE: "doubling", REDUCE_SCATTER: "reduce-then-scatter", SCAN: "doubling",
    EXSCAN: "exchange"}


@dataclass(frozen=True)
class Choice:
    """An algorithm with its parameters, why it was taken, and whether it was proved for this number of ranks and root."""

    algorithm: Algorithm
    parameters: tuple[tuple[str, int], ...]
    why: str
    size: int
    root: int = 0

    @property
    def name(self) -> str:
        return self.algorithm.spell(self.algorithm.settings(dict(self.parameters)))

    @property
    def proved(self) -> bool:
        return is_proved(self.algorithm, self.size, self.root, dict(self.parameters))

    def __str__(self) -> str:
        proof = "proved" if self.proved else "unproved"
        return f"{self.algorithm.collective} {self.name}: {self.why}; {proof} for {self.size} ranks"


def choose(
    collective: Collective, size: int, nbytes: int, in_order: bool = False, asked: str | Algorithm | None = None,
    root: int = 0,
) -> Choice:
    """Decide which algorithm runs: the same on every rank, since all know the same facts.

    Parameters
    ----------
    nbytes
        Of the payload: the whole vector, or the parts of all ranks together.
    in_order
        Whether contributions must be combined in rank order, because the operator does not commute.
    asked
        The algorithm that the caller named, if any: it runs or is refused, never replaced.

    Raises
    ------
    UnknownName, Refused
        If the one asked for does not exist, or cannot serve.
    """
    given: dict[str, int] = {}
    if (named := understood(asked)) is not None:
        (algorithm, given), why = _asked(collective, size, in_order, named), "asked for"
    else:
        name, why = _suitable(collective, nbytes, in_order)
        algorithm, _ = find_algorithm(collective, name)
    settings = algorithm.settings(given, size, weight(nbytes))
    return Choice(algorithm, tuple(settings.items()), why, size, root)


def _suitable(collective: Collective, nbytes: int, in_order: bool) -> tuple[str, str]:
    """The name of an algorithm that suits, and why."""
    if in_order and not collective.repeats:
        return _IN_ORDER[collective], "the operator does not commute"
    if nbytes < SHORT:
        return _SHORT[collective], f"{nbytes} bytes are short, so few rounds"
    return _LONG[collective], f"{nbytes} bytes are long, so few bytes"


def understood(asked: Any) -> str | Algorithm | None:
    """Check that an algorithm is asked for by its name or its record, or not at all."""
    if asked is None or isinstance(asked, (str, Algorithm)):
        return asked
    raise Refused(f"an algorithm is asked for by its name or its record, not by {asked!r}")


def _asked(
    collective: Collective, size: int, in_order: bool, asked: str | Algorithm,
) -> tuple[Algorithm, dict[str, int]]:
    algorithm, parameters = find_algorithm(collective, asked) if isinstance(asked, str) else (asked, {})
    if algorithm.collective is not collective:
        raise Refused(f"{algorithm} is no algorithm for {collective}")
    if reason := algorithm.why_not(size):
        raise Refused(reason)
    if in_order and not algorithm.in_order:
        fit = ", ".join(a.name for a in algorithms_of(collective) if a.in_order)
        raise Refused(f"{algorithm} needs an operator that commutes; those that keep rank order are {fit or 'none'}")
    return algorithm, parameters
