"""A dam breaks: water as particles that carry density and pressure (smoothed particle hydrodynamics).

    python examples/python/sph.py --count 20000 --frames 60

Forces are those of Müller, Charypar and Gross (2003): pressure from density, viscosity, gravity, walls that bounce.
Prints how far the front has come; --save writes the positions of each frame as NumPy's.
"""

import argparse
import pathlib

import numpy as np

import weft as wp

SPACING = wp.constant(0.02)  # metres between particles at rest
REACH = wp.constant(0.04)  # of the smoothing kernels
MASS = wp.constant(1000.0 * 0.02**3)  # kilograms
REST = wp.constant(1000.0)  # kilograms a cubic metre
STIFFNESS = wp.constant(200.0)  # pascals for each kilogram a cubic metre above REST
VISCOSITY = wp.constant(4.0)  # pascal seconds
WIDTH = wp.constant(2.0)  # of the tank, in metres
DEPTH = wp.constant(0.4)


@wp.func
def poly6(square: float):
    """The kernel of densities, of a squared distance below that of REACH."""
    d = REACH * REACH - square
    return 315.0 / (64.0 * wp.pi * wp.pow(REACH, 9.0)) * d * d * d


@wp.kernel
def densities(grid: wp.uint64, x: wp.array(dtype=wp.vec3), density: wp.array(dtype=float)):
    """The density at each particle, from all within REACH, itself too."""
    i = wp.hash_grid_point_id(grid, wp.tid())
    total = float(0.0)
    for other in wp.hash_grid_query(grid, x[i], REACH):
        square = wp.length_sq(x[i] - x[other])
        if square < REACH * REACH:
            total += poly6(square)
    density[i] = MASS * total


@wp.func
def pressure(density: float):
    """Only water that is pressed pushes back: below REST there is no pull."""
    return STIFFNESS * wp.max(density - REST, 0.0)


@wp.kernel
def forces(
    grid: wp.uint64,
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    density: wp.array(dtype=float),
    acceleration: wp.array(dtype=wp.vec3),
):
    """Pressure (the gradient of the spiky kernel) and viscosity; equal on both sides of each pair."""
    i = wp.hash_grid_point_id(grid, wp.tid())
    position = x[i]
    own = pressure(density[i])
    total = wp.vec3()
    spiky = 45.0 / (wp.pi * wp.pow(REACH, 6.0))
    for other in wp.hash_grid_query(grid, position, REACH):
        apart = position - x[other]
        distance = wp.length(apart)
        if distance > 0.0 and distance < REACH:
            near = REACH - distance
            push = (own + pressure(density[other])) / (2.0 * density[other]) * near * near / distance
            total += (apart * push + (v[other] - v[i]) * (VISCOSITY / density[other] * near)) * (MASS * spiky)
    acceleration[i] = total / density[i] + wp.vec3(0.0, -9.81, 0.0)


@wp.func
def inside(place: float, speed: float, low: float, high: float):
    """A coordinate in the tank and its speed: walls turn it round, and take half of it."""
    if place < low:
        return low + (low - place) * 0.5, -0.5 * speed
    if place > high:
        return high - (place - high) * 0.5, -0.5 * speed
    return place, speed


@wp.kernel
def move(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), acceleration: wp.array(dtype=wp.vec3), dt: float):
    """Velocity first, then position, then the walls."""
    i = wp.tid()
    velocity = v[i] + acceleration[i] * dt
    position = x[i] + velocity * dt
    px, vx = inside(position[0], velocity[0], 0.0, WIDTH)
    py, vy = inside(position[1], velocity[1], 0.0, 100.0)
    pz, vz = inside(position[2], velocity[2], 0.0, DEPTH)
    x[i] = wp.vec3(px, py, pz)
    v[i] = wp.vec3(vx, vy, vz)


class Water:
    """A column of water at the left wall."""

    def __init__(self, count, seed=3):
        depth = int(DEPTH / SPACING)
        width = max(1, round((count / depth) ** 0.5 / 1.4))
        k = np.arange(count)
        place = np.stack([k // depth % width, k // (depth * width), k % depth], axis=-1) + 0.5
        jitter = np.random.default_rng(seed).uniform(-0.05, 0.05, place.shape)
        self.x = wp.array((place + jitter) * SPACING, dtype=wp.vec3)
        self.v = wp.zeros(count, dtype=wp.vec3)
        self.acceleration = wp.zeros(count, dtype=wp.vec3)
        self.density = wp.zeros(count, dtype=float)
        self.grid = wp.HashGrid(128, 64, 32)

    def advance(self, steps, dt=0.0005):
        """Advances by steps of `dt` seconds."""
        n = len(self.x)
        for _ in range(steps):
            self.grid.build(self.x, REACH)
            wp.launch(densities, dim=n, inputs=[self.grid.id, self.x, self.density])
            wp.launch(forces, dim=n, inputs=[self.grid.id, self.x, self.v, self.density, self.acceleration])
            wp.launch(move, dim=n, inputs=[self.x, self.v, self.acceleration, dt])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--frames", type=int, default=30, help="of a sixtieth of a second")
    parser.add_argument("--device", help="by default a GPU if there is one")
    parser.add_argument("--save", help="a folder for the positions of each frame")
    options = parser.parse_args()

    with wp.ScopedDevice(options.device or wp.get_preferred_device()) as device:
        water = Water(options.count)
        print(f"{options.count} particles on {device}")
        for frame in range(options.frames):
            water.advance(33)
            x, density = water.x.numpy(), water.density.numpy()
            print(f"frame {frame}: front at {x[:, 0].max():.2f} m, density {np.median(density):.0f} kg/m3")
            if options.save:
                pathlib.Path(options.save).mkdir(parents=True, exist_ok=True)
                np.save(f"{options.save}/water_{frame:04}.npy", x)


if __name__ == "__main__":
    main()
