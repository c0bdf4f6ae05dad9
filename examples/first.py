"""The example of the README. Run it with: mpiexec -n 4 python examples/first.py"""

import numpy as np
from mpi4py import MPI

import treering

comm = treering.Comm(MPI.COMM_WORLD)  # the one line that changes

gradient = np.arange(6.0) + comm.rank
total = np.empty_like(gradient)
comm.Allreduce(gradient, total, algorithm="ring")

if comm.rank == 0:
    print(total)
    print(comm.explain("all-reduce", total.nbytes, algorithm="ring"))
