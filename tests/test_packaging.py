"""The project's own rules: layers, small files, what is installed, what is imported."""

import ast
import configparser
import fnmatch
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pkg" / "treering"
ALGORITHMS = ROOT / "algorithms"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *ALGORITHMS.rglob("*.py")])
LAYERS = ["core", "readers", "running", "training", "measuring", "cli"]


def module_name(path):
    """The full name of a module, e.g. treering.core.schedule."""
    inside = path.relative_to(ALGORITHMS).parts if ALGORITHMS in path.parents else path.relative_to(PACKAGE).parts
    parts = ["treering", *(["algorithms"] if ALGORITHMS in path.parents else []), *inside]
    return ".".join(parts).removesuffix(".py").removesuffix(".__init__")


def imported(path):
    """The full names of all that a module imports, inside functions too, but not for type checking only."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def layer(name):
    """The layer of a module of ours, or None if it is above all of them or not ours."""
    parts = name.split(".")
    return LAYERS.index(parts[1]) if parts[0] == "treering" and len(parts) > 1 and parts[1] in LAYERS else None


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_a_module_imports_its_own_layer_or_a_lower_one(path):
    own = layer(module_name(path))
    if ALGORITHMS in path.parents:
        allowed = ("treering.core", "treering.algorithms")
        wrong = [name for name in imported(path) if name.startswith("treering") and not name.startswith(allowed)]
    else:
        wrong = [name for name in imported(path) if own is not None and (layer(name) or 0) > own]
    assert wrong == []


@pytest.mark.parametrize("path", [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))], ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_is_longer_than_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_reading_and_learning_load_no_mpi_and_no_array_library_but_numpy():
    # What runs, trains and measures is imported by a command when it is used, and may import MPI.
    names = [name for name in map(module_name, SOURCES) if layer(name) in (None, 0, 1, LAYERS.index("cli"))]
    names.remove("treering.__main__")
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print([name for name in ('mpi4py.MPI', 'cupy', 'torch', 'numba', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def setup():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_every_package_is_installed():
    listed = setup()["options"]["packages"].split()
    assert sorted(listed) == sorted(module_name(path) for path in SOURCES if path.name == "__init__.py")


def test_every_other_file_of_the_package_is_installed():
    patterns = [pattern.strip() for pattern in setup()["options.package_data"]["*"].split(",")]
    others = [
        path.name for folder in (PACKAGE, ALGORITHMS) for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts]
    assert "py.typed" in others
    assert [name for name in others if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []


def test_every_command_is_a_module_with_a_help():
    import click

    from treering.cli.main import COMMANDS, treering

    context = click.Context(treering)
    for name in (name for door in COMMANDS.values() for name in door):
        command = treering.get_command(context, name)
        assert command is not None
        assert command.help, name
        assert "treering" in f"{command.epilog}{command.help}", f"{name} --help has no example"
