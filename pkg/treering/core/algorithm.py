"""The record of an algorithm, the table of all of them, and the schedules that they make."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from .collective import Case, Collective, partner
from .errors import Refused, UnknownName
from .schedule import Copy, Round

ScheduleFunction: TypeAlias = Callable[..., Iterable[Round]]
"""``f(rank, size, [root], **parameters)``, yielding the rounds of one rank."""


@dataclass(frozen=True)
class Parameter:
    """A number that an algorithm takes, e.g. how many segments a pipeline has.

    Attributes
    ----------
    default
        Its value where the size of the payload is not known.
    minimum
        The least value that makes sense.
    best
        Maps ``(size, weight)``, of two ranks or more, to the value that costs least in the α-β model. The weight of a payload
        of m bytes is mβ/α: how many messages' latency it takes to send.
    choices
        The values of which the nearest to the best is taken: near the least cost the slope is small, and few need a proof.
    """

    name: str
    default: int
    minimum: int
    meaning: str
    best: Callable[[int, float], float] | None = None
    choices: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)

    @property
    def usual(self) -> tuple[int, ...]:
        """The values that are chosen for a payload of known weight; certificates are shipped for them."""
        if self.best is None:
            return (self.default,)
        return tuple(value for value in self.choices if value >= self.minimum)

    def value(self, size: int, weight: float | None = None) -> int:
        """The value for a number of ranks and, if it is known, the weight of the payload."""
        if self.best is None or weight is None or size < 2:
            return self.default
        best = max(self.best(size, weight), 1.0)
        return min(self.usual, key=lambda value: abs(math.log2(value / best)))


@dataclass(frozen=True)
class Requirement:
    """What an algorithm asks of the number of ranks."""

    text: str
    holds: Callable[[int], bool]


RADICES = (*range(2, 9), 16, 32, 64)
"""The radices among which an algorithm chooses."""

POWER_OF_TWO = Requirement("power of two", lambda size: size & (size - 1) == 0)
EVEN = Requirement("multiple of two", lambda size: size % 2 == 0)


@dataclass(frozen=True)
class Schedule:
    """What every rank does to carry out one collective once: the object that all readers read.

    Attributes
    ----------
    name
        Of the algorithm, with the parameters that are not at their defaults.
    collective, case
        What it must do, and for how many ranks, which root and how many blocks.
    program
        Maps a rank to its rounds. It costs that rank's own operations, nothing more.
    in_order
        Whether reductions claim to combine contributions in rank order.
    """

    name: str
    collective: Collective
    case: Case
    program: Callable[[int], Iterable[Round]] = field(repr=False)
    in_order: bool = False

    display: ClassVar[Callable[[Schedule], str] | None] = None
    """How a notebook shows a schedule as HTML; set by the reader that draws."""

    @property
    def size(self) -> int:
        return self.case.size

    def rounds(self, rank: int) -> tuple[Round, ...]:
        """The rounds of one rank, without idle ones."""
        return tuple(filter(None, self.program(rank)))

    def _repr_html_(self) -> str | None:
        return Schedule.display(self) if Schedule.display else None


@dataclass(frozen=True, eq=False)
class Algorithm:
    """One row of the table. Call it to get the rounds of a rank, as other algorithms do that are composed of it.

    Attributes
    ----------
    name, collective, family
        What it is called, what it does, and by which idea: ``ring``, ``tree``, ``halving``, ``direct``.
    function
        Yields the rounds of one rank, for two ranks or more.
    blocks
        Maps ``(size, **parameters)`` to how many blocks the payload is cut into; by default one for each unit.
    in_order
        Whether it reduces in rank order for every root, so that the operator need not commute.
    requires
        What it asks of the number of ranks.
    parameters
        The numbers it takes besides rank, size and root.
    source
        Where it was published, or whose it is.
    """

    name: str
    collective: Collective
    family: str
    function: ScheduleFunction
    blocks: Callable[..., int]
    in_order: bool = False
    requires: tuple[Requirement, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    source: str = ""

    def __str__(self) -> str:
        return f"{self.collective} {self.name}"

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def __call__(self, rank: int, size: int, *root: int, **parameters: int) -> Iterable[Round]:
        """The rounds of one rank. A rank that is alone just keeps what it has."""
        if size > 1:
            return self.function(rank, size, *root, **parameters)
        case = Case(1, 0, self.blocks(1, **self.settings(parameters)))
        given = self.collective.before(0, case)
        kept = [Copy(slot, partner(slot)) for slot in self.collective.after(0, case) if slot not in given]
        return iter((Round(*kept),))

    def settings(self, given: Mapping[str, int], size: int = 1, weight: float | None = None) -> dict[str, int]:
        """All parameters with their values: those given, and others as suits a number of ranks and the weight of a payload.

        Without a weight the others are at their defaults. See `Parameter` for what a weight is.

        Raises
        ------
        UnknownName
            For a parameter that it does not have.
        Refused
            For a value out of range.
        """
        known = {p.name: p for p in self.parameters}
        for name, value in given.items():
            if name not in known:
                raise UnknownName(f"{self} has no parameter {name!r}; it has {', '.join(known) or 'none'}")
            if value < known[name].minimum:
                raise Refused(f"{self}: {name}={value} is less than {known[name].minimum}")
        return {name: given[name] if name in given else p.value(size, weight) for name, p in known.items()}

    def at(self, **parameters: int) -> Algorithm:
        """The same algorithm with other defaults, under the name that says so."""
        settings = self.settings(parameters)
        fixed = (replace(p, default=settings[p.name], best=None) for p in self.parameters)
        return replace(self, name=self.spell(settings), parameters=tuple(fixed))

    def why_not(self, size: int) -> str | None:
        """Why it cannot run on a number of ranks, or None. A rank that is alone can run everything."""
        unmet = [r.text for r in self.requires if size > 1 and not r.holds(size)]
        return f"{self} needs a number of ranks that is a {' and '.join(unmet)}, not {size}" if unmet else None

    def schedule(self, size: int, root: int = 0, **parameters: int) -> Schedule:
        """Make the schedule for a number of ranks.

        Raises
        ------
        Refused
            If the size, the root or a parameter is out of range, or the algorithm does not run on this many ranks.
        """
        if size < 1:
            raise Refused(f"{self}: the number of ranks must be at least 1, not {size}")
        if not 0 <= root < size:
            raise Refused(f"{self}: root {root} is not one of the ranks 0 to {size - 1}")
        if not self.collective.rooted and root:
            raise Refused(f"{self.collective} has no root")
        if reason := self.why_not(size):
            raise Refused(reason)
        settings = self.settings(parameters)
        where = (root,) if self.collective.rooted else ()
        return Schedule(
            name=self.spell(settings), collective=self.collective, in_order=self.in_order,
            case=Case(size, root, self.blocks(size, **settings)),
            program=lambda rank: self(rank, size, *where, **settings))

    def spell(self, settings: Mapping[str, int]) -> str:
        """The name with the parameters that differ from their defaults: ``chain:segments=4``."""
        changed = [f"{p.name}={settings[p.name]}" for p in self.parameters if settings[p.name] != p.default]
        return ":".join([self.name, ",".join(changed)]) if changed else self.name


def _units(collective: Collective) -> Callable[..., int]:
    return lambda size, **parameters: collective.units(size)


def per_rank(size: int, **parameters: int) -> int:
    """As many blocks as ranks."""
    return size


TABLE: dict[tuple[str, str], Algorithm] = {}
"""All algorithms by the names of their collective and their own; filled as modules of algorithms are imported."""


def algorithm(
    collective: Collective, name: str, *, family: str, blocks: Callable[..., int] | None = None, in_order: bool = False,
    requires: Iterable[Requirement] = (), parameters: Iterable[Parameter] = (), source: str = "",
) -> Callable[[ScheduleFunction], Algorithm]:
    """Enter a schedule function into the table. See `Algorithm` for the meaning of the fields.

    Examples
    --------
    >>> from treering.core import ALL_GATHER, IN, OUT, Recv, Round, Send, algorithm
    >>> @algorithm(ALL_GATHER, "everyone-to-everyone", family="direct")
    ... def direct(rank, size):
    ...     '''Send the own block to every other rank. Rounds: ``size - 1``. Sent: ``(size - 1) / size``.'''
    ...     others = [r for r in range(size) if r != rank]
    ...     yield Round(Copy(OUT(rank), IN(rank)), *(Send(r, IN(rank)) for r in others), *(Recv(r, OUT(r)) for r in others))
    >>> direct.schedule(3).rounds(0)[0].sends[1]
    Send(peer=2, slots=(in[0],))
    >>> del TABLE["all-gather", "everyone-to-everyone"]
    """
    def enter(function: ScheduleFunction) -> Algorithm:
        record = Algorithm(
            name=name, collective=collective, family=family, function=function, blocks=blocks or _units(collective),
            in_order=in_order, requires=tuple(requires), parameters=tuple(parameters), source=source)
        known = TABLE.get((collective.name, name))
        if known and inspect.getsourcefile(known.function) != inspect.getsourcefile(function):
            raise Refused(f"{known} is already in the table; choose another name")
        TABLE[collective.name, name] = record
        return record
    return enter
