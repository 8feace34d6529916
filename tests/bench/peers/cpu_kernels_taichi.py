# The kernels of suite cpu in Taichi's language.
"""Usage: cpu_kernels_taichi.py KERNEL ROUNDS THREADS [INPUT] FILE. INPUT: arrays, each a count and so many numbers of 4
bytes. Runs the kernel on THREADS threads. Writes to FILE "seconds sum": the median time of a launch, and the sum of the
absolute values of the first one's results. Exits with status 3 without taichi.
"""

import os
import statistics
import sys
import time

# Taichi prints what it found.
nowhere = os.open(os.devnull, os.O_WRONLY)
os.dup2(nowhere, 1)
os.dup2(nowhere, 2)
os.environ["TI_ENABLE_PYBUF"] = "0"

try:
    import numpy as np
    import taichi as ti
except ImportError:
    sys.exit(3)

STEP = 0.125
FORCE = (0.5, -1.0, 0.25)
u32 = ti.u32


class Saxpy:
    def __init__(self, take):
        x, y = take(), take()
        self.x, self.y = ti.field(ti.f32, len(x)), ti.field(ti.f32, len(x))
        self.x.from_numpy(x)
        self.y.from_numpy(y)
        x, y = self.x, self.y

        @ti.kernel
        def run():
            for i in y:
                y[i] += 0.25 * x[i]

        self.run = run

    def results(self):
        return [self.y]


class Stencil:
    def __init__(self, take):
        a = take()
        n = round(len(a) ** 0.5)
        source, out = ti.field(ti.f32, (n, n)), ti.field(ti.f32, (n, n))
        source.from_numpy(a.reshape(n, n))
        self.out = out

        @ti.kernel
        def run():
            for i, j in out:
                if i > 0 and i < n - 1 and j > 0 and j < n - 1:
                    out[i, j] = 0.2 * (source[i, j] + source[i - 1, j] + source[i + 1, j] + source[i, j - 1] +
                                       source[i, j + 1])
                else:
                    out[i, j] = source[i, j]

        self.run = run

    def results(self):
        return [self.out]


