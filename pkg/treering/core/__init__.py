"""Schedules, collectives, the record of an algorithm, and composition: all that an algorithm is written in."""

from .algorithm import EVEN, POWER_OF_TWO, RADICES, TABLE, Algorithm, Parameter, Requirement, Schedule, algorithm, per_rank
from .collective import (
    ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BARRIER, BROADCAST, COLLECTIVES, EXSCAN, GATHER, REDUCE, REDUCE_SCATTER, SCAN, SCATTER,
    Case, Collective)
from .compose import in_result, merge, moved, named, on_group, reverse, then, transpose
from .errors import LaunchError, Refused, ScheduleError, TreeringError, UnknownName
from .group import Fold, Nodes, factors
from .schedule import IN, OUT, Block, Copy, Recv, Reduce, Round, Send, Slot, Space

__all__ = [
    "ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "BARRIER", "BROADCAST", "COLLECTIVES", "EVEN", "EXSCAN", "GATHER", "IN",
    "OUT", "POWER_OF_TWO", "RADICES", "REDUCE", "REDUCE_SCATTER", "SCAN", "SCATTER", "TABLE", "Algorithm", "Block",
    "Case", "Collective", "Copy", "Fold", "LaunchError", "Nodes", "Parameter", "Recv", "Reduce", "Refused", "Requirement",
    "Round", "Schedule", "ScheduleError", "Send", "Slot", "Space", "TreeringError", "UnknownName", "algorithm", "factors",
    "in_result", "merge", "moved", "named", "on_group", "per_rank", "reverse", "then", "transpose",
]
