"""The README shows what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from documents import ROOT, blocks

from treering.cli.main import treering as program

SHOWN = [
    pytest.param(*example, id=example[0]) for block in blocks("README.md", "console")
    for example in re.findall(r"^\$ treering ([^\n]*)\n(.+?)(?=^\$|\Z)", block, re.DOTALL | re.MULTILINE)]


def timeless(text: str) -> str:
    """Text without what differs from run to run: seconds, trailing blanks and blank lines at either end."""
    lines = [re.sub(r"\d+\.\d( s)?$", r"0.0\1", line.rstrip()) for line in text.splitlines()]
    return re.sub(r"in \d+\.\d s", "in 0.0 s", "\n".join(lines)).strip("\n")


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_commands_print_what_the_readme_says(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(program, command.split())
    assert timeless(result.output) == timeless(output)
    assert result.exit_code == 0


def test_the_readme_shows_commands_of_every_door() -> None:
    shown = {parameters.values[0].split()[0] for parameters in SHOWN}
    assert {"show", "count", "verify", "step"} <= shown


def test_the_readme_shows_the_algorithm_as_it_is() -> None:
    (code,) = [block for block in blocks("README.md", "python") if "@algorithm" in block]
    assert code in (ROOT / "algorithms" / "ring.py").read_text(encoding="utf-8")


def test_the_readme_shows_the_first_example_as_it_is() -> None:
    first = blocks("README.md", "python")[0]
    assert first in (ROOT / "examples" / "first.py").read_text(encoding="utf-8")
