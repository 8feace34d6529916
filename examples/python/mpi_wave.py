"""Waves on a lake that is split over the processes of MPI: each computes a strip of rows, and gives its outermost rows to its
neighbours, straight from the memory of its arrays.

    mpiexec -n 4 python examples/python/mpi_wave.py --size 1024 --steps 500 --save waves.npy

The result does not depend on the number of processes, bit by bit. Needs mpi4py.
"""

import argparse
import time

import numpy as np
from mpi4py import MPI

import weft as wp


@wp.kernel
def drop(height: wp.array2d(dtype=float), first_row: int, size: int):
    """A hill at one place of the lake. Row 0 of each strip is its neighbour's."""
    i, j = wp.tid()
    x = float(i - 1 + first_row) / float(size) - 0.3
    y = float(j) / float(size) - 0.4
    height[i, j] = wp.exp(-(x * x + y * y) * 400.0)


@wp.kernel
def advance(
    now: wp.array2d(dtype=float), before: wp.array2d(dtype=float), after: wp.array2d(dtype=float), speed_squared: float
):
    """One step of the wave equation, by differences of second order; the shores at both sides reflect."""
    i, j = wp.tid()
    row = i + 1
    columns = now.shape[1]
    left = wp.max(j - 1, 0)
    right = wp.min(j + 1, columns - 1)
    middle = now[row, j]
    curvature = now[row - 1, j] + now[row + 1, j] + now[row, left] + now[row, right] - 4.0 * middle
    after[row, j] = 2.0 * middle - before[row, j] + speed_squared * curvature


class Strip:
    """The rows of one process, with one more at each side, which are the neighbours' or reflect."""

    def __init__(self, comm, size, device):
        self.comm = comm
        self.first = size * comm.rank // comm.size
        self.rows = size * (comm.rank + 1) // comm.size - self.first
        self.size = size
        shape = (self.rows + 2, size)
        self.now, self.before, self.after = (wp.zeros(shape, dtype=float, device=device) for _ in range(3))
        for array in (self.now, self.before):
            wp.launch(drop, dim=shape, inputs=[array, self.first, size])

    def exchange(self):
        """Gets the neighbours' outermost rows. NumPy's arrays are weft's memory: MPI reads and writes there."""
        rows = self.now.numpy()
        above = self.comm.rank - 1 if self.comm.rank > 0 else MPI.PROC_NULL
        below = self.comm.rank + 1 if self.comm.rank + 1 < self.comm.size else MPI.PROC_NULL
        self.comm.Sendrecv(rows[1], dest=above, recvbuf=rows[-1], source=below)
        self.comm.Sendrecv(rows[-2], dest=below, recvbuf=rows[0], source=above)
        if above == MPI.PROC_NULL:
            rows[0] = rows[1]
        if below == MPI.PROC_NULL:
            rows[-1] = rows[-2]

    def step(self, speed_squared):
        """Advances by one step."""
        self.exchange()
        wp.launch(advance, dim=(self.rows, self.size), inputs=[self.now, self.before, self.after, speed_squared])
        self.before, self.now, self.after = self.now, self.after, self.before

    def gather(self):
        """All rows of the lake in the first process; None in the others."""
        own = np.ascontiguousarray(self.now.numpy()[1:-1])
        counts = self.comm.gather(own.size)
        whole = np.empty((self.size, self.size), dtype=np.float32) if self.comm.rank == 0 else None
        self.comm.Gatherv(own, (whole, counts) if whole is not None else None)
        return whole


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=512, help="rows and columns of the lake")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--save", help="a file for the heights, as NumPy's")
    options = parser.parse_args()

    comm = MPI.COMM_WORLD
    if comm.size > options.size:
        parser.error("there are more processes than rows")
    strip = Strip(comm, options.size, options.device)
    strip.step(0.2)  # compiles the kernels
    comm.Barrier()
    start = time.perf_counter()
    for _ in range(options.steps - 1):
        strip.step(0.2)
    comm.Barrier()
    seconds = time.perf_counter() - start
    whole = strip.gather()
    if comm.rank == 0:
        cells = options.size * options.size * (options.steps - 1)
        print(f"{comm.size} processes: {cells / max(seconds, 1e-9) / 1e6:.0f} million cells a second")
        print(f"heights from {whole.min():.4f} to {whole.max():.4f}, in the mean {whole.mean():.6f}")
        if options.save:
            np.save(options.save, whole)


if __name__ == "__main__":
    main()
