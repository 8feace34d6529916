"""A heap of grains: equal spheres that repel, rub and lose energy at contacts (the discrete element method).

    python examples/python/grains.py --count 100000 --frames 60

Prints the energy and the height of the heap; --save writes the positions of each frame as NumPy's.
"""

import argparse
import pathlib
import time

import numpy as np

import weft as wp

RADIUS = wp.constant(0.1)
MASS = wp.constant(1.0 / 64.0)
STIFFNESS = wp.constant(8000.0)  # newtons for each metre that two grains overlap
DAMPING = wp.constant(2.0)  # newtons for each metre a second of approach
RUB = wp.constant(1.0)  # newtons for each metre a second across the contact, at most half the push
GRAVITY = wp.constant(9.81)
REACH = 2.0 * RADIUS


@wp.func
def contact(away: wp.vec3, gap: float, motion: wp.vec3, rub: float):
    """The force of a contact, whose gap is negative, on a grain that moves by `motion` relative to the other body."""
    apart = wp.dot(away, motion)
    push = -STIFFNESS * gap - DAMPING * wp.min(apart, 0.0)
    across = motion - away * apart
    speed = wp.length(across)
    against = wp.min(speed * rub, push * 0.5) / wp.max(speed, 1.0e-12)
    return away * push - across * against


@wp.kernel
def forces(
    grid: wp.uint64, x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), force: wp.array(dtype=wp.vec3)
):
    """The forces on each grain, in the order of the grid's cells: neighbouring threads look at the same cells."""
    i = wp.hash_grid_point_id(grid, wp.tid())
    position = x[i]
    motion = v[i]
    total = wp.vec3(0.0, -GRAVITY * MASS, 0.0)
    if position[1] < RADIUS:
        total += contact(wp.vec3(0.0, 1.0, 0.0), position[1] - RADIUS, motion, 4.0 * RUB)
    for other in wp.hash_grid_query(grid, position, REACH):
        apart = position - x[other]
        distance = wp.length(apart)
        if distance > 0.0 and distance < REACH:  # a grain does not meet itself
            total += contact(apart / distance, distance - REACH, motion - v[other], RUB)
    force[i] = total


@wp.kernel
def move(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), force: wp.array(dtype=wp.vec3), dt: float):
    """Velocity first, then position (symplectic Euler)."""
    i = wp.tid()
    v[i] = v[i] + force[i] * (dt / MASS)
    x[i] = x[i] + v[i] * dt


class Heap:
    """A block of grains that is thrown to the side from a metre above the floor."""

    def __init__(self, count, seed=5):
        side = max(1, int(np.ceil(count ** (1.0 / 3.0))))
        place = np.stack(np.unravel_index(np.arange(count), (side, side, side)), axis=-1)[:, [1, 0, 2]]
        random = np.random.default_rng(seed)
        x = (place - [side / 2.0, 0.0, side / 2.0]) * 2.2 * RADIUS + [0.0, 1.0 + RADIUS, 0.0]
        self.x = wp.array(x + random.uniform(-0.009, 0.009, x.shape), dtype=wp.vec3)
        self.v = wp.array(random.uniform(-0.3, 0.3, x.shape) + [4.0, 0.0, 0.0], dtype=wp.vec3)
        self.force = wp.zeros(count, dtype=wp.vec3)
        self.grid = wp.HashGrid(side, side, side)

    def advance(self, steps, dt):
        """Advances by steps of `dt` seconds."""
        for _ in range(steps):
            self.grid.build(self.x, REACH)
            wp.launch(forces, dim=len(self.x), inputs=[self.grid.id, self.x, self.v, self.force])
            wp.launch(move, dim=len(self.x), inputs=[self.x, self.v, self.force, dt])

    def energy(self):
        """The energy of motion and height, in joules."""
        x, v = self.x.numpy().astype(np.float64), self.v.numpy().astype(np.float64)
        return MASS * (0.5 * (v * v).sum() + GRAVITY * x[:, 1].sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--frames", type=int, default=30, help="of a sixtieth of a second")
    parser.add_argument("--device", help="by default a GPU if there is one")
    parser.add_argument("--save", help="a folder for the positions of each frame")
    options = parser.parse_args()

    with wp.ScopedDevice(options.device or wp.get_preferred_device()) as device:
        heap = Heap(options.count)
        print(f"{options.count} grains on {device}: {heap.energy():.0f} J")
        for frame in range(options.frames):
            start = time.perf_counter()
            heap.advance(16, 1.0 / 960.0)
            energy = heap.energy()  # waits
            took = (time.perf_counter() - start) / 16
            print(f"frame {frame}: {energy:.0f} J, {1e3 * took:.2f} ms a step")
            if options.save:
                pathlib.Path(options.save).mkdir(parents=True, exist_ok=True)
                np.save(f"{options.save}/grains_{frame:04}.npy", heap.x.numpy())


if __name__ == "__main__":
    main()
