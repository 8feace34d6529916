"""The surface of an ocean from a spectrum of waves (Tessendorf 2001), with floats that drift on it.

    python examples/python/ocean.py --size 256 --frames 60 --save ocean

The spectrum and the floats are kernels; the Fourier transform is NumPy's, on the memory of the same arrays. Prints the
height of the waves; --save writes the heights of each frame as NumPy's.
"""

import argparse
import pathlib

import numpy as np

import weft as wp

GRAVITY = wp.constant(9.81)


@wp.kernel
def amplitudes(
    wave: wp.array2d(dtype=wp.vec2),
    start: wp.array2d(dtype=wp.vec2),
    opposite: wp.array2d(dtype=wp.vec2),
    time: float,
    heights: wp.array2d(dtype=wp.vec2),
):
    """The complex amplitude of each wave at a time: start * exp(i w t) + conj(opposite) * exp(-i w t), w = sqrt(g k).

    The sum with the conjugate of the opposite wave makes the heights real.
    """
    i, j = wp.tid()
    phase = wp.sqrt(GRAVITY * wp.length(wave[i, j])) * time
    c, s = wp.cos(phase), wp.sin(phase)
    a, b = start[i, j], opposite[i, j]
    heights[i, j] = wp.vec2(a[0] * c - a[1] * s + b[0] * c - b[1] * s, a[0] * s + a[1] * c - b[0] * s - b[1] * c)


@wp.func
def height_at(heights: wp.array2d(dtype=float), place: wp.vec2, spacing: float):
    """The height at a place, linear between four points of the surface, which repeats."""
    n = heights.shape[0]
    x, y = place[0] / spacing, place[1] / spacing
    i, j = int(wp.floor(x)), int(wp.floor(y))
    u, v = x - float(i), y - float(j)
    i0, i1 = wp.mod(wp.mod(i, n) + n, n), wp.mod(wp.mod(i + 1, n) + n, n)
    j0, j1 = wp.mod(wp.mod(j, n) + n, n), wp.mod(wp.mod(j + 1, n) + n, n)
    low = wp.lerp(heights[i0, j0], heights[i0, j1], v)
    high = wp.lerp(heights[i1, j0], heights[i1, j1], v)
    return wp.lerp(low, high, u)


@wp.kernel
def drift(heights: wp.array2d(dtype=float), spacing: float, dt: float, x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3)):
    """Floats stay on the surface; its slope drives them, and the water slows them down."""
    i = wp.tid()
    place = wp.vec2(x[i][0], x[i][2])
    e = 0.5 * spacing
    right = height_at(heights, place + wp.vec2(e, 0.0), spacing) - height_at(heights, place - wp.vec2(e, 0.0), spacing)
    front = height_at(heights, place + wp.vec2(0.0, e), spacing) - height_at(heights, place - wp.vec2(0.0, e), spacing)
    velocity = (v[i] - wp.vec3(right, 0.0, front) * (GRAVITY / spacing * dt)) * wp.exp(-0.5 * dt)
    place += wp.vec2(velocity[0], velocity[2]) * dt
    v[i] = velocity
    x[i] = wp.vec3(place[0], height_at(heights, place, spacing), place[1])


class Ocean:
    """A square piece of an ocean that repeats, of `size` points, `length` metres wide, under a wind in metres a second."""

    def __init__(self, size, length=200.0, wind=(12.0, 5.0), floats=100, seed=7):
        self.size, self.spacing, self.time = size, length / size, 0.0
        k = np.fft.fftfreq(size, d=1.0 / size) * 2.0 * np.pi / length
        wave = np.stack(np.meshgrid(k, k, indexing="ij"), axis=-1)
        square = (wave**2).sum(axis=-1)
        square[0, 0] = np.inf  # no constant part
        speed = np.hypot(*wind)
        along = (wave @ (np.array(wind) / speed)) ** 2 / square
        longest = speed**2 / 9.81  # of the waves that this wind makes, over 2 pi
        phillips = 8.1e-3 / (4.0 * np.pi) * np.exp(-1.0 / (square * longest**2)) / square**2 * along * np.exp(-square * 0.1**2)
        random = np.random.default_rng(seed)
        gauss = random.normal(size=wave.shape) * np.sqrt(phillips / 2.0)[..., None] * (2.0 * np.pi / length)
        opposite = np.roll(gauss[::-1, ::-1], 1, axis=(0, 1))
        self.wave, self.start, self.opposite = (wp.array(a, dtype=wp.vec2) for a in (wave, gauss, opposite))
        self.transform = wp.zeros((size, size), dtype=wp.vec2)
        self.heights = wp.zeros((size, size), dtype=float)
        place = random.uniform(0.0, length, (floats, 3)) * [1.0, 0.0, 1.0]
        self.floats = wp.array(place, dtype=wp.vec3)
        self.speeds = wp.zeros(floats, dtype=wp.vec3)

    def advance(self, dt):
        """The surface a time later, and the floats on it."""
        self.time += dt
        waves = [self.wave, self.start, self.opposite, self.time]
        wp.launch(amplitudes, dim=self.heights.shape, inputs=waves, outputs=[self.transform])
        spectrum = np.ascontiguousarray(self.transform.numpy()).view(np.complex64)[..., 0]
        self.heights.assign(np.fft.ifft2(spectrum, norm="forward").real.astype(np.float32))
        wp.launch(drift, dim=len(self.floats), inputs=[self.heights, self.spacing, dt, self.floats, self.speeds])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256, help="points along a side")
    parser.add_argument("--frames", type=int, default=60, help="of a thirtieth of a second")
    parser.add_argument("--device", help="by default a GPU if there is one")
    parser.add_argument("--save", help="a folder for the heights of each frame")
    options = parser.parse_args()

    with wp.ScopedDevice(options.device or wp.get_preferred_device()):
        ocean = Ocean(options.size)
        for frame in range(options.frames):
            ocean.advance(1.0 / 30.0)
            heights = ocean.heights.numpy()
            if frame % 10 == 0:
                significant = 4.0 * heights.std()  # the mean of the highest third, by convention
                print(f"{ocean.time:.2f} s: significant height {significant:.2f} m, highest {heights.max():.2f} m")
            if options.save:
                pathlib.Path(options.save).mkdir(parents=True, exist_ok=True)
                np.save(f"{options.save}/ocean_{frame:04}.npy", heights)


if __name__ == "__main__":
    main()
