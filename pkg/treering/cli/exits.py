"""What the exit code of every command means."""

from __future__ import annotations

from enum import IntEnum

from treering.core.errors import LaunchError, ScheduleError, TreeringError


class Exit(IntEnum):
    """The exit codes."""

    OK = 0
    WRONG = 1
    """A result is not what it must be: wrong data, or a schedule that is not proved."""
    USAGE = 2
    """The command cannot be carried out as it was given."""
    ENVIRONMENT = 3
    """The processes could not be started, or the machine lacks what is needed."""
    INTERRUPTED = 130
    READER_LEFT = 141
    """The program that read our output went away before the end; as a shell reports it of any command."""


def exit_code(error: TreeringError) -> Exit:
    """Tell the exit code of an error that ends a command."""
    if isinstance(error, LaunchError):
        return Exit.ENVIRONMENT
    if isinstance(error, ScheduleError):
        return Exit.WRONG
    return Exit.USAGE
