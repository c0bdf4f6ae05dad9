"""The operators of reductions on numpy arrays: which datatypes each is defined for, and how it is computed.

Integers wrap as numpy's do. ``MAX``, ``MIN``, ``MAXLOC`` and ``MINLOC`` give NaN where any contribution is NaN, whatever the
rank that holds it and the algorithm; with equal values the lowest index wins, not the lowest rank. float16 and bfloat16 are
computed in float32 and rounded once in each pairwise reduction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ..core.errors import Refused
from .buffers import Buffer
from .kinds import kind_of

Array: TypeAlias = NDArray[Any]
Kernel: TypeAlias = Callable[[Array, Array, Array], object]
"""``kernel(left, right, into)`` puts ``left ⊕ right`` into an array that may be one of the two."""


@dataclass(frozen=True)
class Operator:
    """An operator on one datatype."""

    name: str
    commutes: bool
    kernel: Kernel


def _chosen(first_wins: Callable[[Array, Array], Array]) -> Kernel:
    """MAXLOC and MINLOC: a total order in which NaN comes first, then the better value, then the lower index."""
    def kernel(left: Array, right: Array, into: Array) -> None:
        value, index = left.dtype.names or ()
        a, b = left[value], right[value]
        a_nan, b_nan = a != a, b != b
        tie = (a == b) | (a_nan & b_nan)
        right_wins = np.where(tie, right[index] < left[index], ~a_nan & (b_nan | first_wins(b, a)))
        into[...] = np.where(right_wins, right, left)
    return kernel


def _ufunc(function: np.ufunc) -> Kernel:
    return lambda left, right, into: function(left, right, out=into)


_NUMBERS, _ORDERED, _PAIRS = ("i", "u", "f", "c"), ("i", "u", "f"), ("pair",)
_LOGICAL, _BITS = ("b", "i", "u"), ("i", "u", "byte")

_KERNELS: dict[int, tuple[str, tuple[str, ...], Kernel]] = {
    MPI.SUM.handle: ("sum", _NUMBERS, _ufunc(np.add)),
    MPI.PROD.handle: ("product", _NUMBERS, _ufunc(np.multiply)),
    MPI.MAX.handle: ("maximum", _ORDERED, _ufunc(np.maximum)),
    MPI.MIN.handle: ("minimum", _ORDERED, _ufunc(np.minimum)),
    MPI.LAND.handle: ("logical and", _LOGICAL, _ufunc(np.logical_and)),
    MPI.LOR.handle: ("logical or", _LOGICAL, _ufunc(np.logical_or)),
    MPI.LXOR.handle: ("logical xor", _LOGICAL, _ufunc(np.logical_xor)),
    MPI.BAND.handle: ("bitwise and", _BITS, _ufunc(np.bitwise_and)),
    MPI.BOR.handle: ("bitwise or", _BITS, _ufunc(np.bitwise_or)),
    MPI.BXOR.handle: ("bitwise xor", _BITS, _ufunc(np.bitwise_xor)),
    MPI.MAXLOC.handle: ("maximum and its index", _PAIRS, _chosen(np.greater)),
    MPI.MINLOC.handle: ("minimum and its index", _PAIRS, _chosen(np.less)),
}


def operator_on(op: MPI.Op, buffer: Buffer) -> Operator:
    """The operator that an MPI operator is on the elements of a buffer.

    Raises
    ------
    Refused
        If MPI does not define it for that datatype: logical operators take integers and booleans, bitwise ones integers and
        bytes, order needs real numbers, MAXLOC and MINLOC pairs, and sums and products numbers. Or if the user's own
        operator would be given elements for which MPI has no datatype.
    """
    if not op.is_predefined:
        return Operator("user-defined", op.Is_commutative(), _user_defined(op, buffer))
    if op.handle not in _KERNELS:
        raise Refused("this operator is not one of those that reduce")
    name, kinds, kernel = _KERNELS[op.handle]
    kind = "byte" if buffer.datatype == MPI.BYTE else kind_of(buffer.array.dtype)
    if kind not in kinds:
        raise Refused(f"the operator {name} is not defined for elements of type {buffer.type_name}")
    return Operator(name, True, kernel)


def _user_defined(op: MPI.Op, buffer: Buffer) -> Kernel:
    if buffer.datatype is None and not _is_known(buffer.array.dtype):
        raise Refused(f"MPI has no datatype for elements of type {buffer.type_name}; give the buffer as [array, datatype]")

    def kernel(left: Array, right: Array, into: Array) -> None:
        result = right.copy()  # MPI reduces into its right operand
        op.Reduce_local(buffer.message(left), buffer.message(result))
        into[...] = result
    return kernel


def _is_known(dtype: np.dtype[Any]) -> bool:
    """Whether MPI, as mpi4py sees it, has a datatype for numpy's."""
    try:
        MPI.Datatype.fromcode(dtype.char)
    except ValueError:
        return False
    return bool(dtype.isnative)
