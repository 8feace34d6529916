# Queries on a mesh by warp-lang, for comparison with the suite of geometry.
"""Usage: mesh_queries.py points|boxes ROUNDS INPUT FILE. INPUT: a count and the float32 triples of the mesh's points, a
count and its int32 indices, then what is asked: a count and float32 triples of points, or two of them of the lower and
upper bounds of boxes. Writes "seconds sum" to FILE: the median time of all queries on Warp's CPU device, and the sum of
the distances to the closest points, or the number of triangles found whose boxes touch the boxes. Exits with status 3
without warp-lang.
"""

import statistics
import sys
import time

from quiet_warp import np, wp


@wp.kernel(enable_backward=False)
def closest(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), distance: wp.array(dtype=float)):
    i = wp.tid()
    found = wp.mesh_query_point_no_sign(mesh, points[i], 1.0e6)
    if found.result:
        distance[i] = wp.length(wp.mesh_eval_position(mesh, found.face, found.u, found.v) - points[i])


@wp.kernel(enable_backward=False)
def touching(mesh: wp.uint64, lower: wp.array(dtype=wp.vec3), upper: wp.array(dtype=wp.vec3),
             counts: wp.array(dtype=int)):
    i = wp.tid()
    n = int(0)
    query = wp.mesh_query_aabb(mesh, lower[i], upper[i])
    face = int(0)
    while wp.mesh_query_aabb_next(query, face):
        n += 1
    counts[i] = n


def main():
    kind, rounds, source, out = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    with open(source, "rb") as f:
        def take(dtype, width):
            n = int(np.fromfile(f, np.int32, 1)[0])
            return np.fromfile(f, dtype, n * width)
        points, indices = take(np.float32, 3), take(np.int32, 1)
        asked = [take(np.float32, 3).reshape(-1, 3) for _ in range(2 if kind == "boxes" else 1)]
    with wp.ScopedDevice("cpu"):
        mesh = wp.Mesh(wp.array(points.reshape(-1, 3), dtype=wp.vec3), wp.array(indices, dtype=int))
        inputs = [wp.array(a, dtype=wp.vec3) for a in asked]
        results = wp.zeros(len(asked[0]), dtype=int if kind == "boxes" else float)
        samples = []
        for k in range(rounds + 1):
            start = time.perf_counter()
            wp.launch(touching if kind == "boxes" else closest, dim=len(results), inputs=[mesh.id, *inputs, results])
            if k > 0:
                samples.append(time.perf_counter() - start)
        with open(out, "w") as f:
            f.write(f"{statistics.median(samples)} {float(results.numpy().astype(np.float64).sum())}\n")


main()
