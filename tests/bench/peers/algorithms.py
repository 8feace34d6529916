# Warp's sort and scan, for comparison with the suite of algorithms.
"""wp.utils.radix_sort_pairs and wp.utils.array_scan on warp-lang's CPU device: seconds.

Usage: algorithms.py PAIRS ELEMENTS ROUNDS FILE. Writes "sort scan" to the file: medians, of pairs of a random uint32 key
and an int32 value, and of int32 elements. Exits with status 3 without warp-lang.
"""

import statistics
import sys
import time

from quiet_warp import np, wp


def main():
    pairs, elements, rounds = (int(a) for a in sys.argv[1:4])
    random = np.random.default_rng(1)
    with wp.ScopedDevice("cpu"):
        # Warp's sort takes arrays of twice the length, and works in the second half.
        source = np.zeros(2 * pairs, dtype=np.uint32)
        source[:pairs] = random.integers(0, 1 << 32, pairs, dtype=np.uint32)
        numbers = np.zeros(2 * pairs, dtype=np.int32)
        numbers[:pairs] = np.arange(pairs, dtype=np.int32)
        keys, values = wp.array(source, dtype=wp.uint32), wp.array(numbers, dtype=wp.int32)
        key_source, value_source = wp.clone(keys), wp.clone(values)
        x = wp.array(random.integers(0, 100, elements, dtype=np.int32), dtype=wp.int32)
        y = wp.zeros_like(x)
        sort, scan = [], []
        for _ in range(rounds + 1):
            wp.copy(keys, key_source)
            wp.copy(values, value_source)
            start = time.perf_counter()
            wp.utils.radix_sort_pairs(keys, values, pairs)
            middle = time.perf_counter()
            wp.utils.array_scan(x, y, inclusive=False)
            end = time.perf_counter()
            sort.append(middle - start)
            scan.append(end - middle)
        order = np.argsort(source[:pairs], kind="stable")
        assert (values.numpy()[:pairs] == order).all()
    with open(sys.argv[4], "w") as out:
        print(statistics.median(sort[1:]), statistics.median(scan[1:]), file=out)


main()
