"""Sets of numbers as people and files write them: ``1-16,32``."""

from __future__ import annotations

from collections.abc import Iterable


def spelled(numbers: Iterable[int]) -> str:
    """Write a set of numbers, runs of them as ranges.

    Examples
    --------
    >>> spelled([5, 1, 2, 3])
    '1-3,5'
    """
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def numbers(text: str) -> frozenset[int]:
    """Read what `spelled` wrote.

    Examples
    --------
    >>> sorted(numbers("1-3,5"))
    [1, 2, 3, 5]
    """
    runs = (part.partition("-") for part in text.split(",") if part)
    return frozenset(n for first, _, last in runs for n in range(int(first), int(last or first) + 1))
