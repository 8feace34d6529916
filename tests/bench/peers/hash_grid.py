# Warp's hash grid, for comparison with the suite of geometry.
"""Usage: hash_grid.py ROUNDS DIM RADIUS POINTS FILE. POINTS: float32 triples. Builds a wp.HashGrid of DIM^3 cells of width
RADIUS on warp-lang's CPU device, and counts neighbours within RADIUS of each point in the order of cells. Writes "build
query neighbours" to FILE: medians in seconds, and how many neighbours there are in all. Exits with status 3 without
warp-lang.
"""

import statistics
import sys
import time

from quiet_warp import np, wp


@wp.kernel(enable_backward=False)
def neighbours(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, counts: wp.array(dtype=int),
               sums: wp.array(dtype=float)):
    t = wp.hash_grid_point_id(grid, wp.tid())
    p = points[t]
    n = int(0)
    sum = float(0.0)
    query = wp.hash_grid_query(grid, p, radius)
    index = int(0)
    while wp.hash_grid_query_next(query, index):
        d = wp.length(p - points[index])
        if d <= radius:
            n += 1
            sum += 1.0 - d / radius
    counts[t] = n
    sums[t] = sum


def main():
    rounds, dim, radius = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    source = np.fromfile(sys.argv[4], np.float32).reshape(-1, 3)
    with wp.ScopedDevice("cpu"):
        points = wp.array(source, dtype=wp.vec3)
        counts = wp.zeros(len(points), dtype=int)
        sums = wp.zeros(len(points), dtype=float)
        grid = wp.HashGrid(dim, dim, dim)
        build, query = [], []
        for _ in range(rounds + 1):
            start = time.perf_counter()
            grid.build(points, radius)
            middle = time.perf_counter()
            wp.launch(neighbours, dim=len(points), inputs=[grid.id, points, radius, counts, sums])
            end = time.perf_counter()
            build.append(middle - start)
            query.append(end - middle)
    with open(sys.argv[5], "w") as out:
        print(statistics.median(build[1:]), statistics.median(query[1:]), int(counts.numpy().sum()), file=out)


main()
