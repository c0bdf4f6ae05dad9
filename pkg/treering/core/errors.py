"""What can go wrong, by kind. Every error of treering derives from `TreeringError`."""

from __future__ import annotations


class TreeringError(Exception):
    """Base of all errors that treering raises about what it was asked to do."""


class ScheduleError(TreeringError):
    """A schedule does not do what it claims, or cannot be run."""


class UnknownName(TreeringError, LookupError):
    """No collective, algorithm or parameter of that name."""


class Refused(TreeringError, ValueError):
    """A request that is understood but cannot be served rightly, refused before any data moves."""


class LaunchError(TreeringError, RuntimeError):
    """The processes of a run were not started as asked."""
