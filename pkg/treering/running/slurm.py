"""Slurm's compressed lists of nodes and tasks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import product

from treering.core.errors import Refused
from treering.running.hosts import Host

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def parse_nodes(text: str) -> tuple[str, ...]:
    """Write out a compressed list of nodes; leading zeros are part of a name.

    Examples
    --------
    >>> parse_nodes("b04-[09-10],nodeB[001,003],n[1-2]m3")
    ('b04-09', 'b04-10', 'nodeB001', 'nodeB003', 'n1m3', 'n2m3')
    """
    return tuple(name for item in _split(text) for name in _expand(item, text))


def parse_tasks(text: str) -> tuple[int, ...]:
    """Write out a compressed list of tasks per node.

    Examples
    --------
    >>> parse_tasks("2(x3),1")
    (2, 2, 2, 1)
    """
    counts: list[int] = []
    for item in text.split(",") if text else []:
        match = _TASKS.fullmatch(item.strip())
        if match is None:
            raise Refused(f"not a Slurm list of tasks per node: {text!r} (at {item!r})")
        counts += [int(match[1])] * int(match[2] or 1)
    return tuple(counts)


def allocation(environ: Mapping[str, str] = os.environ) -> tuple[Host, ...] | None:
    """Tell which hosts the Slurm job that we are in has, or None outside of any job."""
    nodes = parse_nodes(environ.get("SLURM_JOB_NODELIST", ""))
    if not nodes:
        return None
    tasks = parse_tasks(environ.get("SLURM_TASKS_PER_NODE", ""))
    if tasks and len(tasks) != len(nodes):
        raise Refused(
            f"Slurm names {len(nodes)} nodes (SLURM_JOB_NODELIST={environ['SLURM_JOB_NODELIST']}) but tasks for "
            f"{len(tasks)} (SLURM_TASKS_PER_NODE={environ['SLURM_TASKS_PER_NODE']})")
    return tuple(Host(name, slots) for name, slots in zip(nodes, tasks or [1] * len(nodes), strict=True))


def _split(text: str) -> Iterator[str]:
    """Split at the commas that stand outside of brackets."""
    for item in re.split(r",(?![^\[]*\])", text) if text.strip() else []:
        if not item.strip():
            raise Refused(f"an empty name in the list of nodes {text!r}")
        yield item.strip()


def _expand(item: str, text: str) -> Iterator[str]:
    literals_and_ranges = _BRACKETS.split(item)
    literals, ranges = literals_and_ranges[::2], literals_and_ranges[1::2]
    if any(character in literal for literal in literals for character in "[] \t"):
        raise Refused(f"not a Slurm list of nodes: {text!r} (at {item!r})")
    for numbers in product(*(_numbers(part, text) for part in ranges)):
        yield literals[0] + "".join(n + literal for n, literal in zip(numbers, literals[1:], strict=True))


def _numbers(ranges: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise Refused(f"not a range of nodes: {part!r} in {text!r}")
        first, last = match[1], match[2] or match[1]
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers
