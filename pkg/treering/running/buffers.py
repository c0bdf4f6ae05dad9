"""What callers give as a buffer, as a flat array of elements. The one place that knows how arrays are held."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.util import dtlib
from numpy.typing import NDArray

from ..core.errors import Refused


@dataclass(frozen=True)
class Buffer:
    """A caller's buffer.

    Attributes
    ----------
    array
        Its elements, one-dimensional, sharing the caller's memory.
    datatype
        The MPI datatype that the caller named, if any.
    """

    array: NDArray[Any]
    datatype: MPI.Datatype | None = None

    @property
    def count(self) -> int:
        return self.array.size

    @property
    def type_name(self) -> str:
        return self.datatype.Get_name() or str(self.array.dtype) if self.datatype else str(self.array.dtype)

    def bytes(self) -> Buffer:
        """The same memory, byte by byte."""
        return Buffer(self.array.view(np.uint8))

    def message(self, array: NDArray[Any]) -> Any:
        """A part of this buffer, or scratch like it, in the form in which mpi4py takes it."""
        return array if self.datatype is None else [array.view(np.uint8), array.size, self.datatype]


def read(spec: Any, parts: int = 1) -> Buffer:
    """Read a buffer to send from, given as mpi4py takes it.

    Parameters
    ----------
    spec
        An array or anything else with the buffer protocol, or a list or tuple of it with ``count``, ``datatype``, ``count,
        datatype`` or ``count, displacement, datatype``; a count may be ``(count, displacement)``, or None for all there is.
    parts
        How many parts the buffer has; a count that is given is that of one part, as in mpi4py.

    Raises
    ------
    Refused
        For what is no contiguous memory of elements that treering can name.
    """
    if not isinstance(spec, (list, tuple)):
        return Buffer(_flat(spec))
    owner, count, displacement, datatype = _items(spec)
    array = _flat(owner)
    if datatype is not None:
        array = _typed(array, datatype, whole=count is None)
    start = 0 if displacement is None else _natural(displacement, "displacement")
    length = max(array.size - start, 0) if count is None else _natural(count, "count") * parts
    if start + length > array.size:
        raise Refused(f"the buffer holds {array.size} elements, not {start + length}")
    return Buffer(array[start:start + length], datatype)


def written(spec: Any, parts: int = 1) -> Buffer:
    """Read a buffer to receive into: as `read`, and it must be writable."""
    buffer = read(spec, parts)
    if not buffer.array.flags.writeable:
        raise Refused("the receive buffer is read-only")
    return buffer


def lent(spec: Any, parts: int = 1) -> Buffer:
    """Read a buffer that keeps what it holds, though algorithms may bring parts of that back: a read-only one is copied."""
    buffer = read(spec, parts)
    return buffer if buffer.array.flags.writeable else Buffer(buffer.array.copy(), buffer.datatype)


def _items(spec: Sequence[Any]) -> tuple[Any, Any, Any, MPI.Datatype | None]:
    """The array, count, displacement and datatype of a buffer given as a list; None for what is left to us."""
    if not 2 <= len(spec) <= 4:
        raise Refused(f"a buffer is given as [array, count, datatype], not as {len(spec)} things")
    array, *rest = spec
    datatype = rest.pop() if len(rest) > 1 or isinstance(rest[0], (MPI.Datatype, str)) else None
    count, displacement = (*rest, None, None)[:2]
    if isinstance(count, (list, tuple)) and len(count) == 2:
        count, displacement = count
    if isinstance(datatype, str):
        datatype = MPI.Datatype.fromcode(datatype)
    if not isinstance(datatype, MPI.Datatype | None):
        raise Refused(f"{datatype!r} is not an MPI datatype")
    return array, count, displacement, datatype


def _natural(number: Any, name: str) -> int:
    try:
        found = operator.index(number)
    except TypeError:
        raise Refused(f"{number!r} is not a {name}; a {name} for each rank belongs to the vector collectives") from None
    if found < 0:
        raise Refused(f"a {name} of {found} elements is less than none")
    return found


def _flat(owner: Any) -> NDArray[Any]:
    """The elements of an array, or of anything with the buffer protocol, in the order in which they lie in memory."""
    if hasattr(owner, "__cuda_array_interface__"):
        raise Refused("this buffer is on a GPU; this version takes buffers in the host's memory")
    if not isinstance(owner, np.ndarray):
        try:
            owner = np.asarray(memoryview(owner))
        except TypeError:
            raise Refused(f"a buffer is an array or has the buffer protocol; {type(owner).__name__} is neither") from None
    if owner.dtype.hasobject:
        raise Refused("an array of Python objects is no memory that can be sent")
    if owner.flags.c_contiguous:
        return owner.reshape(-1)
    if owner.flags.f_contiguous:
        return owner.T.reshape(-1)
    raise Refused("the array is not contiguous; give a contiguous one, or numpy.ascontiguousarray of it")


def _typed(array: NDArray[Any], datatype: MPI.Datatype, whole: bool) -> NDArray[Any]:
    """The memory of an array as elements of an MPI datatype: as many as fit, or else no byte may be over."""
    lower, extent = datatype.Get_extent()
    dtype = dtlib.to_numpy_dtype(datatype) if datatype.is_named else np.dtype((np.void, extent))
    dense = lower == 0 and extent == datatype.Get_true_extent()[1] == datatype.Get_size()
    if not extent or dtype.itemsize != extent or not (dense or datatype.is_named):
        raise Refused("datatypes with gaps or offsets are not taken yet; send the elements by a contiguous copy")
    rest = array.nbytes % extent
    if whole and rest:
        raise Refused(f"the buffer's {array.nbytes} bytes are no whole number of elements of {extent} bytes")
    return array.view(np.uint8)[:array.nbytes - rest].view(dtype)
