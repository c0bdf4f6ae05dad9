"""One call of a collective as one rank sees it: its buffers, how many elements, which root and operator."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ..core.collective import SCATTER, Case, Collective
from ..core.errors import Refused
from ..core.layout import total
from .buffers import Buffer, lent, read, written
from .operators import Operator, operator_on


@dataclass(frozen=True)
class Call:
    """A call that has been understood and found right, as far as one rank can see.

    Attributes
    ----------
    counts
        Elements of each unit of the payload. What only moves is counted in bytes, so that ranks may describe the same data
        by different types; what is reduced, in elements.
    given, result
        The caller's buffers, flat; in place, the same one twice; empty where this rank has none.
    """

    collective: Collective
    size: int
    root: int
    counts: int | tuple[int, ...]
    in_place: bool
    given: NDArray[Any]
    result: NDArray[Any]
    operator: Operator | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the payload: of the whole vector, or the parts of all ranks together."""
        return total(self.collective, self.size, self.counts) * self.given.itemsize


class Arguments:
    """The arguments of a call, read one after the other: which buffers this rank uses, then what they hold.

    Parameters
    ----------
    counts
        Elements of each rank's part, where they are not all equal.
    """

    def __init__(self, collective: Collective, rank: int, size: int, root: Any, counts: Sequence[int] | None = None) -> None:
        self.collective, self.rank, self.size = collective, rank, size
        self.root = _root(root, size)
        self.counts = None if counts is None else _counts(counts, size)
        self.parts = dict(zip(("in", "out"), _parts(collective, rank, size, self.root)))

    def call(self, sendbuf: Any, recvbuf: Any, op: MPI.Op | None = None) -> Call:
        """Read the buffers.

        Raises
        ------
        Refused
            For anything that cannot be right, before any message is sent.
        """
        if self.collective.reduces and not isinstance(op, MPI.Op):
            raise Refused(f"{self.collective}: {op!r} is not an operator")
        has_both = all(self.parts.values())  # then None is MPI.IN_PLACE, as in mpi4py
        in_place = any(spec is MPI.IN_PLACE or (has_both and spec is None) for spec in (sendbuf, recvbuf))
        given: Buffer | None
        result: Buffer | None
        if in_place:
            given = result = self.one_buffer(sendbuf, recvbuf)
        else:
            given, result = self.buffer("in", sendbuf), self.buffer("out", recvbuf)
        known = given or result
        assert known is not None, "a rank takes part in every collective"
        self.check_types(given, result)
        counts = self.counts or self.unit(given, result)
        self.check_lengths(given, result, counts, in_place)
        none = known.array[:0]
        return Call(
            self.collective, self.size, self.root, counts, in_place,
            given.array if given else none, result.array if result else none,
            operator_on(op, known) if op is not None else None)

    def buffer(self, space: str, spec: Any) -> Buffer | None:
        """The send or the receive buffer, if this rank uses it. What is not reduced is taken as bytes."""
        parts = self.parts[space]
        if not parts:
            return None
        payload = self.collective.one_buffer and self.rank == self.root
        return self.cut(read if space == "in" else lent if payload else written, spec, parts)

    def cut(self, reader: Callable[[Any, int], Buffer], spec: Any, parts: int) -> Buffer:
        """A buffer of so many parts, which must be equal unless there are counts."""
        if self.counts:
            parts = 1
        buffer = reader(spec, parts)
        if buffer.count % parts:
            raise Refused(f"{self.collective}: a buffer of {buffer.count} elements has no {parts} equal parts")
        return buffer if self.collective.reduces else buffer.bytes()

    def one_buffer(self, sendbuf: Any, recvbuf: Any) -> Buffer:
        """The buffer of a call in place."""
        if self.collective.one_buffer:
            raise Refused(f"{self.collective} has one buffer only, which MPI.IN_PLACE cannot stand for")
        if not all(self.parts.values()) and self.collective.rooted:
            raise Refused(f"{self.collective}: MPI.IN_PLACE has a meaning only at the root, which is rank {self.root}")
        scatters = self.collective is SCATTER
        spec = sendbuf if scatters else recvbuf
        if spec is MPI.IN_PLACE or spec is None:
            side = "receive" if scatters else "send"
            raise Refused(f"{self.collective}: MPI.IN_PLACE stands for the {side} buffer, and only for that")
        case = Case(self.size, self.root, self.collective.units(self.size))
        if all(self.parts.values()) and not self.collective.runs_in_place(self.rank, case):
            raise Refused(f"{self.collective} has no in-place form")
        return self.cut(written, spec, max(self.parts.values()))

    def own_count(self, sendbuf: Any, recvbuf: Any) -> int:
        """How many elements this rank's part of a reduce-scatter has when no counts are given: as its buffer holds."""
        if sendbuf is MPI.IN_PLACE or sendbuf is None:
            raise Refused(f"{self.collective}: in place, the counts of all ranks must be given")
        return written(recvbuf).count

    def check_types(self, given: Buffer | None, result: Buffer | None) -> None:
        if given and result and given.array.dtype != result.array.dtype:
            raise Refused(f"{self.collective}: sends {given.type_name} and receives {result.type_name}")
        if given and result and given is not result and np.may_share_memory(given.array, result.array):
            raise Refused(f"{self.collective}: the buffers overlap; pass MPI.IN_PLACE to have one serve as both")

    def unit(self, given: Buffer | None, result: Buffer | None) -> int:
        """How many elements each part has, by the buffer that holds one part, or else by one that holds several."""
        shares = [(self.parts[space], b) for space, b in (("in", given), ("out", result)) if b]
        parts, buffer = (max if given is result else min)(shares, key=lambda share: share[0])
        return buffer.count // parts

    def check_lengths(
        self, given: Buffer | None, result: Buffer | None, counts: int | tuple[int, ...], in_place: bool,
    ) -> None:
        unit = "elements" if self.collective.reduces else "bytes"
        for space, buffer in (("in", given), ("out", result)):
            parts = max(self.parts.values()) if in_place else self.parts[space]
            own = counts * parts if isinstance(counts, int) else counts[self.rank]
            needed = own if isinstance(counts, int) or parts == 1 else sum(counts)
            if buffer and buffer.count != needed:
                name = "send" if space == "in" else "receive"
                raise Refused(f"{self.collective}: the {name} buffer holds {buffer.count} {unit}, not {needed}")


@lru_cache(maxsize=1024)
def _parts(collective: Collective, rank: int, size: int, root: int) -> tuple[int, int]:
    """How many parts of the payload a rank's send and receive buffer have."""
    case = Case(size, root, collective.units(size))
    return len(collective.place(rank, case, "in")), len(collective.place(rank, case, "out"))


def _root(root: Any, size: int) -> int:
    try:
        found = operator.index(root)
    except TypeError:
        raise Refused(f"a root is a rank, not {root!r}") from None
    if not 0 <= found < size:
        raise Refused(f"root {found} is not one of the ranks 0 to {size - 1}")
    return found


def _counts(counts: Sequence[int], size: int) -> tuple[int, ...]:
    try:
        found = tuple(operator.index(count) for count in counts)
    except TypeError:
        raise Refused(f"counts are whole numbers, one for each rank, not {counts!r}") from None
    if len(found) != size:
        raise Refused(f"there are {len(found)} counts for {size} ranks")
    if min(found) < 0:
        raise Refused(f"a count of {min(found)} elements is less than none")
    return found
