"""The command ``treering verify``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from treering.algorithms import tree

from treering.cli.exits import Exit
from treering.cli.main import run
from treering.core import BROADCAST, TABLE, Round, algorithm
from treering.readers import certificate


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    certificate._cached.cache_clear()
    yield
    certificate._cached.cache_clear()


@pytest.fixture
def broken() -> Iterator[None]:
    @algorithm(BROADCAST, "broken", family="tree")
    def function(rank: int, size: int, root: int) -> Iterator[Round]:
        """Right up to three ranks; on more the last one gets nothing."""
        rounds = list(tree.broadcast(rank, size, root))
        yield from [] if size > 3 and rank == size - 1 != root else rounds

    yield
    del TABLE["broadcast", "broken"]


def test_one_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "allreduce", "ring", "-n", "1-6,9"]) == Exit.OK
    out = capsys.readouterr().out
    assert "all-reduce   ring        1-6,9" in out
    assert "1 algorithm, 7 cases in" in out and out.rstrip().endswith("all proved")


def test_a_collective_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "bcast", "-n", "4"]) == Exit.OK
    out = capsys.readouterr().out
    assert all(name in out for collective, name in TABLE if collective == "broadcast")
    assert run(["-n", "1-3", "verify"]) == Exit.OK
    assert f"{len(TABLE)} algorithms" in capsys.readouterr().out


def test_roots(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "bcast", "binomial", "-n", "20"]) == Exit.OK
    assert "all up to 16 ranks, then 3" in capsys.readouterr().out
    assert run(["verify", "bcast", "binomial", "-n", "20", "--roots", "all"]) == Exit.OK
    assert "20 cases" in capsys.readouterr().out


@pytest.mark.usefixtures("broken")
def test_what_is_wrong_is_said_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "proofs.json"
    assert run(["verify", "broadcast", "broken", "-n", "1-8", "--json", str(file)]) == Exit.WRONG
    out = capsys.readouterr().out
    assert "1-3; wrong on 4" in out
    assert "WRONG: broadcast broken on 4 ranks, root 0: rank 2, its round 2: waits forever to send block 0 to rank 3" in out
    assert "rank 2" in out and "stuck" in out, "the grid"
    [proof] = json.loads(file.read_text())["proofs"]
    assert proof["sizes"] == [1, 2, 3]
    fault = proof["fault"]
    assert (fault["size"], fault["root"], fault["rank"], fault["round"]) == (4, 0, 2, 1)


def test_json_is_written_and_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "proofs.json"
    command = ["verify", "scatter", "binomial", "-n", "2,3", "--json", str(file)]
    assert run(command) == Exit.OK
    [proof] = json.loads(file.read_text())["proofs"]
    assert proof["sizes"] == [2, 3] and proof["roots"] == {"2": [0, 1], "3": [0, 1, 2]} and proof["fault"] is None
    assert run(command) == Exit.USAGE
    assert run([*command, "--force"]) == Exit.OK


@pytest.mark.parametrize("arguments", [
    ["allreduce", "rong"], ["allreduced"], ["-n", "0"], ["-n", "x"], ["bcast", "chain:segments=0"], ["--run", "-n", "2-4"]])
def test_what_makes_no_sense_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", *arguments]) == Exit.USAGE
    assert capsys.readouterr().err


def test_what_was_proved_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(certificate, "_shipped", dict)
    ring = TABLE["all-reduce", "ring"]
    assert not certificate.is_proved(ring, 5)
    run(["verify", "allreduce", "ring", "-n", "5"])
    assert certificate.is_proved(ring, 5)


def test_no_mpi_is_touched(tmp_path: Path) -> None:
    program = (
        "import sys; from treering.cli.main import run; code = run(['verify', 'allreduce', '-n', '1-4']);"
        "sys.exit(code or 'mpi4py.MPI' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def test_shipping_proves_what_is_stale_and_leaves_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(certificate, "SHIPPED", tmp_path / "certificates.json")
    monkeypatch.setattr("treering.cli.verify.SIZES_PROVED", (1, 2, 3))
    certificate._shipped.cache_clear()
    try:
        assert run(["verify", "--ship"]) == Exit.OK
        shipped = certificate.read(certificate.SHIPPED)
        assert {name: c.all_roots for name, c in shipped.items()} == {
            certificate.named(a, given): {size for size in (1, 2, 3) if a.why_not(size) is None}
            for a in TABLE.values() for given in [{}, *certificate.variants(a)]}
        written = certificate.SHIPPED.stat().st_mtime_ns
        proved: list[object] = []
        monkeypatch.setattr("treering.readers.sweep._first_fault", lambda *case: proved.append(case))
        certificate._shipped.cache_clear()
        assert run(["verify", "--ship"]) == Exit.OK
        assert proved == [] and certificate.SHIPPED.stat().st_mtime_ns >= written
        assert certificate.read(certificate.SHIPPED) == shipped
    finally:
        monkeypatch.undo()
        certificate._shipped.cache_clear()
