"""Collectives as small schedules: read, prove, count, predict and run them over MPI."""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core.errors import TreeringError as TreeringError
    from .running.comm import Comm as Comm
    from .table import schedule as schedule

_HOMES = {"Comm": "treering.running.comm", "TreeringError": "treering.core.errors", "schedule": "treering.table"}
"""Where the public names live. They are imported when first used, so that ``import treering`` is fast and loads no MPI."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
