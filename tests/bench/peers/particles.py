# The particle system of Warp's documents on warp-lang, for comparison with the suite of gradients.
"""The particle system of Warp's documents on warp-lang's CPU device: seconds of the way there and of the way back.

Usage: particles.py PARTICLES STEPS ROUNDS FILE. Writes "forward backward gradient" to the file: medians, and one element
of the gradient of the mean square of the final positions with respect to the initial velocity. Exits with status 3
without warp-lang.
"""

import statistics
import sys
import time

from quiet_warp import wp


@wp.kernel
def integrate(
    x0: wp.array(dtype=wp.vec3),
    v0: wp.array(dtype=wp.vec3),
    w: wp.array(dtype=float),
    gravity: wp.vec3,
    stiffness: float,
    dt: float,
    x1: wp.array(dtype=wp.vec3),
    v1: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    f = -stiffness * x0[i]
    v = v0[i] + (f * w[i] + gravity) * dt
    v1[i] = v
    x1[i] = x0[i] + v * dt


@wp.kernel
def mean_square(x: wp.array(dtype=wp.vec3), scale: float, loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, wp.dot(x[wp.tid()], x[wp.tid()]) * scale)


def main():
    particles, steps, rounds = (int(a) for a in sys.argv[1:4])
    with wp.ScopedDevice("cpu"):
        # The tape keeps references, so each step needs arrays of its own.
        x = [wp.full(particles, wp.vec3(0.1, 0.2, 0.3), dtype=wp.vec3, requires_grad=True) for _ in range(steps + 1)]
        v = [wp.full(particles, wp.vec3(1.0, 0.0, -1.0), dtype=wp.vec3, requires_grad=True) for _ in range(steps + 1)]
        w = wp.full(particles, 2.0, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        forward, backward = [], []
        for _ in range(rounds + 1):
            start = time.perf_counter()
            loss.zero_()
            tape = wp.Tape()
            with tape:
                for s in range(steps):
                    wp.launch(
                        integrate,
                        dim=particles,
                        inputs=[x[s], v[s], w, wp.vec3(0.0, -9.81, 0.0), 3.0, 0.01],
                        outputs=[x[s + 1], v[s + 1]],
                    )
                wp.launch(mean_square, dim=particles, inputs=[x[steps], 1.0 / particles], outputs=[loss])
            middle = time.perf_counter()
            tape.backward(loss)
            end = time.perf_counter()
            gradient = float(v[0].grad.numpy()[0][1]) * particles
            tape.zero()
            forward.append(middle - start)
            backward.append(end - middle)
    with open(sys.argv[4], "w") as out:
        print(statistics.median(forward[1:]), statistics.median(backward[1:]), gradient, file=out)


main()
