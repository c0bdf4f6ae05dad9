"""The example of CONTRIBUTING, taken from there: one function and one record, and everything else follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from documents import contributed, imported

import treering
from treering.core import TABLE
from treering.readers.claims import claim
from treering.readers.count import count
from treering.readers.sweep import prove
from treering.table import load

KEY = ("all-to-all", "tournament")


@pytest.fixture(autouse=True)
def _only_here() -> Iterator[None]:
    assert KEY not in TABLE
    yield
    TABLE.pop(KEY, None)


def test_the_example_is_proved_and_as_good_as_it_says(tmp_path: Path) -> None:
    imported(contributed(), tmp_path)
    (proof,) = prove([(TABLE[KEY], {})], range(1, 41))
    assert proof.fault is None
    assert list(proof.sizes) == [1, *range(2, 41, 2)]
    for size in (2, 6, 20):
        figures = count(treering.schedule("alltoall", "tournament", size))
        assert claim(TABLE[KEY], "Rounds").at(size).agrees(figures.rounds, size=size)
        assert claim(TABLE[KEY], "Sent").at(size).agrees(figures.sent, size=size)


def test_the_example_is_listed_and_drawn(tmp_path: Path) -> None:
    from treering.cli.main import treering as program

    imported(contributed(), tmp_path)
    listed = CliRunner().invoke(program, ["list", "all-to-all"])
    assert "tournament" in listed.output
    drawn = CliRunner().invoke(program, ["show", "all-to-all", "tournament", "-n", "6"])
    assert "all-to-all tournament on 6 ranks: 5 rounds" in drawn.output


def test_commands_take_the_file(tmp_path: Path) -> None:
    from treering.cli.main import treering as program

    path = tmp_path / "mine.py"
    path.write_text(contributed(), encoding="utf-8")
    proved = CliRunner().invoke(program, ["verify", "-f", str(path), "-n", "1-12"])
    assert proved.exit_code == 0
    assert "1 algorithm, 7 cases" in proved.output
    assert "tournament" in proved.output


@pytest.mark.parametrize(("code", "message"), [
    ("import there_is_no_such_module", "No module named 'there_is_no_such_module'"), ("1 +", "SyntaxError"),
    ("x = 1", "declares no algorithm"), (None, "is no Python file")])
def test_a_file_that_is_none_is_refused(code: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    if code is not None:
        path.write_text(code, encoding="utf-8")
    with pytest.raises(treering.TreeringError, match=message):
        load(path)


def test_a_slip_in_the_example_is_found(tmp_path: Path) -> None:
    slip = contributed().replace("(i - rank)", "(i + rank)")
    assert slip != contributed()
    imported(slip, tmp_path)
    (proof,) = prove([(TABLE[KEY], {})], range(1, 41))
    assert proof.fault is not None
    assert proof.fault.size == 4
