"""A plan: bound once, run as often as wanted, on whatever the buffers then hold."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from together import refused

from treering.core.collective import Case
from treering.running.comm import Comm
from treering.table import TABLE, Algorithm

pytestmark = pytest.mark.mpi


def test_a_plan_runs_on_what_the_buffers_hold_each_time(ours: Comm) -> None:
    send, recv = np.empty(50), np.empty(50)
    plan = ours.plan("all-reduce", send, recv, algorithm="ring")
    for turn in range(100):
        send[:] = np.arange(50) + ours.rank * turn
        plan.execute()
        assert (recv == np.arange(50.0) * ours.size + turn * ours.size * (ours.size - 1) // 2).all()


def test_a_plan_in_place_takes_its_last_result_for_its_next_input(ours: Comm) -> None:
    buffer = np.ones(7, np.int64)
    plan = ours.plan("allreduce", MPI.IN_PLACE, buffer, op=MPI.SUM, algorithm="doubling")
    for turn in range(1, 6):
        plan.execute()
        assert (buffer == ours.size ** turn).all()


def test_many_plans_on_one_communicator_do_not_disturb_each_other(ours: Comm) -> None:
    payloads = [np.full(3, -1) for _ in range(ours.size)]
    plans = [ours.plan("broadcast", None, payload, root) for root, payload in enumerate(payloads)]
    plans.append(ours.plan("broadcast", None, payloads[0]))
    for turn in range(3):
        for root, payload in enumerate(payloads):
            payload[:] = 10 * turn + root if root == ours.rank else -1
        for plan in plans:
            plan.execute()
        assert [payload.tolist() for payload in payloads] == [[10 * turn + root] * 3 for root in range(ours.size)]


@pytest.mark.parametrize("algorithm", TABLE.values(), ids=str)
def test_a_run_takes_no_new_memory(ours: Comm, algorithm: Algorithm) -> None:
    """Nothing that grows with the payload; requests and views of a few hundred bytes come and go."""
    if algorithm.why_not(ours.size):
        return
    collective, many = algorithm.collective, 1 << 16
    buffers = [np.ones(many * ours.size, np.int8) for _ in range(2)]
    case = Case(ours.size, 0, collective.units(ours.size))
    parts = [len(collective.place(ours.rank, case, space)) for space in ("in", "out")]
    send, recv = (buffer[:many * part] if part else None for buffer, part in zip(buffers, parts))
    plan = ours.plan(collective, send, recv, algorithm=algorithm)
    plan.execute()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    for _ in range(3):
        plan.execute()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < many // 2


def test_calls_take_their_scratch_from_the_communicator(ours: Comm) -> None:
    send, recv = np.ones(1 << 16), np.empty(1 << 16)
    ours.Allreduce(send, recv, algorithm="doubling")
    tracemalloc.start()
    ours.Allreduce(send, recv, algorithm="doubling")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < send.nbytes // 2


def test_a_plan_is_refused_as_a_call_is(ours: Comm) -> None:
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        (("all-reduse", np.ones(2), np.ones(2)), {}, "no collective is called 'all-reduse'"),
        (("all-reduce", np.ones(2), np.ones(3)), {}, "the receive buffer holds 3 elements, not 2"),
        (("all-reduce", np.ones(2), np.ones(2)), {"algorithm": "chian"}, "has no algorithm 'chian'"),
        (("all-reduce", np.ones(2), np.ones(2)), {"op": MPI.BAND}, "bitwise and is not defined for elements of type float64"),
    ]
    for arguments, more, message in cases:
        with refused(ours, message):
            ours.plan(*arguments, **more)


def test_a_reduction_without_operator_sums_and_a_movement_ignores_it(ours: Comm) -> None:
    recv = np.empty(1, np.int64)
    ours.plan("all-reduce", np.array([ours.rank]), recv).execute()
    assert recv == ours.size * (ours.size - 1) // 2
    recv[:] = ours.rank
    ours.plan("broadcast", None, recv, root=ours.size - 1).execute()
    assert recv == ours.size - 1
