"""Kernels that are written in C++ (ir/kernels.cpp) and in Python have the same IR, down to its hash."""

import os
import subprocess

import pytest

import weft as wp


@wp.struct
class Particle:
    position: wp.vec3
    velocity: wp.vec3
    mass: float
    kind: int


@wp.kernel
def scale(x: wp.array(dtype=float), a: float):
    i = wp.tid()
    x[i] = x[i] * a


@wp.kernel
def axpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    p = a * x[i]
    y[i] = p + y[i]


@wp.kernel
def integers(x: wp.array(dtype=int), n: int):
    i = wp.tid()
    v = x[i]
    x[i] = (v * 3 - n) % 7


@wp.kernel
def bits(x: wp.array(dtype=wp.uint32), mask: wp.uint32):
    i = wp.tid()
    v = x[i]
    kept = v & mask
    x[i] = kept ^ (v << wp.uint32(3))


@wp.kernel
def functions(x: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    s = wp.sin(v)
    c = wp.cos(v)
    x[i] = wp.sqrt(s * s + c * c)


@wp.kernel
def doubles(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    v = x[i]
    x[i] = wp.exp(v) + wp.float64(1.0)


@wp.kernel
def limits(x: wp.array(dtype=float), lo: float, hi: float):
    i = wp.tid()
    x[i] = wp.clamp(x[i], lo, hi)


@wp.kernel
def casts(x: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = float(x[i]) * 0.5


@wp.kernel
def branch(x: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    if v < 0.0:
        x[i] = -v


@wp.kernel
def either(x: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    if v < 0.0:
        x[i] = 1.0
    else:
        x[i] = 2.0


@wp.kernel
def summed(x: wp.array(dtype=float), y: wp.array(dtype=float), n: int):
    i = wp.tid()
    s = float(0.0)
    for k in range(n):
        s += x[k]
    y[i] = s


@wp.kernel
def stepped(x: wp.array(dtype=float), y: wp.array(dtype=float), n: int):
    i = wp.tid()
    s = float(0.0)
    for k in range(2, n, 3):
        s += x[k]
    y[i] = s


@wp.kernel
def halved(x: wp.array(dtype=int)):
    i = wp.tid()
    v = x[i]
    count = int(0)
    while v > 1:
        v = v / 2
        count = count + 1
    x[i] = count


@wp.kernel
def left(x: wp.array(dtype=float), y: wp.array(dtype=int), n: int):
    i = wp.tid()
    found = int(-1)
    for k in range(n):
        if x[k] > 0.0:
            found = k
            break
    y[i] = found


@wp.kernel
def returned(x: wp.array(dtype=float), n: int):
    i = wp.tid()
    if i >= n:
        return
    x[i] = 1.0


@wp.kernel
def both(x: wp.array(dtype=float), n: int):
    i = wp.tid()
    if i > 0 and i < n:
        x[i] = 0.0


@wp.kernel
def rows(a: wp.array2d(dtype=float)):
    i, j = wp.tid()
    a[i, j] = a[j, i] + 1.0


@wp.kernel
def extent(x: wp.array(dtype=float), y: wp.array(dtype=int)):
    i = wp.tid()
    y[i] = x.shape[0]


@wp.kernel
def moved(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), dt: float):
    i = wp.tid()
    at = x[i]
    step = v[i] * dt
    x[i] = at + step


@wp.kernel
def lengths(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.length(x[i])


@wp.kernel
def normals(x: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    x[i] = wp.normalize(x[i])


@wp.kernel
def crossed(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3), z: wp.array(dtype=float)):
    i = wp.tid()
    a = x[i]
    b = y[i]
    z[i] = wp.dot(wp.cross(a, b), a)


@wp.kernel
def products(m: wp.array(dtype=wp.mat33), x: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    a = m[i]
    v = x[i]
    x[i] = a * v


@wp.kernel
def inverted(m: wp.array(dtype=wp.mat33)):
    i = wp.tid()
    m[i] = wp.inverse(m[i])


@wp.kernel
def turned(q: wp.array(dtype=wp.quat), x: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    r = q[i]
    v = x[i]
    x[i] = wp.quat_rotate(r, v)


@wp.kernel
def placed(t: wp.array(dtype=wp.transform), x: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    a = t[i]
    p = x[i]
    x[i] = wp.transform_point(a, p)


@wp.kernel
def counted(x: wp.array(dtype=int), counts: wp.array(dtype=int)):
    i = wp.tid()
    v = x[i]
    wp.atomic_add(counts, 0, v)


@wp.kernel
def largest(x: wp.array(dtype=float), most: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    wp.atomic_max(most, 0, v)


@wp.kernel
def particles(p: wp.array(dtype=Particle), dt: float):
    i = wp.tid()
    at = p[i].position
    v = p[i].velocity
    p[i].position = at + v * dt


@wp.kernel
def drawn(x: wp.array(dtype=float), seed: int):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    x[i] = wp.randf(state)


@wp.func
def squared(v: float):
    return v * v


@wp.kernel
def called(x: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    once = squared(v)
    x[i] = once + squared(v + 1.0)


KERNELS = [value for value in list(globals().values()) if isinstance(value, wp.Kernel)]


@pytest.fixture(scope="module")
def hashes():
    program = os.environ.get("WEFT_IR_KERNELS")
    if not program:
        pytest.skip("WEFT_IR_KERNELS does not name the program of ir/kernels.cpp")
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")
    return dict(line.split() for line in lines if line)


def test_all_kernels_are_there(hashes):
    assert sorted(hashes) == sorted(kernel.key for kernel in KERNELS)
    assert len(KERNELS) >= 30


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_hash(kernel, hashes):
    assert kernel.native_kernel().ir_hash() == hashes[kernel.key]
