"""Hostfiles, in the styles of Open MPI, Hydra and Slurm.

=================================  ==========================================
a line                             means
=================================  ==========================================
``node1 slots=2 max_slots=4``      Open MPI: two ranks, at most four
``node1:2``                        Hydra (MPICH, Intel MPI): two ranks
``node1`` or ``fe80::1``           one rank
``[fe80::1]:2``                    an IPv6 address takes brackets before ``:2``
``node[01-04]``                    Slurm: one rank on each
``# anything``                     a comment; empty lines are skipped
=================================  ==========================================

A host that is named again gets the ranks of all its lines, as the launchers do it.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from treering.core.errors import Refused
from treering.running.hosts import Host
from treering.running.slurm import parse_nodes

_NAME = re.compile(r"(?:[\w.-]+@)?[A-Za-z0-9_](?:[\w.-]*\w)?")
_BRACKETED = re.compile(r"\[([0-9A-Fa-f:.]+(?:%\w+)?)\]")
_KEYS = {"slots": "slots", "max_slots": "most", "max-slots": "most"}


def read_hostfile(path: Path) -> tuple[Host, ...]:
    """Read a hostfile.

    Raises
    ------
    Refused
        The message names the file, the line and its number.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"cannot read the hostfile {path}: {error}") from error
    return parse_hostfile(text, str(path))


def parse_hostfile(text: str, name: str = "hostfile") -> tuple[Host, ...]:
    r"""Parse the text of a hostfile; `name` stands in the messages.

    Examples
    --------
    >>> [str(host) for host in parse_hostfile("a slots=2\nb:3  # Hydra's way\na")]
    ['a:3', 'b:3']
    """
    merged: dict[str, Host] = {}
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        try:
            hosts = _parse_line(content) if content else ()
        except (ValueError, Refused) as error:
            raise Refused(f"{name}, line {number}: {error}: {line.strip()!r}") from error
        for host in hosts:
            before = merged.get(host.name)
            merged[host.name] = Host(host.name, before.slots + host.slots, host.most or before.most) if before else host
    for host in merged.values():
        if host.most is not None and host.most < host.slots:
            raise Refused(f"{name}: {host.name} has {host.slots} slots but at most {host.most}")
    if not merged:
        raise Refused(f"{name}: names no host")
    return tuple(merged.values())


def _parse_line(content: str) -> tuple[Host, ...]:
    # Open MPI allows blanks around the equals sign.
    first, *rest = re.sub(r"\s*=\s*", "=", content).split()
    names, count = _names_and_count(first)
    numbers: dict[str, int] = {} if count is None else {"slots": count}
    for word in rest:
        key, equals, value = word.partition("=")
        if key not in _KEYS or not equals:
            raise ValueError(f"unknown setting {word!r} (known: slots=N, max_slots=N)")
        if _KEYS[key] in numbers:
            raise ValueError(f"{key} is given twice")
        numbers[_KEYS[key]] = _positive(key, value)
    return tuple(Host(name, **numbers) for name in names)


def _names_and_count(word: str) -> tuple[tuple[str, ...], int | None]:
    """Split ``host:2`` where the colon is not part of an IPv6 address or the brackets those of a Slurm list."""
    if _is_ipv6(word):
        return (word,), None
    name, colon, count = word.rpartition(":") if re.search(r":[^\]:]*$", word) else (word, "", "")
    if (bracketed := _BRACKETED.fullmatch(name)) and _is_ipv6(bracketed[1]):
        names: tuple[str, ...] = (bracketed[1],)
    else:
        names = parse_nodes(name)
        for one in names:
            if _NAME.fullmatch(one) is None:
                raise ValueError(f"{one!r} is not the name of a host")
    if not names:
        raise ValueError("no host is named")
    return names, _positive("the number after the colon", count) if colon else None


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _positive(what: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{what} must be a number of at least 1, not {text!r}")
    return int(text)
