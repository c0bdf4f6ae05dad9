"""What callers give as a buffer, as a flat array of elements. The one place that knows how arrays are held."""

from __future__ import annotations

import operator
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
    """Read a buffer to send from: an array, or ``[array, count]``, ``[array, datatype]``, ``[array, count, datatype]``.

    Parameters
    ----------
    parts
        How many parts the buffer has; a count that is given is that of one part, as in mpi4py.

    Raises
    ------
    Refused
        For what is no contiguous memory of elements that treering can name.
    """
    return _buffer(spec, parts)


def written(spec: Any, parts: int = 1) -> Buffer:
    """Read a buffer to receive into: as `read`, and it must be writable."""
    buffer = _buffer(spec, parts)
    if not buffer.array.flags.writeable:
        raise Refused("the receive buffer is read-only")
    return buffer


def _buffer(spec: Any, parts: int) -> Buffer:
    if not isinstance(spec, (list, tuple)):
        return Buffer(_flat(spec))
    if not 1 <= len(spec) <= 3:
        raise Refused(f"a buffer is given as [array, count, datatype], not as {len(spec)} things")
    array, count, datatype = _flat(spec[0]), None, None
    for part in spec[1:]:
        if isinstance(part, (MPI.Datatype, str)):
            datatype = MPI.Datatype.fromcode(part) if isinstance(part, str) else part
        elif part is not None:
            count = _count(part) * parts
    if datatype is not None:
        array = _typed(array, datatype)
    if count is not None:
        if count > array.size:
            raise Refused(f"the buffer holds {array.size} elements, not {count}")
        array = array[:count]
    return Buffer(array, datatype)


def _count(part: Any) -> int:
    try:
        count = operator.index(part)
    except TypeError:
        raise Refused(f"{part!r} is not a count; a count for each rank belongs to the vector collectives") from None
    if count < 0:
        raise Refused(f"a count of {count} elements is less than none")
    return count


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


def _typed(array: NDArray[Any], datatype: MPI.Datatype) -> NDArray[Any]:
    """The memory of an array as elements of an MPI datatype, as many as fit."""
    lower, extent = datatype.Get_extent()
    if lower or extent != datatype.Get_true_extent()[1] or (not datatype.is_named and extent != datatype.Get_size()):
        raise Refused("datatypes with gaps or offsets are not taken yet; send the elements by a contiguous copy")
    dtype = dtlib.to_numpy_dtype(datatype) if datatype.is_named else np.dtype((np.void, extent))
    octets = array.view(np.uint8)
    return octets[:octets.size // dtype.itemsize * dtype.itemsize].view(dtype) if extent else octets[:0].view(dtype)
