"""Data for checks: what every rank contributes, and what every rank must end with, from the collective's own states.

Contributions are functions of rank and position, so that a block from the wrong rank or at the wrong place shows, and so
that every rank can work out what all of them must hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..core.collective import Case, Collective, partner
from ..core.schedule import Block, Slot
from ..running.kinds import kind_of

Array: TypeAlias = NDArray[Any]

OPERATORS = ("sum", "prod", "max", "min", "land", "lor", "lxor", "band", "bor", "bxor", "maxloc", "minloc")
DATATYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128")
"""What operators and datatypes are called."""

POISON = 0xA5
"""What bytes hold that nothing was written to."""


@dataclass(frozen=True)
class Sample:
    """The data of one check.

    Attributes
    ----------
    count
        Elements of each unit of the payload.
    op
        The name of the operator, e.g. ``"sum"``.
    exact
        Whether values are such that every order of reduction gives the same bits, or rounding is left to happen.
    """

    collective: Collective
    size: int
    root: int
    count: int
    dtype: np.dtype[Any]
    op: str
    exact: bool = True

    @property
    def case(self) -> Case:
        return Case(self.size, self.root, self.collective.units(self.size))

    @property
    def operation(self) -> str:
        """What is done to the elements, for people: ``sum of float32``, ``maxloc of int16``, ``movement``."""
        if not self.collective.reduces:
            return "movement"
        return f"{self.op} of {self.dtype[0] if self.dtype.names else self.dtype}"

    def given(self, rank: int) -> Array:
        """What a rank has in its send buffer; empty if it has none."""
        return self._laid(rank, self.collective.place(rank, self.case, "in"))

    def receives(self, rank: int) -> Array:
        """A rank's receive buffer before the call: poisoned, but for a broadcast's payload."""
        before = self.collective.before(rank, self.case)
        slots = self.collective.place(rank, self.case, "out")
        return self._filled([self.contribution(rank, s.block) if s in before else None for s in slots])

    def in_place(self, rank: int) -> Array:
        """The one buffer of a rank that runs in place: its input where it lies, the rest poisoned."""
        given, result = (self.collective.place(rank, self.case, space) for space in ("in", "out"))
        if len(given) >= len(result):
            return self._laid(rank, given)
        return self._filled([self.contribution(rank, s.block) if partner(s) in given else None for s in result])

    def expected(self, rank: int) -> tuple[Array, Array]:
        """What a rank must end with, and by how much each element may be off."""
        after = self.collective.after(rank, self.case)
        values = [self.reduced(slot.block, origins) for slot, origins in after.items()]
        empty = np.empty(0, self.dtype)
        return np.concatenate([empty, *(v for v, _ in values)]), np.concatenate([np.empty(0), *(b for _, b in values)])

    def _laid(self, rank: int, slots: tuple[Slot, ...]) -> Array:
        return self._filled([self.contribution(rank, slot.block) for slot in slots])

    def _filled(self, parts: list[Array | None]) -> Array:
        poison = np.full(self.count * self.dtype.itemsize, POISON, np.uint8).view(self.dtype)
        return np.concatenate([np.empty(0, self.dtype), *(poison if part is None else part for part in parts)])

    def contribution(self, rank: int, block: Block) -> Array:
        """What a rank contributes to a block."""
        index = block if isinstance(block, int) else block[0] * self.size + block[1]
        position = np.arange(index * self.count, (index + 1) * self.count, dtype=np.uint64)
        return values(_mixed(position, rank), self.dtype, self.op, self.size, self.exact)

    def reduced(self, block: Block, origins: range) -> tuple[Array, Array]:
        """What a block is when reduced over some ranks, by numpy, and by how much each element may be off."""
        stack = np.stack([self.contribution(rank, block) for rank in origins])
        if len(stack) == 1:
            return stack[0], np.zeros(self.count)
        return oracle(stack, self.op, self.exact)


def _mixed(position: NDArray[np.uint64], rank: int) -> NDArray[np.uint64]:
    """Well mixed bits of every position and rank (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        bits = position * np.uint64(0x9E3779B97F4A7C15) + np.uint64(rank + 1) * np.uint64(0xD1B54A32D192ED03)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def values(bits: NDArray[np.uint64], dtype: np.dtype[Any], op: str, size: int, exact: bool) -> Array:
    """Elements of a type made of random bits."""
    kind = kind_of(dtype)
    if kind == "pair":
        pairs = np.empty(bits.size, dtype)
        first, second = dtype.names or ()
        pairs[first], pairs[second] = bits % np.uint64(5), bits >> np.uint64(40)  # few values, so that ties abound
        return pairs
    if kind == "b":
        return (bits & np.uint64(1)).astype(dtype)
    if kind in "iu":
        logical = op in ("land", "lor", "lxor")
        return np.where(bits >> np.uint64(63), bits, 0).astype(dtype) if logical else bits.astype(dtype)
    if kind == "c":
        real = np.dtype(f"f{dtype.itemsize // 2}")
        if op == "prod" and exact:
            return np.array([1, 1j, -1, -1j], dtype)[bits % np.uint64(4)]
        other = _mixed(bits, 0)
        return (_real(bits, real, op, size, exact) + 1j * _real(other, real, op, size, exact)).astype(dtype)
    return _real(bits, dtype, op, size, exact)


def _real(bits: NDArray[np.uint64], dtype: np.dtype[Any], op: str, size: int, exact: bool) -> Array:
    """Real numbers: small whole ones for exact sums, powers of two for exact products, else from a half to one."""
    if not exact or op not in ("sum", "prod"):
        return (0.5 + (bits >> np.uint64(12)).astype(np.float64) / 2.0**53).astype(dtype)
    if op == "prod":
        exponent = (bits % np.uint64(3)).astype(np.int64) - 1 if size <= 12 else np.zeros(bits.size, np.int64)
        return (np.where(bits >> np.uint64(63), -1.0, 1.0) * np.exp2(exponent)).astype(dtype)
    largest = max(1, min(1000, 2 ** _finfo(dtype).nmant // size))
    return ((bits % np.uint64(2 * largest + 1)).astype(np.int64) - largest).astype(dtype)


def _finfo(dtype: np.dtype[Any]) -> Any:
    """numpy's facts about a floating point type, which it does not have of bfloat16."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


_LOGICAL = {"land": np.logical_and, "lor": np.logical_or, "lxor": np.logical_xor}
_EXACT = {
    "max": np.maximum, "min": np.minimum, "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
    **_LOGICAL}


def oracle(stack: Array, op: str, exact: bool) -> tuple[Array, Array]:
    """The reduction of the rows of an array by numpy alone, and by how much each element of a result may be off.

    Sums and products of floating point numbers are taken in extended precision. Whatever the order of p - 1 pairwise
    reductions, the error is at most (p - 1) ε times the sum of the absolute values, or the absolute product (Higham,
    Accuracy and Stability, ch. 3–4); complex products have a small factor more.
    """
    dtype, none = stack.dtype, np.zeros(stack.shape[1])
    if op in ("maxloc", "minloc"):
        return _first_best(stack, op), none
    if op in _EXACT:
        return _EXACT[op].reduce(stack, axis=0).astype(dtype), none
    reduce = np.add.reduce if op == "sum" else np.multiply.reduce
    kind = kind_of(dtype)
    if kind in "iu":
        return reduce(stack, axis=0, dtype=dtype), none
    wide = np.clongdouble if kind == "c" else np.longdouble
    exactly = reduce(stack.astype(wide), axis=0)
    scale = reduce(np.abs(stack.astype(wide)), axis=0).astype(np.float64)
    real = np.dtype(f"f{dtype.itemsize // 2}") if kind == "c" else dtype
    steps = len(stack) * (4 if kind == "c" else 1)
    return exactly.astype(dtype), none if exact else steps * float(_finfo(real).eps) * scale


def _first_best(stack: Array, op: str) -> Array:
    """The best value of each column with, among equal ones, the lowest index."""
    value, index = stack.dtype.names or ()
    best = stack[value].max(axis=0) if op == "maxloc" else stack[value].min(axis=0)
    result = np.empty(stack.shape[1], stack.dtype)
    result[value] = best
    far = np.iinfo(stack[index].dtype).max
    result[index] = np.where(stack[value] == best, stack[index], far).min(axis=0)
    return result
