"""The commands that read schedules: list, show and count."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from treering.cli.exits import Exit
from treering.cli.layout import size_text
from treering.cli.main import run


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run a command that must succeed, and return what it prints."""
    def of(line: str) -> str:
        assert run(line.split()) == Exit.OK
        return capsys.readouterr().out
    return of


def rows(output: str) -> dict[str, list[str]]:
    """The cells of a table by the name in the first column, marks aside; cells stand two spaces apart or more."""
    cells = (re.split(r" {2,}", line.strip().removeprefix("*").strip()) for line in output.splitlines())
    return {name: rest for name, *rest in cells}


# ---- list ----

def test_list_names_every_algorithm_with_its_figures_and_bounds(printed) -> None:  # type: ignore[no-untyped-def]
    output = printed("list")
    table = rows(output)
    assert table["pairwise"][:4] == ["direct", "p - 1", "(p - 1)/p", "volume"]
    assert table["reduce-broadcast"][:4] == ["tree", "any operator", "2⌈log2 p⌉", "⌈log2 p⌉"]
    for name in ("broadcast", "scatter", "gather", "reduce", "all-gather", "all-reduce", "reduce-scatter", "all-to-all"):
        assert name in table


def test_list_says_where_a_family_makes_no_algorithm(printed) -> None:  # type: ignore[no-untyped-def]
    output = printed("list")
    assert "binomial tree is recursive halving" in output
    assert "Bruck's algorithm stands in its place" in output


def test_list_of_one_collective_explains_its_algorithms(printed) -> None:  # type: ignore[no-untyped-def]
    output = printed("list bcast")
    assert output.startswith("broadcast")
    assert "segments=8 (≥ 1)" in output
    assert "  segments: slices of the payload that follow each other" in output
    assert "binomial: Whoever has the payload sends it on" in output
    assert "all-reduce" not in output


