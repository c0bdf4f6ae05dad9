"""Who started this process, and Slurm's lists."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treering.core.errors import LaunchError, Refused
from treering.running import environment
from treering.running.environment import is_first_rank, launcher, require_full_world, without_launcher
from treering.running.hosts import Host
from treering.running.slurm import allocation, parse_nodes, parse_tasks

OPEN_MPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
HYDRA = {"PMI_SIZE": "2", "PMI_RANK": "0", "MPI_LOCALRANKID": "0"}
STEP = {"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5", "SLURM_LOCALID": "2"}
BATCH = {"SLURM_NTASKS": "8", "SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}


@pytest.mark.parametrize("environ, numbers", [
    (OPEN_MPI, (4, 3, 1)), (HYDRA, (2, 0, 0)), (STEP, (8, 5, 2)), ({"PMI_SIZE": "2"}, (2, None, None)),
])
def test_each_launcher_is_known_by_its_variables(environ, numbers):
    start = launcher(environ)
    assert start is not None
    assert (start.ranks, start.rank, start.local_rank) == numbers


@pytest.mark.parametrize("environ", [{}, BATCH, {"SLURM_STEP_NUM_TASKS": "1"}, {"PMI_SIZE": ""}, {"PMI_SIZE": "many"}])
def test_started_alone(environ):
    # A batch script is not a step, and an interactive shell is a step of one task.
    assert launcher(environ) is None
    assert is_first_rank(environ)


@pytest.mark.parametrize("ancestors, ranks", [
    (["sh", "hydra_pmi_proxy", "mpiexec", "python", "prterun"], 2),
    (["prterun", "python", "hydra_pmi_proxy"], 4),
    (["slurmstepd"], 8),
    ([], 4),  # /proc is hidden: mpiexec inside srun is the usual nesting
])
def test_the_innermost_launcher_counts(monkeypatch, ancestors, ranks):
    monkeypatch.setattr(environment, "_ancestors", lambda: iter(ancestors))
    start = launcher({**OPEN_MPI, **HYDRA, **STEP})
    assert start is not None
    assert start.ranks == ranks


def test_the_processes_above_are_found():
    program = "from treering.running.environment import _ancestors; print(*_ancestors(), sep='\\n')"
    done = subprocess.run(["sh", "-c", f'"{sys.executable}" -c "{program}"; true'], capture_output=True, text=True, check=True)
    above = done.stdout.splitlines()
    assert above[0] == "sh"
    assert any(name.startswith(("python", "pytest")) for name in above[1:])


def test_rank_0_speaks():
    assert is_first_rank(HYDRA)
    assert not is_first_rank(OPEN_MPI)


@pytest.mark.parametrize("environ, said", [
    (HYDRA, "Open MPI cannot be started by Hydra"),
    (OPEN_MPI, "not the launcher of the MPI that mpi4py found"),
    (STEP, "srun --mpi=pmix for Open MPI"),
    ({environment.RANKS_VARIABLE: "3"}, "treering launched 3 ranks"),
])
def test_a_world_of_one_where_more_were_started_explains_itself(environ, said):
    with pytest.raises(LaunchError, match=said):
        require_full_world(1, environ)


@pytest.mark.parametrize("size, environ", [(2, HYDRA), (4, OPEN_MPI), (1, {}), (1, BATCH), (1, {"PMI_SIZE": "1"})])
def test_a_full_world_is_accepted(size, environ):
    require_full_world(size, environ)


def test_what_a_launcher_said_is_forgotten_and_what_the_user_set_stays():
    users = {"PATH": "/bin", "OMPI_MCA_pml": "ob1", "I_MPI_FABRICS": "shm", "UCX_TLS": "tcp", "SLURM_JOB_ID": "7"}
    launchers = {**OPEN_MPI, **HYDRA, "PMIX_RANK": "0", "HYDRA_BSTRAP_NODE_ID": "0", environment.RANKS_VARIABLE: "2"}
    assert without_launcher({**users, **launchers}) == users


@pytest.mark.parametrize("text, names", [
    ("b04-[09-10]", "b04-09 b04-10"),
    ("nodeA,nodeB[001,003],nodeC", "nodeA nodeB001 nodeB003 nodeC"),
    ("nodes[006,011]", "nodes006 nodes011"),
    ("n[1-2]m[3-4]", "n1m3 n1m4 n2m3 n2m4"),
    ("n[8-11]", "n8 n9 n10 n11"),
    ("n[098-101]x", "n098x n099x n100x n101x"),
    ("n[1,3-4,9]", "n1 n3 n4 n9"),
    ("single", "single"),
    ("", ""),
])
def test_slurm_node_lists(text, names):
    assert parse_nodes(text) == tuple(names.split())


@pytest.mark.parametrize("text", ["n[1-2", "n1-2]", "n[2-1]", "n[a-b]", "n[]", "a,,b", "n[[1]]", "a b", ","])
def test_broken_node_lists_are_refused(text):
    with pytest.raises(Refused):
        parse_nodes(text)


@given(st.lists(st.integers(0, 10**4), min_size=1, unique=True), st.integers(1, 6))
def test_numbers_keep_their_zeros(numbers, width):
    padded = [str(n).zfill(width) for n in numbers]
    assert parse_nodes(f"node[{','.join(padded)}]") == tuple(f"node{n}" for n in padded)


@pytest.mark.parametrize("text, tasks", [("1(x2)", (1, 1)), ("2(x3),1", (2, 2, 2, 1)), ("4", (4,)), ("", ())])
def test_slurm_task_lists(text, tasks):
    assert parse_tasks(text) == tasks


@pytest.mark.parametrize("text", ["x", "2(3)", "2(x)", "1,,1", "-1"])
def test_broken_task_lists_are_refused(text):
    with pytest.raises(Refused):
        parse_tasks(text)


def test_the_hosts_of_a_job():
    job = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2,1"}
    assert allocation(job) == (Host("n1", 2), Host("n2", 1))
    assert allocation({"SLURM_JOB_NODELIST": "n1"}) == (Host("n1", 1),)
    assert allocation({}) is None
    assert allocation({"SLURM_JOB_NODELIST": ""}) is None


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(Refused, match=r"names 2 nodes .* tasks for 3"):
        allocation({"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x3)"})
