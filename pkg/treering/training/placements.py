"""Where the parts of a variable lie along one axis of a mesh.

The textbook's three states of a variable on N ranks, and the partial sum that it leaves out. The collectives are the
transitions between them:

=================  ====================  ====================
collective         before                after
=================  ====================  ====================
all-reduce         ``Partial(op)``       ``Replicated()``
reduce-scatter     ``Partial(op)``       ``Partitioned(dim)``
all-gather         ``Partitioned(dim)``  ``Replicated()``
all-to-all         ``Partitioned(i)``    ``Partitioned(j)``
broadcast          ``Centralized(r)``    ``Replicated()``
=================  ====================  ====================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Partitioned:
    """Every rank holds its own part, cut along ``dim`` of the tensor."""

    dim: int


@dataclass(frozen=True)
class Replicated:
    """Every rank holds the same whole."""


@dataclass(frozen=True)
class Partial:
    """Every rank holds a term; the value is the terms reduced with ``op``."""

    op: str = "sum"


@dataclass(frozen=True)
class Centralized:
    """Only ``root`` holds the whole."""

    root: int


Placement: TypeAlias = Partitioned | Replicated | Partial | Centralized
