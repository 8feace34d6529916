# The kernels of suite cpu in warp-lang's language.
"""Usage: cpu_kernels_warp.py KERNEL ROUNDS THREADS INPUT FILE. INPUT: arrays, each a count and so many numbers of 4
bytes. Runs the kernel on warp-lang's CPU device, which has one thread whatever THREADS says. Writes to FILE "seconds
sum": the median time of a launch, and the sum of the absolute values of the first one's results. Exits with status 3
without warp-lang.
"""

import statistics
import sys
import time

from quiet_warp import np, wp

STEP = wp.constant(0.125)


@wp.kernel(enable_backward=False)
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] + a * x[i]


@wp.kernel(enable_backward=False)
def stencil(source: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    if i > 0 and i < source.shape[0] - 1 and j > 0 and j < source.shape[1] - 1:
        out[i, j] = 0.2 * (source[i, j] + source[i - 1, j] + source[i + 1, j] + source[i, j - 1] + source[i, j + 1])
    else:
        out[i, j] = source[i, j]


@wp.kernel(enable_backward=False)
def nbody(bodies: wp.array(dtype=wp.vec4), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    me = bodies[i]
    at = wp.vec3(me[0], me[1], me[2])
    sum = wp.vec3()
    for j in range(bodies.shape[0]):
        other = bodies[j]
        d = wp.vec3(other[0], other[1], other[2]) - at
        r = 1.0 / wp.sqrt(wp.dot(d, d) + 0.01)
        sum += d * (other[3] * r * r * r)
    out[i] = sum


@wp.kernel(enable_backward=False)
def mandelbrot(out: wp.array2d(dtype=int), limit: int):
    i, j = wp.tid()
    scale = 3.0 / float(out.shape[0])
    cx = float(j) * scale - 2.25
    cy = float(i) * scale - 1.5
    x = float(0.0)
    y = float(0.0)
    steps = int(0)
    while steps < limit and x * x + y * y <= 4.0:
        t = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = t
        steps += 1
    out[i, j] = steps


@wp.kernel(enable_backward=False)
def gather(x: wp.array(dtype=float), index: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[index[i]]


@wp.kernel(enable_backward=False)
def transform(m: wp.array(dtype=wp.mat44), v: wp.array(dtype=wp.vec4), out: wp.array(dtype=wp.vec4)):
    i = wp.tid()
    out[i] = m[i] * v[i]


@wp.kernel(enable_backward=False)
def svd3(a: wp.array(dtype=wp.mat33), u: wp.array(dtype=wp.mat33), sigma: wp.array(dtype=wp.vec3),
         v: wp.array(dtype=wp.mat33)):
    i = wp.tid()
    left, values, right = wp.svd3(a[i])
    u[i] = left
    sigma[i] = values
    v[i] = right


# The algorithm of frontend/library/noise.cpp.
@wp.func
def pcg(x: wp.uint32):
    state = x * wp.uint32(747796405) + wp.uint32(2891336453)
    word = ((state >> ((state >> wp.uint32(28)) + wp.uint32(4))) ^ state) * wp.uint32(277803737)
    return (word >> wp.uint32(22)) ^ word


@wp.func
def with_sign(hash: wp.uint32, bit: wp.uint32):
    return wp.where((hash & bit) != wp.uint32(0), -0.70710678, 0.70710678)


@wp.func
def corner(hash: wp.uint32, x: float, y: float, z: float):
    gx = with_sign(hash, wp.uint32(4096))
    gy = with_sign(hash, wp.uint32(8192))
    gz = with_sign(hash, wp.uint32(16384))
    if hash < wp.uint32(0x55555555):
        return gy * y + gz * z
    if hash < wp.uint32(0xAAAAAAAA):
        return gx * x + gz * z
    return gx * x + gy * y


@wp.func
def fade(t: float):
    return t * t * t * (t * (t * 6.0 - 15.0) + 10.0)


@wp.func
def line(hash: wp.uint32, z: wp.uint32, dx: float, dy: float, dz: float):
    lower = corner(pcg(hash ^ z), dx, dy, dz)
    upper = corner(pcg(hash ^ (z + wp.uint32(1))), dx, dy, dz - 1.0)
    return lower + fade(dz) * (upper - lower)


@wp.func
def plane(hash: wp.uint32, y: wp.uint32, z: wp.uint32, dx: float, dy: float, dz: float):
    lower = line(pcg(hash ^ y), z, dx, dy, dz)
    upper = line(pcg(hash ^ (y + wp.uint32(1))), z, dx, dy - 1.0, dz)
    return lower + fade(dy) * (upper - lower)


@wp.kernel(enable_backward=False)
def noise(out: wp.array2d(dtype=float), seed: wp.uint32, z: float):
    i, j = wp.tid()
    p = wp.vec3(float(j), float(i), z) * 0.07
    below = wp.vec3(wp.floor(p[0]), wp.floor(p[1]), wp.floor(p[2]))
    d = p - below
    cx = wp.uint32(wp.int32(below[0]))
    cy = wp.uint32(wp.int32(below[1]))
    cz = wp.uint32(wp.int32(below[2]))
    hash = pcg(seed)
    lower = plane(pcg(hash ^ cx), cy, cz, d[0], d[1], d[2])
    upper = plane(pcg(hash ^ (cx + wp.uint32(1))), cy, cz, d[0] - 1.0, d[1], d[2])
    out[i, j] = lower + fade(d[0]) * (upper - lower)


@wp.kernel(enable_backward=False)
def rotation(q: wp.array(dtype=wp.quat), v: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    out[i] = wp.quat_rotate(q[i], v[i])


@wp.kernel(enable_backward=False)
def arrays(pos: wp.array(dtype=wp.vec3), vel: wp.array(dtype=wp.vec3), inv_mass: wp.array(dtype=float),
           force: wp.vec3):
    i = wp.tid()
    v = vel[i] + force * inv_mass[i] * STEP
    vel[i] = v
    pos[i] = pos[i] + v * STEP


@wp.struct
class Particle:
    pos: wp.vec3
    vel: wp.vec3
    inv_mass: float


@wp.kernel(enable_backward=False)
def structs(particles: wp.array(dtype=Particle), force: wp.vec3):
    i = wp.tid()
    p = particles[i]
    p.vel = p.vel + force * p.inv_mass * STEP
    p.pos = p.pos + p.vel * STEP
    particles[i] = p


def cases(take):
    """By name: what to launch, over how many threads, on which inputs, and the arrays of the results."""
    def numbers(dtype=np.float32):
        return take().view(dtype)

    def vectors(dtype, width):
        a = numbers()
        shape = (-1, width) if isinstance(width, int) else (-1, *width)
        return wp.array(a.reshape(shape), dtype=dtype)

    def empty_like(a, dtype=None):
        return wp.zeros(a.shape, dtype=dtype or a.dtype)

    force = wp.vec3(0.5, -1.0, 0.25)

    def of_saxpy():
        x, y = wp.array(numbers(), dtype=float), wp.array(numbers(), dtype=float)
        return saxpy, x.shape, [0.25, x, y], [y]

    def of_stencil():
        a = numbers()
        n = round(len(a) ** 0.5)
        source = wp.array(a.reshape(n, n), dtype=float)
        out = empty_like(source)
        return stencil, source.shape, [source, out], [out]

    def of_nbody():
        bodies = vectors(wp.vec4, 4)
        out = empty_like(bodies, wp.vec3)
        return nbody, bodies.shape, [bodies, out], [out]

    def of_mandelbrot():
        out = wp.zeros((1024, 1024), dtype=int)
        return mandelbrot, out.shape, [out, 256], [out]

    def of_gather():
        x, index = wp.array(numbers(), dtype=float), wp.array(numbers(np.int32), dtype=int)
        out = empty_like(x)
        return gather, x.shape, [x, index, out], [out]

    def of_transform():
        m, v = vectors(wp.mat44, (4, 4)), vectors(wp.vec4, 4)
        out = empty_like(v)
        return transform, v.shape, [m, v, out], [out]

    def of_svd3():
        a = vectors(wp.mat33, (3, 3))
        u, sigma, v = empty_like(a), empty_like(a, wp.vec3), empty_like(a)
        return svd3, a.shape, [a, u, sigma, v], [u, sigma, v]

    def of_noise():
        out = wp.zeros((2048, 2048), dtype=float)
        return noise, out.shape, [out, wp.uint32(7), 3.3], [out]

    def of_rotation():
        q, v = vectors(wp.quat, 4), vectors(wp.vec3, 3)
        out = empty_like(v)
        return rotation, v.shape, [q, v, out], [out]

    def of_arrays():
        pos, vel, inv_mass = vectors(wp.vec3, 3), vectors(wp.vec3, 3), wp.array(numbers(), dtype=float)
        return arrays, pos.shape, [pos, vel, inv_mass, force], [pos, vel]

    def of_structs():
        a = numbers().view(Particle.numpy_dtype())
        particles = wp.array(a, dtype=Particle)
        return structs, particles.shape, [particles, force], [particles]

    return {name[3:]: make for name, make in locals().items() if name.startswith("of_")}


def sum_of(array):
    a = array.numpy()
    if a.dtype.names:
        return sum(np.abs(a[name].astype(np.float64)).sum() for name in ("pos", "vel"))
    return np.abs(a.astype(np.float64)).sum()


def main():
    kernel, rounds, source = sys.argv[1], int(sys.argv[2]), sys.argv[4]
    with wp.ScopedDevice("cpu"), open(source, "rb") as f:
        def take():
            return np.fromfile(f, np.float32, int(np.fromfile(f, np.int32, 1)[0]))

        launched, dim, inputs, results = cases(take)[kernel]()
        samples = []
        for k in range(rounds + 1):
            start = time.perf_counter()
            wp.launch(launched, dim=dim, inputs=inputs)
            samples.append(time.perf_counter() - start)
            if k == 0:
                total = float(sum(sum_of(a) for a in results))
    with open(sys.argv[5], "w") as out:
        print(statistics.median(samples[1:]), total, file=out)


main()
