"""Random calls, one after the other on the same communicators: each must do what MPI's own does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mpi4py import MPI
from together import Asking, own

from treering.core.collective import COLLECTIVES, SCATTER, Case
from treering.measuring.own import OWN
from treering.running.comm import Comm
from treering.table import TABLE, algorithms_of, find_collective

pytestmark = pytest.mark.mpi

OPERATORS = {
    "sum": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN, "land": MPI.LAND, "lor": MPI.LOR, "lxor": MPI.LXOR,
    "band": MPI.BAND, "bor": MPI.BOR, "bxor": MPI.BXOR}
DTYPES = ("int8", "uint16", "int32", "uint64")
"""Integers only: there every order of reduction gives the same bits."""


@dataclass(frozen=True)
class Drawn:
    """One call, as all ranks draw it; ``place`` is of the root, in parts of the communicator's size."""

    collective: str
    algorithm: str | None
    count: int
    dtype: str
    op: str
    place: float
    in_place: bool
    on: str


@st.composite
def calls(draw: st.DrawFn) -> Drawn:
    collective = draw(st.sampled_from([c for c in COLLECTIVES if c in OWN]))
    return Drawn(
        collective.name, draw(st.sampled_from([None, *(a.name for a in algorithms_of(collective))])), draw(st.integers(0, 40)),
        draw(st.sampled_from(DTYPES)), draw(st.sampled_from(sorted(OPERATORS))), draw(st.sampled_from([0, 0.4, 0.99])),
        draw(st.booleans()), draw(st.sampled_from(["all", "backwards", "parity"])))


def outcome(comm: Any, drawn: Drawn) -> list[bytes]:
    """Make the call and return what the buffers then hold, as far as it is defined."""
    collective, size, rank = find_collective(drawn.collective), comm.size, comm.rank
    case = Case(size, int(drawn.place * size) if collective.rooted else 0, collective.units(size))
    rooms = {space: len(collective.place(rank, case, space)) * drawn.count for space in ("in", "out")}
    random = np.random.default_rng([rank, drawn.count])
    send, recv = (random.integers(0, 100, room).astype(drawn.dtype) for room in rooms.values())
    keep = len(recv)
    sendbuf, recvbuf = send, recv
    if drawn.in_place and rooms["in"] and rooms["out"]:
        larger = send if len(send) > len(recv) else recv
        if collective is SCATTER:
            recvbuf = MPI.IN_PLACE
        else:
            sendbuf, recvbuf = MPI.IN_PLACE, larger
            recv = larger
    OWN[collective](comm, sendbuf, recvbuf, case.root, OPERATORS[drawn.op])
    return [send.tobytes() if recv is not send else b"", recv[:keep].tobytes()]


def test_random_calls_do_what_mpi_does(ours: Comm) -> None:
    comms = {"all": ours, "backwards": ours.Split(0, -ours.rank), "parity": ours.Split(ours.rank % 2, ours.rank)}

    # All ranks must draw the same, and end together: nothing here may depend on the time or on an earlier run.
    @settings(
        max_examples=200, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(calls())
    def check(drawn: Drawn) -> None:
        assert len(set(own(ours).allgather(drawn))) == 1, "the ranks have drawn different calls"
        comm = comms[drawn.on]
        algorithm = TABLE.get((drawn.collective, drawn.algorithm or ""))
        fit = algorithm and not algorithm.why_not(comm.size)
        expected = outcome(own(comm), drawn)
        right = outcome(Asking(comm, algorithm if fit else None), drawn) == expected
        assert own(ours).allreduce(right, MPI.LAND), f"wrong on {'another rank' if right else 'this rank'}"

    check()
    for comm in list(comms.values())[1:]:
        comm.Free()
