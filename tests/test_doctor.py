"""What the doctor finds, and that no patient can harm it."""

import json
import sys
from pathlib import Path

import pytest

from treering.cli.exits import Exit
from treering.cli.main import run
from treering.core.errors import LaunchError
from treering.running import doctor, machine
from treering.running.doctor import LAUNCH_LINE, Finding, Status, examine, launch_line, try_two_ranks
from treering.running.hosts import Host
from treering.running.launch import Family, Library, Mpiexec

WORLD = {"rank": 0, "size": 2, "thread_level": "MULTIPLE", "cuda": False}


@pytest.fixture
def healthy(monkeypatch):
    """A machine on which all is well, without starting anything."""
    mpiexec = Mpiexec(Path("/opt/mpi/bin/mpiexec"), Family.MPICH)
    library = Library("MPICH", "4.2", "MPICH Version: 4.2", Path("/opt/mpi/lib/libmpi.so"))
    monkeypatch.setattr(doctor, "find_library", lambda: library)
    monkeypatch.setattr(doctor, "find_mpiexec", lambda library: mpiexec)
    monkeypatch.setattr(doctor, "try_two_ranks", lambda mpiexec: (WORLD, Finding("two ranks", "fine")))
    monkeypatch.setattr(machine, "gpus", list)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)


def found(topic, hostfile=None):
    (finding,) = [finding for finding in examine(hostfile) if finding.topic == topic]
    return finding


def raising(error):
    def fail(*_):
        raise error

    return fail


def test_a_healthy_machine_has_no_problem(healthy, capsys):
    assert run(["doctor"]) == Exit.OK
    said = capsys.readouterr().out
    assert "MPICH Version: 4.2" in said
    assert "/opt/mpi/bin/mpiexec -n N python -m treering …" in said


def test_without_a_library_there_is_a_problem_and_the_rest_is_still_said(healthy, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "find_library", raising(LaunchError("cannot load [libmpi]")))
    assert run(["doctor"]) == Exit.ENVIRONMENT
    said = capsys.readouterr().out
    assert "cannot load [libmpi]" in said
    assert "cores" in said


def test_without_a_launcher_there_is_a_problem(healthy, monkeypatch):
    monkeypatch.setattr(doctor, "find_mpiexec", raising(LaunchError("no mpiexec of MPICH found")))
    assert found("launcher").status is Status.PROBLEM


def fake_mpiexec(tmp_path, script):
    path = tmp_path / "mpiexec"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Mpiexec(path, Family.MPICH)


def answer(size):
    return f"echo 'treering-probe {json.dumps({**WORLD, 'size': size})}'"


@pytest.mark.parametrize("script, status, said", [
    (f"{answer(2)}; {answer(2)}", Status.OK, "find each other"),
    # The launcher of another MPI: two processes, each alone, exit code 0.
    (f"{answer(1)}; {answer(1)}", Status.PROBLEM, "worlds of size 1, 1 instead of one of size 2"),
    (answer(2), Status.PROBLEM, "worlds of size 2 instead"),
    ("echo 'no network' >&2; exit 7", Status.PROBLEM, "exit code 7: no network"),
    ("exit 0", Status.PROBLEM, "no message"),
    ("sleep 60", Status.PROBLEM, "did not start or end"),
])
def test_two_ranks_are_tried(tmp_path, monkeypatch, script, status, said):
    monkeypatch.setattr(doctor, "TRIAL_LIMIT", 1.0)
    _, finding = try_two_ranks(fake_mpiexec(tmp_path, script))
    assert finding.status is status
    assert said in finding.found


@pytest.mark.parametrize("cuda, gpus, status", [
    (True, ["H200"], Status.OK), (False, ["H200"], Status.WARNING), (None, ["H200"], Status.WARNING), (False, [], Status.OK),
])
def test_gpus_want_an_mpi_that_takes_their_memory(healthy, monkeypatch, cuda, gpus, status):
    monkeypatch.setattr(doctor, "try_two_ranks", lambda mpiexec: ({**WORLD, "cuda": cuda}, Finding("two ranks", "fine")))
    monkeypatch.setattr(machine, "gpus", lambda: gpus)
    assert found("GPUs").status is status


def test_a_lower_thread_level_is_a_warning(healthy, monkeypatch):
    monkeypatch.setattr(
        doctor, "try_two_ranks", lambda mpiexec: ({**WORLD, "thread_level": "FUNNELED"}, Finding("two ranks", "fine")))
    assert found("thread level").status is Status.WARNING


def test_a_hostfile_is_checked_and_goes_into_the_line(healthy, tmp_path):
    path = tmp_path / "hosts"
    path.write_text("a:2\nb\n")
    assert found("hostfile", path).found == "3 ranks on 2 hosts: 2 on a, 1 on b"
    assert found(LAUNCH_LINE, path).found == f"/opt/mpi/bin/mpiexec -n 3 -f {path} python -m treering …"


def test_a_bad_hostfile_is_a_problem_that_names_the_line(healthy, tmp_path, capsys):
    path = tmp_path / "hosts"
    path.write_text("a\nb slots=none\n")
    assert run(["doctor", "--hostfile", str(path)]) == Exit.ENVIRONMENT
    assert "line 2" in capsys.readouterr().out


def test_the_line_for_open_mpi(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    mpiexec = Mpiexec(Path("/opt/mpiexec"), Family.OPEN_MPI)
    assert launch_line(mpiexec, None, ()) == "/opt/mpiexec -n N --oversubscribe python -m treering …"
    line = launch_line(mpiexec, Path("hosts"), (Host("a", 4),))
    assert line == "/opt/mpiexec -n 4 --hostfile hosts python -m treering …"


def test_a_slurm_job_is_told(healthy, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2,1")
    assert found("Slurm").found == "in a job with 3 tasks: 2 on n1, 1 on n2"
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2")
    assert found("Slurm").status is Status.PROBLEM


def test_the_doctor_is_not_run_on_many_ranks(healthy, monkeypatch, capsys):
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setenv("PMI_RANK", "0")
    assert run(["doctor"]) == Exit.USAGE
    assert "run it alone" in capsys.readouterr().err


def test_findings_are_written_as_json(healthy, tmp_path):
    path = tmp_path / "doctor.json"
    assert run(["doctor", "--json", str(path)]) == Exit.OK
    findings = {finding["topic"]: finding for finding in json.loads(path.read_text())["findings"]}
    assert findings["Python"]["status"] == "ok"
    assert sys.executable in findings["Python"]["found"]


def test_this_machine_is_described():
    available, total = machine.memory() or (1, 1)
    assert 0 < available <= total
    assert 1 <= machine.usable_cores() <= len(machine.usable_threads())
    assert "lo" not in [interface.name for interface in machine.interfaces()]


@pytest.mark.launch
def test_the_mpi_of_this_environment_is_healthy():
    # Where no MPI is installed the doctor must say that, and nothing else may be wrong.
    problems = [finding.topic for finding in examine() if finding.status is Status.PROBLEM]
    assert problems in ([], ["MPI library"])
