# Closest points on a mesh by warp-lang: what the suite of geometry is compared with.
"""Usage: closest_points.py ROUNDS MESH FILE. MESH: a count and the float32 triples of points, a count and the int32
indices, a count and the float32 triples of what is asked. Writes "seconds mean" to FILE: the median time of all queries
on Warp's CPU device, and the mean distance. Exits with status 3 without warp-lang.
"""

import os
import statistics
import sys
import time

# Warp says on both streams what it found.
nowhere = os.open(os.devnull, os.O_WRONLY)
os.dup2(nowhere, 1)
os.dup2(nowhere, 2)

try:
    import numpy as np
    import warp as wp
except ImportError:
    sys.exit(3)

wp.config.quiet = True


@wp.kernel
def closest(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), distance: wp.array(dtype=float)):
    i = wp.tid()
    found = wp.mesh_query_point_no_sign(mesh, points[i], 1.0e6)
    if found.result:
        distance[i] = wp.length(wp.mesh_eval_position(mesh, found.face, found.u, found.v) - points[i])


def main():
    rounds, mesh_file, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    with open(mesh_file, "rb") as f:
        def take(kind, width):
            n = int(np.fromfile(f, np.int32, 1)[0])
            return np.fromfile(f, kind, n * width)
        points, indices, asked = take(np.float32, 3), take(np.int32, 1), take(np.float32, 3)
    with wp.ScopedDevice("cpu"):
        mesh = wp.Mesh(wp.array(points.reshape(-1, 3), dtype=wp.vec3), wp.array(indices, dtype=int))
        p = wp.array(asked.reshape(-1, 3), dtype=wp.vec3)
        distance = wp.zeros(len(p), dtype=float)
        samples = []
        for k in range(rounds + 1):
            start = time.perf_counter()
            wp.launch(closest, dim=len(p), inputs=[mesh.id, p, distance])
            if k > 0:
                samples.append(time.perf_counter() - start)
        with open(out, "w") as f:
            f.write(f"{statistics.median(samples)} {float(distance.numpy().astype(np.float64).mean())}\n")


main()
