"""Schedules, collectives, the record of an algorithm, and composition: all that an algorithm is written in."""

from .algorithm import EVEN, POWER_OF_TWO, TABLE, Algorithm, Parameter, Requirement, Schedule, algorithm, per_rank
from .collective import (
    ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, COLLECTIVES, GATHER, REDUCE, REDUCE_SCATTER, SCATTER, Case, Collective)
from .compose import in_result, moved, named, on_group, reverse, reverse_reducing, then
from .errors import LaunchError, Refused, ScheduleError, TreeringError, UnknownName
from .group import Fold, factors
from .schedule import IN, OUT, Block, Copy, Recv, Reduce, Round, Send, Slot, Space

__all__ = [
    "ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "BROADCAST", "COLLECTIVES", "EVEN", "GATHER", "IN", "OUT", "POWER_OF_TWO",
    "REDUCE", "REDUCE_SCATTER", "SCATTER", "TABLE", "Algorithm", "Block", "Case", "Collective", "Copy", "Fold", "LaunchError",
    "Parameter", "Recv", "Reduce", "Refused", "Requirement", "Round", "Schedule", "ScheduleError", "Send", "Slot", "Space",
    "TreeringError", "UnknownName", "algorithm", "factors", "in_result", "moved", "named", "on_group", "per_rank", "reverse",
    "reverse_reducing", "then",
]
