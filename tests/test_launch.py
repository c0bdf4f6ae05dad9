"""Finding the launcher that belongs to the library, and starting ranks with it."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from treering.core.errors import LaunchError
from treering.running import launch
from treering.running.environment import RANKS_VARIABLE, without_launcher
from treering.running.hosts import Host
from treering.running.launch import Family, Library, Mpiexec, answers, find_library, find_mpiexec, relaunch

HERE = Path(__file__).parent


@pytest.mark.parametrize("version, family", [
    ("mpiexec (Open MPI) 5.0.11\n", Family.OPEN_MPI),
    ("mpirun (Open MPI) 4.1.4\n", Family.OPEN_MPI),
    ("HYDRA build details:\n    Version: 4.2\n", Family.MPICH),
    ("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)\n", Family.INTEL),
    ("slurm 22.05.8\n", None),
])
def test_a_launcher_says_what_it_is(version, family):
    assert Family.of_launcher(version) is family


@pytest.mark.parametrize("vendor, family", [
    ("Open MPI", Family.OPEN_MPI), ("MPICH", Family.MPICH), ("MVAPICH", Family.MPICH), ("Intel MPI", Family.INTEL),
    ("Microsoft MPI", None),
])
def test_a_library_says_what_it_is(vendor, family):
    assert Library(vendor, "1", "", None).family is family


HOSTS = (Host("a", 2), Host("fe80::1", 1))


@pytest.mark.parametrize("family, ranks, hosts, options", [
    (Family.OPEN_MPI, 2, (), ""),
    (Family.OPEN_MPI, 8, (), "--oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "),
    (Family.OPEN_MPI, 8, HOSTS, "--host a:2,[fe80::1]:1 "),
    (Family.MPICH, 8, (), ""),
    (Family.MPICH, 8, HOSTS, "-hosts a:2,[fe80::1]:1 "),
    (Family.INTEL, 8, (), ""),
])
def test_the_launch_line_of_each_family(monkeypatch, family, ranks, hosts, options):
    monkeypatch.setattr(launch, "usable_cores", lambda: 4)
    line = Mpiexec(Path("/opt/bin/mpiexec"), family).line(ranks, ["python", "x.py"], hosts)
    assert " ".join(line) == f"/opt/bin/mpiexec -n {ranks} {options}python x.py"


def test_more_ranks_than_tasks_of_a_job_are_not_forced(monkeypatch):
    monkeypatch.setattr(launch, "usable_cores", lambda: 1)
    monkeypatch.setattr(launch, "allocation", lambda: (Host("n1", 2),))
    assert "--oversubscribe" not in Mpiexec(Path("mpiexec"), Family.OPEN_MPI).line(8, ["x"])


def test_open_mpi_is_told_that_root_is_meant(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    environ = {"PATH": "/bin", "PMI_RANK": "1"}
    told = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert Mpiexec(Path("m"), Family.OPEN_MPI).environment(environ) == {"PATH": "/bin", **told}
    assert Mpiexec(Path("m"), Family.MPICH).environment(environ) == {"PATH": "/bin"}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert Mpiexec(Path("m"), Family.OPEN_MPI).environment(environ) == {"PATH": "/bin"}


def fake_launcher(path, says):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An interpreter whose environment and path hold no launcher."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


def test_the_launcher_beside_the_library_comes_first(elsewhere):
    beside = fake_launcher(elsewhere / "mpi" / "bin" / "mpiexec", "HYDRA build details")
    fake_launcher(elsewhere / "path" / "mpiexec", "HYDRA build details")
    for lib in ("lib", "lib/x86_64-linux-gnu", "lib/release"):
        library = Library("MPICH", "4.2", "", elsewhere / "mpi" / lib / "libmpi.so.12")
        assert find_mpiexec(library) == Mpiexec(beside, Family.MPICH)


def test_a_launcher_of_another_family_is_passed_over(elsewhere):
    fake_launcher(elsewhere / "venv" / "bin" / "mpiexec", "HYDRA build details")
    right = fake_launcher(elsewhere / "path" / "mpiexec", "mpiexec (Open MPI) 4.1.4")
    assert find_mpiexec(Library("Open MPI", "4.1.4", "", None)) == Mpiexec(right, Family.OPEN_MPI)


def test_debians_names_are_known(elsewhere):
    fake_launcher(elsewhere / "path" / "mpiexec", "HYDRA build details")
    right = fake_launcher(elsewhere / "path" / "mpiexec.openmpi", "mpiexec.openmpi (Open MPI) 4.1.4")
    assert find_mpiexec(Library("Open MPI", "4.1.4", "", None)).path == right


def test_without_a_matching_launcher_those_that_were_seen_are_named(elsewhere):
    fake_launcher(elsewhere / "path" / "mpiexec", "HYDRA build details")
    with pytest.raises(LaunchError, match=r"no mpiexec of Open MPI 5.0.1 found; seen: .*path/mpiexec \(MPICH\)"):
        find_mpiexec(Library("Open MPI", "5.0.1", "", None))
    with pytest.raises(LaunchError, match="does not know how Microsoft MPI 10 is launched"):
        find_mpiexec(Library("Microsoft MPI", "10", "", None))


def test_answers_are_found_among_what_libraries_print():
    # Intel MPI's launcher may put the lines of two ranks into one.
    printed = 'warning: no network\ntreering-probe {"size": 2}treering-probe {"size": 3}\n\nbye treering-probe {"size": 4}'
    assert [answer["size"] for answer in answers(printed)] == [2, 3, 4]


@pytest.fixture
def broken_mpi(tmp_path, monkeypatch):
    """Makes `import mpi4py.MPI` in other processes run some code instead."""
    find_library.cache_clear()

    def breaking(code):
        (tmp_path / "mpi4py").mkdir()
        (tmp_path / "mpi4py" / "__init__.py").write_text("class rc: pass\n")
        (tmp_path / "mpi4py" / "MPI.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    yield breaking
    find_library.cache_clear()


@pytest.mark.parametrize("code, said", [
    ("raise RuntimeError('cannot load MPI library')", "cannot load MPI library"),
    ("import os; os.abort()", "exit code -6"),
    ("import os; os._exit(0)", "exit code 0"),
])
def test_a_broken_library_is_named_and_does_no_harm(broken_mpi, code, said):
    broken_mpi(code)
    with pytest.raises(LaunchError, match=said):
        find_library()


def test_a_library_that_hangs_is_given_up(broken_mpi, monkeypatch):
    monkeypatch.setattr(launch, "PROBE_LIMIT", 0.5)
    broken_mpi("import time; time.sleep(60)")
    started = time.monotonic()
    with pytest.raises(LaunchError, match="longer than"):
        find_library()
    assert time.monotonic() - started < 10


def test_a_process_that_was_launched_does_not_launch_again(monkeypatch):
    monkeypatch.setenv(RANKS_VARIABLE, "4")
    with pytest.raises(LaunchError, match="launched 4 ranks"):
        relaunch(4, ["verify"])


# What follows starts ranks for real.

@pytest.fixture(scope="module")
def mpiexec():
    try:
        return find_mpiexec(find_library())
    except LaunchError as error:
        pytest.skip(str(error))


@pytest.mark.launch
def test_the_launcher_found_belongs_to_the_library_found(mpiexec):
    assert mpiexec.family is find_library().family
    assert find_library().path is None or find_library().path.exists()


STUB = """
import sys, types
import click
import treering.cli

