"""Finding collectives and algorithms by the names people give them."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

import treering.algorithms  # noqa: F401 — importing them enters them into the table

from .core.algorithm import TABLE, Algorithm, Schedule
from .core.collective import COLLECTIVES, Collective
from .core.errors import Refused, UnknownName


def collectives() -> list[Collective]:
    """The collectives that there are, those of users' own algorithms last."""
    return list(dict.fromkeys([*COLLECTIVES, *(a.collective for a in TABLE.values())]))


def load(path: Path) -> list[Algorithm]:
    """Run a Python file that declares algorithms of a user's own, and return those that it enters into the table.

    Raises
    ------
    Refused
        If there is no such file, it fails, or it declares none.
    """
    name = f"treering_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise Refused(f"{path} is no Python file")
    before = set(TABLE.values())
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Refused("".join(traceback.format_exception_only(error)).strip() + f" (in {path})") from error
    declared = [a for a in TABLE.values() if a not in before]
    if not declared:
        raise Refused(f"{path} declares no algorithm; it does so by the decorator treering.core.algorithm")
    return declared


def find_collective(name: str) -> Collective:
    """The collective of a name, however it is spelled: ``allreduce``, ``all-reduce``, ``all_reduce``, ``bcast`` …

    Raises
    ------
    UnknownName
        With the names that are known.
    """
    spelled = _plain(name)
    for collective in collectives():
        if spelled in map(_plain, (collective.name, *collective.aliases)):
            return collective
    raise UnknownName(f"no collective is called {name!r}; there are {', '.join(c.name for c in collectives())}")


def algorithms_of(collective: Collective) -> list[Algorithm]:
    """The algorithms of a collective, in the order of the table."""
    return [a for a in TABLE.values() if a.collective is collective]


def find_algorithm(collective: Collective, name: str) -> tuple[Algorithm, dict[str, int]]:
    """The algorithm of a name, with the parameters that the name sets: ``ring``, ``chain:segments=4``.

    Raises
    ------
    UnknownName
        With the names that are known, the likeliest first.
    Refused
        For a parameter that is no number, or out of range.
    """
    plain, _, assignments = name.partition(":")
    known = {a.name: a for a in algorithms_of(collective)}
    spelled = {_plain(n): n for n in known}
    found = known.get(spelled.get(_plain(plain), ""))
    if found is None:
        raise UnknownName(
            f"{collective} has no algorithm {plain!r}; it has {', '.join(_closest_first(plain, known))}")
    given = dict(_assignment(part) for part in assignments.split(",") if part)
    found.settings(given)
    return found, given


def schedule(collective: str, algorithm: str, size: int, root: int = 0, **parameters: int) -> Schedule:
    """Make the schedule of an algorithm for a number of ranks.

    Parameters
    ----------
    collective, algorithm
        Names in any spelling; the algorithm's may set parameters: ``chain:segments=4``.
    size
        How many ranks.
    root
        The distinguished rank of a rooted collective.
    **parameters
        Of the algorithm; they win over those in its name.

    Raises
    ------
    UnknownName
        If there is no such collective, algorithm or parameter.
    Refused
        If the algorithm does not run on so many ranks, or the root or a parameter is out of range.

    Examples
    --------
    >>> schedule("allreduce", "ring", size=4).rounds(0)[0].sends
    (Send(peer=1, slots=(in[3],)),)
    """
    found, given = find_algorithm(find_collective(collective), algorithm)
    return found.schedule(size, root, **{**given, **parameters})


def _display(schedule: Schedule) -> str:
    # Imported when a notebook asks for it: most programs draw nothing.
    from .readers.show import embedded

    return embedded(schedule)


Schedule.display = _display


def _assignment(part: str) -> tuple[str, int]:
    name, _, value = part.partition("=")
    try:
        return name.strip(), int(value)
    except ValueError:
        raise Refused(f"a parameter is given as name=number, not {part!r}") from None


def _closest_first(name: str, known: Iterable[str]) -> list[str]:
    return sorted(known, key=lambda n: -difflib.SequenceMatcher(None, name, n).ratio())


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