def test_list_as_json(printed, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "list.json"
    printed(f"list alltoall --json {file}")
    listed = {each["algorithm"]: each for each in json.loads(file.read_text())["algorithms"]}
    assert listed["exchange"]["requires"] == ["power of two"]
    assert listed["bruck"]["meets"] == {"rounds": True}


# ---- show ----

def test_show_without_an_algorithm_prints_before_and_after(printed) -> None:  # type: ignore[no-untyped-def]
    assert printed("show alltoall -n 3").splitlines()[2:] == [
        "rank  before       after",
        "   0  A0 A1 A2  →  A0 B0 C0",
        "   1  B0 B1 B2  →  A1 B1 C1",
        "   2  C0 C1 C2  →  A2 B2 C2"]


def test_show_draws_a_grid_that_fits(printed) -> None:  # type: ignore[no-untyped-def]
    output = printed("show allreduce ring -n 6 --width 90")
    assert output.startswith("all-reduce ring on 6 ranks: 10 rounds, the busiest rank sends 5/3 of the payload\n")
    assert max(map(len, output.splitlines()[1:])) <= 90


def test_show_takes_parameters_and_a_root(printed) -> None:  # type: ignore[no-untyped-def]
    assert "broadcast chain:segments=2 on 3 ranks, root 1: 3 rounds" in printed("show bcast chain:segments=2 -n 3 --root 1")


@pytest.mark.parametrize(("suffix", "start"), [
    ("html", "<!DOCTYPE html>"), ("svg", "<svg xmlns"), ("txt", "all-gather bruck on 5 ranks")])
def test_show_draws_to_a_file_and_overwrites_none(printed, tmp_path: Path, suffix: str, start: str) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / f"picture.{suffix}"
    printed(f"show allgather bruck -n 5 -o {file}")
    assert file.read_text(encoding="utf-8").startswith(start)
    file.write_text("mine")
    assert run(f"show allgather bruck -n 5 -o {file}".split()) == Exit.USAGE
    assert file.read_text() == "mine"
    printed(f"show allgather bruck -n 5 -o {file} --force")
    assert file.read_text(encoding="utf-8").startswith(start)


@pytest.mark.parametrize(("line", "said"), [
    ("show allreduce rign -n 4", "'rign'; it has ring"),
    ("show allredduce", "no collective is called 'allredduce'"),
    ("show allreduce ring -n 4 --root 2", "all-reduce has no root"),
    ("show bcast -n 4 --root 4", "root 4 is not one of the ranks 0 to 3"),
    ("show alltoall -n 3 -o picture.svg", "a file needs an algorithm"),
    ("show alltoall exchange -n 3", "power of two, not 3"),
    ("show allreduce ring -o picture.png", "ends in none of .html, .svg, .txt"),
    ("show bcast chain:segments=0", "segments=0 is less than 1"),
    ("count allreduce ring", "-n"),
    ("count allreduce ring -n 4 -b many", "'many' is not a size"),
])
def test_mistakes_are_explained(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == Exit.USAGE
    assert said in re.sub(r"\s+", " ", capsys.readouterr().err)


# ---- count ----

def test_count_of_one_algorithm_beside_the_bounds(printed) -> None:  # type: ignore[no-untyped-def]
    output = printed("count allreduce ring -n 8 -b 64M")
    assert output.startswith("all-reduce on 8 ranks, 64M bytes: the whole vector\n")
    table = rows(output)
    assert table["rounds"] == ["14", "3"]
    assert table["messages sent"] == ["14", "112"]
    assert table["bytes sent"] == ["117,440,512", "939,524,096"]
    assert table["the larger of both"] == ["117,440,512", "117,440,512"]
    assert table["bytes reduced"] == ["58,720,256", "469,762,048", "58,720,256"]
    assert "Busiest pair: 0 to 1, 117,440,512 bytes." in output


@pytest.mark.parametrize(("collective", "meaning"), [
    ("bcast", "the whole vector"), ("allgather", "the parts of all ranks together"),
    ("alltoall", "what one rank has for all")])
def test_count_says_what_the_size_means(printed, collective: str, meaning: str) -> None:  # type: ignore[no-untyped-def]
    assert f"4K bytes: {meaning}\n" in printed(f"count {collective} linear -n 4 -b 4K")


def test_count_ranks_all_algorithms(printed) -> None:  # type: ignore[no-untyped-def]
    output = printed("count allreduce -n 64 -b 64M")
    names = [name for name in rows(output) if name in ("ring", "doubling", "halving-doubling", "linear", "reduce-broadcast")]
    assert names[0] == "halving-doubling" and names[-1] == "linear"
    assert rows(output)["lower bound"] == ["6", "132,120,576", "66,060,288"]
    assert rows(output)["ring"] == ["126", "126", "126", "132,120,576", "1.969", "66,060,288"]
    starred = [line.split()[1] for line in output.splitlines() if line.startswith(" *")]
    assert {"halving-doubling", "circulant", "doubling"} <= set(starred) and "ring" not in starred
    by_rounds = list(rows(printed("count allreduce -n 64 -b 64M --by rounds")))
    assert by_rounds.index("doubling") < by_rounds.index("halving-doubling")


def test_count_says_which_algorithms_do_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["count", "alltoall", "-n", "3"]) == Exit.OK
    assert "left out: all-to-all exchange" in capsys.readouterr().err


def test_count_writes_files(printed, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    as_csv, as_json = tmp_path / "count.csv", tmp_path / "count.json"
    printed(f"count allgather ring -n 4 -b 0,10 --csv {as_csv} --json {as_json}")
    with as_csv.open() as file:
        table = list(csv.DictReader(file))
    assert [(row["size"], row["rounds"], row["total_bytes_sent"]) for row in table] == [("0", "0", "0"), ("10", "3", "30")]
    figures = json.loads(as_json.read_text())["figures"][1]
    # Parts of 3, 3, 2 and 2 bytes; rank 0 sends all but that of its right neighbour.
    assert [load["bytes_sent"] for load in figures["per_rank"]] == [7, 8, 8, 7]
    assert figures["bound_volume"] == 8


def test_sizes_are_printed_in_whole_units() -> None:
    assert [size_text(size) for size in (0, 17, 4096, 3 * 2**30)] == ["0", "17", "4K", "3G"]


def test_reading_loads_no_mpi_and_no_numpy() -> None:
    code = """
import sys
from treering.cli.main import run
for line in ("list", "show allreduce ring -n 4", "count allreduce -n 4"):
    assert run(line.split()) == 0
print([name for name in ("mpi4py.MPI", "numpy") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