@click.command()
@click.option("-n", type=int)
@click.option("--run", is_flag=True)
@click.option("--fail", type=int)
def command(n, run, fail):
    from treering.cli.world import enter_world

    world = enter_world(n)
    ranks = world.gather((world.rank, world.size))
    if world.rank == 0:
        print(ranks)
    if world.rank == fail:
        raise ZeroDivisionError("this rank alone")
    world.Barrier()

sys.modules["treering.cli.verify"] = types.SimpleNamespace(command=command)
"""


@pytest.fixture
def treering(tmp_path):
    """The command treering, in processes of its own, where `verify` only tells its ranks."""
    (tmp_path / "sitecustomize.py").write_text(STUB)
    environment = without_launcher() | {"PYTHONPATH": str(tmp_path)}
    return lambda *words, **settings: subprocess.run(
        [sys.executable, "-m", "treering", *words], env=environment | settings, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60)


@pytest.mark.launch
def test_a_command_started_alone_launches_itself_once(mpiexec, treering):
    done = treering("-n", "3", "verify", "--run")
    assert done.stdout == "[(0, 3), (1, 3), (2, 3)]\n", done.stderr
    assert done.returncode == 0


@pytest.mark.launch
def test_one_rank_needs_no_launcher(mpiexec, treering):
    assert treering("verify", "--run", "-n", "1", PATH="").stdout == "[(0, 1)]\n"


@pytest.mark.launch
def test_a_rank_that_fails_ends_the_others_and_says_which_it_was(mpiexec, treering):
    started = time.monotonic()
    done = treering("-n", "3", "verify", "--run", "--fail", "1")
    assert done.returncode not in (0, None)
    assert "unforeseen error on rank 1 of 3" in done.stderr
    assert "ZeroDivisionError: this rank alone" in done.stderr
    assert time.monotonic() - started < 30


@pytest.mark.launch
def test_a_failed_test_on_one_rank_ends_the_run_with_its_report(mpiexec, tmp_path):
    conftest = (HERE / "mpi" / "conftest.py").read_text()
    assert "GRACE = 10.0" in conftest
    (tmp_path / "conftest.py").write_text(conftest.replace("GRACE = 10.0", "GRACE = 0.5"))
    shutil.copy(HERE.parent / "setup.cfg", tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.mpi\n"
        "def test_ends_on_one_rank_only(comm):\n"
        "    assert comm.rank != 1, 'only rank 1 says so'\n"
        "    comm.Barrier()\n")
    line = mpiexec.line(2, [sys.executable, "-m", "pytest", "-q", "--with-mpi", "-p", "no:cacheprovider", str(tmp_path)])
    done = subprocess.run(
        line, env=mpiexec.environment(), cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "rank 1 of 2" in done.stdout + done.stderr
    assert "only rank 1 says so" in done.stdout + done.stderr
