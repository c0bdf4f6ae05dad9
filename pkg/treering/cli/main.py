"""The command ``treering``: finds the command that was meant, runs it, and turns errors into messages and exit codes.

To add a command, write ``treering/cli/NAME.py`` with a click command called ``command``, and name it in `COMMANDS`.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from treering import __version__
from treering.cli import failure
from treering.cli.exits import Exit
from treering.core.errors import TreeringError

COMMANDS: dict[str, dict[str, str]] = {
    "I learn or invent": {
        "list": "List the collectives and their algorithms.",
        "show": "Draw an algorithm round by round.",
        "count": "Count rounds, messages and bytes beside the lower bounds.",
        "verify": "Prove algorithms; with --run, check them against MPI's own.",
    },
    "I have a program": {
        "doctor": "Tell which MPI and launcher are here and whether they match.",
    },
    "I choose layouts": {
        "step": "Compose the communication of one training step; with --run, send it.",
    },
}
"""For each door, its commands and what they do; kept here so that ``treering --help`` imports none of them."""

ARGUMENTS = "treering.arguments"
"""Key in click's ``ctx.meta`` under which every command finds the command line as it was typed."""


class Door(click.Group):
    """A group whose commands are imported when used and take their options on either side of the command's name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of the doors."""
        return [name for door in COMMANDS.values() for name in door]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"treering.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the commands do, door by door."""
        for door, commands in COMMANDS.items():
            with formatter.section(door):
                formatter.write_dl(list(commands.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the options that stand before the command's name behind it: ``-n 4 verify`` is ``verify -n 4``."""
        ctx.meta[ARGUMENTS] = tuple(args)
        at = self._find_command(ctx, args)
        if at is not None:
            args = [args[at], *args[:at], *args[at + 1:]]
        elif args not in ([], ["-h"], ["--help"], ["--version"]):
            self._no_command(ctx, args)
        return super().parse_args(ctx, args or ["--help"])

    def _find_command(self, ctx: click.Context, args: Sequence[str]) -> int | None:
        """Find the first word that names a command and is not the value of one of that command's options."""
        for at, word in enumerate(args):
            command = self.get_command(ctx, word)
            if command and not (at and _takes_value(command, args[at - 1])):
                return at
        return None

    def _no_command(self, ctx: click.Context, args: Sequence[str]) -> NoReturn:
        commands = self.list_commands(ctx)
        meant = [near for word in args for near in difflib.get_close_matches(word, commands, n=1)]
        hint = f"Did you mean {meant[0]!r}?" if meant else f"The commands are {', '.join(commands)}."
        raise click.UsageError(f"No command in {' '.join(args)!r}. {hint}", ctx)


def _takes_value(command: click.Command, word: str) -> bool:
    options = (option for option in command.params if isinstance(option, click.Option) and word in option.opts)
    return any(not option.is_flag and not option.count for option in options)


@click.group(cls=Door, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="treering", message="%(prog)s %(version)s")
def treering() -> None:
    """Read, prove, count and run the communication of distributed training.

    Without --run no MPI is touched. Options may stand before or after the command.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code.

    Parameters
    ----------
    arguments
        What follows ``treering`` on the command line; by default that of this process.
    """
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code. A command returns an `Exit`, or None if all is right."""
    try:
        return treering.main(list(arguments), prog_name="treering", standalone_mode=False) or Exit.OK
    except click.exceptions.Exit as request:
        return request.exit_code
    except (click.ClickException, TreeringError) as error:
        return failure.report(error)
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Commands return their exit code; only click and rich leave by themselves, and only when nobody reads their output.
        return failure.reader_left()
    except Exception as error:
        return failure.report_bug(error)