def vector_field(a, width):
    field = ti.Vector.field(width, ti.f32, len(a) // width)
    field.from_numpy(a.reshape(-1, width))
    return field


class NBody:
    def __init__(self, take):
        bodies = vector_field(take(), 4)
        n = bodies.shape[0]
        out = ti.Vector.field(3, ti.f32, n)
        self.out = out

        @ti.kernel
        def run():
            for i in out:
                at = bodies[i]
                total = ti.Vector([0.0, 0.0, 0.0])
                for j in range(n):
                    other = bodies[j]
                    d = ti.Vector([other[0] - at[0], other[1] - at[1], other[2] - at[2]])
                    r = ti.rsqrt(d.dot(d) + 0.01)
                    total += d * (other[3] * r * r * r)
                out[i] = total

        self.run = run

    def results(self):
        return [self.out]


class Mandelbrot:
    def __init__(self, take):
        n, limit = 1024, 256
        out = ti.field(ti.i32, (n, n))
        self.out = out

        @ti.kernel
        def run():
            for i, j in out:
                cx = ti.cast(j, ti.f32) * (3.0 / n) - 2.25
                cy = ti.cast(i, ti.f32) * (3.0 / n) - 1.5
                x = 0.0
                y = 0.0
                steps = 0
                while steps < limit and x * x + y * y <= 4.0:
                    t = x * x - y * y + cx
                    y = 2.0 * x * y + cy
                    x = t
                    steps += 1
                out[i, j] = steps

        self.run = run

    def results(self):
        return [self.out]


class Gather:
    def __init__(self, take):
        a, b = take(), take().view(np.int32)
        x, out, index = ti.field(ti.f32, len(a)), ti.field(ti.f32, len(a)), ti.field(ti.i32, len(a))
        x.from_numpy(a)
        index.from_numpy(b)
        self.out = out

        @ti.kernel
        def run():
            for i in out:
                out[i] = x[index[i]]

        self.run = run

    def results(self):
        return [self.out]


def matrix_field(a, n):
    field = ti.Matrix.field(n, n, ti.f32, len(a) // (n * n))
    field.from_numpy(a.reshape(-1, n, n))
    return field


class Transform:
    def __init__(self, take):
        m, v = matrix_field(take(), 4), vector_field(take(), 4)
        out = ti.Vector.field(4, ti.f32, v.shape[0])
        self.out = out

        @ti.kernel
        def run():
            for i in out:
                out[i] = m[i] @ v[i]

        self.run = run

    def results(self):
        return [self.out]


class Svd3:
    def __init__(self, take):
        a = matrix_field(take(), 3)
        n = a.shape[0]
        u, v, sigma = ti.Matrix.field(3, 3, ti.f32, n), ti.Matrix.field(3, 3, ti.f32, n), ti.Vector.field(3, ti.f32, n)
        self.all = [u, sigma, v]

        @ti.kernel
        def run():
            for i in sigma:
                left, values, right = ti.svd(a[i])
                u[i] = left
                sigma[i] = ti.Vector([values[0, 0], values[1, 1], values[2, 2]])
                v[i] = right

        self.run = run

    def results(self):
        return self.all


# The algorithm of frontend/library/noise.cpp.
@ti.func
def pcg(x):
    state = x * u32(747796405) + u32(2891336453)
    word = ((state >> ((state >> u32(28)) + u32(4))) ^ state) * u32(277803737)
    return (word >> u32(22)) ^ word


@ti.func
def with_sign(hash, bit):
    return ti.select((hash & bit) != u32(0), -0.70710678, 0.70710678)


@ti.func
def corner(hash, x, y, z):
    gx = with_sign(hash, u32(4096)) * x
    gy = with_sign(hash, u32(8192)) * y
    gz = with_sign(hash, u32(16384)) * z
    return ti.select(hash < u32(0x55555555), gy + gz, ti.select(hash < u32(0xAAAAAAAA), gx + gz, gx + gy))


@ti.func
def fade(t):
    return t * t * t * (t * (t * 6.0 - 15.0) + 10.0)


@ti.func
def line(hash, z, dx, dy, dz):
    lower = corner(pcg(hash ^ z), dx, dy, dz)
    upper = corner(pcg(hash ^ (z + u32(1))), dx, dy, dz - 1.0)
    return lower + fade(dz) * (upper - lower)


@ti.func
def plane(hash, y, z, dx, dy, dz):
    lower = line(pcg(hash ^ y), z, dx, dy, dz)
    upper = line(pcg(hash ^ (y + u32(1))), z, dx, dy - 1.0, dz)
    return lower + fade(dy) * (upper - lower)


class Noise:
    def __init__(self, take):
        out = ti.field(ti.f32, (2048, 2048))
        self.out = out

        @ti.kernel
        def run():
            for i, j in out:
                p = ti.Vector([ti.cast(j, ti.f32), ti.cast(i, ti.f32), 3.3]) * 0.07
                below = ti.floor(p)
                d = p - below
                cell = ti.cast(ti.cast(below, ti.i32), u32)
                hash = pcg(u32(7))
                lower = plane(pcg(hash ^ cell[0]), cell[1], cell[2], d[0], d[1], d[2])
                upper = plane(pcg(hash ^ (cell[0] + u32(1))), cell[1], cell[2], d[0] - 1.0, d[1], d[2])
                out[i, j] = lower + fade(d[0]) * (upper - lower)

        self.run = run

    def results(self):
        return [self.out]


class Rotation:
    def __init__(self, take):
        q, v = vector_field(take(), 4), vector_field(take(), 3)
        out = ti.Vector.field(3, ti.f32, v.shape[0])
        self.out = out

        @ti.kernel
        def run():
            for i in out:
                r = ti.Vector([q[i][0], q[i][1], q[i][2]])
                x = v[i]
                t = 2.0 * r.cross(x)
                out[i] = x + q[i][3] * t + r.cross(t)

        self.run = run

    def results(self):
        return [self.out]


class Arrays:
    def __init__(self, take):
        pos, vel, a = vector_field(take(), 3), vector_field(take(), 3), take()
        inv_mass = ti.field(ti.f32, len(a))
        inv_mass.from_numpy(a)
        self.all = [pos, vel]

        @ti.kernel
        def run():
            for i in pos:
                v = vel[i] + ti.Vector(FORCE) * inv_mass[i] * STEP
                vel[i] = v
                pos[i] += v * STEP

        self.run = run

    def results(self):
        return self.all


class Structs:
    def __init__(self, take):
        a = take().reshape(-1, 7)
        vec3 = ti.types.vector(3, ti.f32)
        particle = ti.types.struct(pos=vec3, vel=vec3, inv_mass=ti.f32)
        particles = particle.field(shape=len(a), layout=ti.Layout.AOS)
        particles.from_numpy({"pos": a[:, :3].copy(), "vel": a[:, 3:6].copy(), "inv_mass": a[:, 6].copy()})
        self.all = [particles.pos, particles.vel]

        @ti.kernel
        def run():
            for i in particles:
                p = particles[i]
                p.vel += ti.Vector(FORCE) * p.inv_mass * STEP
                p.pos += p.vel * STEP
                particles[i] = p

        self.run = run

    def results(self):
        return self.all


class Particles:
    """The particle system of the case of gradients, there and back by Taichi's tape."""

    def __init__(self, take):
        self.n, steps = 100_000, 60
        n = self.n
        x = ti.Vector.field(3, ti.f32, (steps + 1, n), needs_grad=True)
        v = ti.Vector.field(3, ti.f32, (steps + 1, n), needs_grad=True)
        w = ti.field(ti.f32, n)
        loss = ti.field(ti.f32, (), needs_grad=True)
        w.fill(2.0)
        self.v = v

        @ti.kernel
        def start():
            for i in range(n):
                x[0, i] = ti.Vector([0.1, 0.2, 0.3])
                v[0, i] = ti.Vector([1.0, 0.0, -1.0])

        @ti.kernel
        def integrate(s: ti.i32):
            for i in range(n):
                f = -3.0 * x[s, i]
                v[s + 1, i] = v[s, i] + (f * w[i] + ti.Vector([0.0, -9.81, 0.0])) * 0.01
                x[s + 1, i] = x[s, i] + v[s + 1, i] * 0.01

        @ti.kernel
        def mean_square():
            for i in range(n):
                loss[None] += x[steps, i].dot(x[steps, i]) / n

        def run():
            start()
            with ti.ad.Tape(loss):
                for s in range(steps):
                    integrate(s)
                mean_square()

        self.run = run

    def total(self):
        return abs(float(self.v.grad[0, 0][1])) * self.n


def sum_of(field):
    return np.abs(field.to_numpy().astype(np.float64)).sum()


def main():
    kernel, rounds, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ti.init(arch=ti.cpu, cpu_max_num_threads=threads, offline_cache=True, log_level=ti.ERROR)
    kinds = {"nbody": NBody}
    case = kinds.get(kernel) or globals()[kernel.capitalize()]
    source = open(sys.argv[4], "rb") if len(sys.argv) > 5 else None

    def take():
        return np.fromfile(source, np.float32, int(np.fromfile(source, np.int32, 1)[0]))

    work = case(take)
    samples = []
    for k in range(rounds + 1):
        start = time.perf_counter()
        work.run()
        ti.sync()
        samples.append(time.perf_counter() - start)
        if k == 0:
            total = work.total() if hasattr(work, "total") else float(sum(sum_of(f) for f in work.results()))
    with open(sys.argv[-1], "w") as out:
        print(statistics.median(samples[1:]), total, file=out)


main()
