"""The command line's grammar, its exit codes, and what it must not load."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from treering.cli import failure, main
from treering.cli.exits import Exit, exit_code
from treering.core.errors import LaunchError, Refused, ScheduleError, UnknownName

ROOT = Path(__file__).parents[1]


@pytest.fixture
def typed(monkeypatch):
    """A frame with two commands that record what reaches them."""
    seen = []

    @click.command()
    @click.option("-n", type=int)
    @click.option("--json")
    @click.option("--run", is_flag=True)
    @click.argument("names", nargs=-1)
    def command(**given):
        seen.append({name: value for name, value in given.items() if value})

    monkeypatch.setattr(main.Door, "list_commands", lambda self, ctx: ["list", "verify"])
    monkeypatch.setattr(
        main.Door, "get_command", lambda self, ctx, name: command if name in ("list", "verify") else None)
    return seen


@pytest.mark.parametrize(
    "line, given",
    [
        ("verify -n 4 --run", {"n": 4, "run": True}),
        ("-n 4 --run verify", {"n": 4, "run": True}),
        ("-n 4 verify --run ring", {"n": 4, "run": True, "names": ("ring",)}),
        # A word that names a command may be the value of an option, or an argument.
        ("--json list verify", {"json": "list"}),
        ("--run verify list", {"run": True, "names": ("list",)}),
        ("--json=list verify", {"json": "list"}),
    ],
)
def test_options_stand_on_either_side_of_the_command(typed, line, given):
    assert main.run(line.split()) == Exit.OK
    assert typed == [given]


def test_the_command_line_is_kept_as_typed(monkeypatch):
    seen = []

    @click.command()
    @click.option("-n", type=int)
    def command(n):
        seen.append(click.get_current_context().meta[main.ARGUMENTS])

    monkeypatch.setattr(main.Door, "get_command", lambda self, ctx, name: command if name == "verify" else None)
    main.run(["-n", "4", "verify"])
    assert seen == [("-n", "4", "verify")]


@pytest.mark.parametrize(
    "line, said",
    [
        ("-n 4 verfy", "Did you mean 'verify'?"),
        ("-n 4", "The commands are list, show"),
        ("doctor --bogus", "No such option"),
    ],
)
def test_usage_errors_say_what_is_meant(capsys, line, said):
    assert main.run(line.split()) == Exit.USAGE
    assert said in capsys.readouterr().err


def test_nothing_typed_shows_the_help(capsys):
    assert main.run([]) == Exit.OK
    assert "I have a program" in capsys.readouterr().out


@pytest.mark.parametrize("error, code", [
    (ScheduleError("x"), Exit.WRONG), (Refused("x"), Exit.USAGE), (UnknownName("x"), Exit.USAGE),
    (LaunchError("x"), Exit.ENVIRONMENT),
])
def test_each_kind_of_error_has_its_exit_code(error, code):
    assert exit_code(error) == code


def raising(monkeypatch, error):
    @click.command()
    def command():
        raise error

    monkeypatch.setattr(main.Door, "get_command", lambda self, ctx, name: command if name == "list" else None)


def test_an_error_of_ours_is_one_line(monkeypatch, capsys):
    raising(monkeypatch, Refused("root 4 is not one of the ranks 0 to 3"))
    assert main.run(["list"]) == Exit.USAGE
    assert capsys.readouterr().err == "treering: error: root 4 is not one of the ranks 0 to 3\n"


def test_an_unforeseen_error_shows_its_traceback(monkeypatch, capsys):
    raising(monkeypatch, ZeroDivisionError("gone wrong"))
    assert main.run(["list"]) == Exit.WRONG
    assert "Traceback" in (said := capsys.readouterr().err)
    assert said.endswith("ZeroDivisionError: gone wrong\n")


def test_only_the_first_rank_reports_what_all_see(monkeypatch, capsys):
    monkeypatch.setenv("PMI_SIZE", "3")
    monkeypatch.setenv("PMI_RANK", "2")
    monkeypatch.setattr(failure, "PATIENCE", 0)
    assert main.run(["-n", "4"]) == Exit.USAGE
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("status, code", [(None, 0), (Exit.OK, 0), (Exit.WRONG, 1)])
def test_what_a_command_returns_is_the_exit_code(monkeypatch, status, code):
    monkeypatch.setattr(main.Door, "get_command", lambda self, ctx, name: click.Command("list", callback=lambda: status))
    with pytest.raises(SystemExit) as left:
        main.main(["list"])
    assert left.value.code == code


def loaded_by(line, *modules):
    """Which of some modules a command line loads."""
    program = (
        "import sys\n"
        "from treering.cli.main import run\n"
        f"code = run({line.split()!r})\n"
        f"print('LOADED', code, *[name for name in {modules!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=ROOT)
    mark, code, *loaded = done.stdout.splitlines()[-1].split()
    assert (mark, code) == ("LOADED", "0"), done.stderr
    return loaded


@pytest.mark.parametrize("line", [
    "list", "show allreduce ring -n 3", "count allreduce -n 4 -b 1K", "verify -n 1-3 broadcast",
    "step examples/gpt2.json --layout fsdp=4", pytest.param("doctor", marks=pytest.mark.launch),
])
def test_no_command_loads_mpi_unless_it_runs(line):
    assert loaded_by(line, "mpi4py.MPI") == []


@pytest.mark.parametrize("line", ["--help", "--version", "doctor --help"])
def test_help_loads_nothing_slow(line):
    assert loaded_by(line, "mpi4py", "numpy", "rich.table") == []


@pytest.mark.parametrize("line", ["--help", "doctor"])
def test_a_reader_that_leaves_is_no_error_of_ours(line):
    program = f"from treering.cli.main import main; main([{line!r}])"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == Exit.READER_LEFT
