# Warp's launches, for comparison with the suite of the runtime.
"""Usage: launch.py ROUNDS LAUNCHES FILE. Launches a kernel with four arrays and two scalars over 32 threads, LAUNCHES times a
round, on warp-lang's CPU device, which runs each launch at once. Writes to FILE: the median of what one launch takes, in
seconds, and an element of the result. Exits with status 3 without warp-lang.
"""

import statistics
import sys
import time

from quiet_warp import wp


@wp.kernel(enable_backward=False)
def four_arrays(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), out: wp.array(dtype=float),
                s: float, m: int):
    i = wp.tid()
    out[i] = a[i] + b[i] + c[i] + s * float(m)


def main():
    rounds, launches = int(sys.argv[1]), int(sys.argv[2])
    with wp.ScopedDevice("cpu"):
        a, b, c = (wp.full(32, value, dtype=float) for value in (1.0, 2.0, 3.0))
        out = wp.zeros(32, dtype=float)
        times = []
        for _ in range(rounds + 1):
            start = time.perf_counter()
            for _ in range(launches):
                wp.launch(four_arrays, dim=32, inputs=[a, b, c, out, 0.5, 2])
            times.append((time.perf_counter() - start) / launches)
        with open(sys.argv[3], "w") as result:
            print(statistics.median(times[1:]), out.numpy()[7], file=result)


main()
