"""A plan is made once and run often; the trace says what was really sent. Run: mpiexec -n 4 python examples/plan.py"""

import numpy as np
from mpi4py import MPI

import treering

comm = treering.Comm(MPI.COMM_WORLD)
weights = np.full(1000, comm.rank, np.float32)
plan = comm.plan("all-reduce", MPI.IN_PLACE, weights, op=MPI.MAX, algorithm="halving-doubling")

with comm.tracing() as trace:
    for _ in range(3):
        plan.execute()

print(f"rank {comm.rank}: largest {weights.max():.0f}, {trace.messages} messages, {trace.sent_bytes} bytes sent", flush=True)
