"""Slices of arrays in kernels, and arrays that a kernel makes for itself."""

import numpy as np
import pytest

import weft as wp


def test_slices_of_any_step(device):
    @wp.kernel
    def k(a: wp.array2d(dtype=float), step: int, out: wp.array(dtype=float)):
        back = a[::-1, 1:]
        out[0] = back[0, 0]
        out[1] = back[-1, -1]
        out[2] = float(back.shape[0] * 10 + back.shape[1])
        part = a[1:3, ::2]
        out[3] = part[1, 1]
        row = a[1:3][::-1, 4]
        out[4] = row[0]
        every = a[0, ::step]
        out[5] = every[1]
        out[6] = float(every.shape[0])
        v = wp.vec3(*a[2][1:4])
        out[7] = v[0] + v[2]

    values = np.arange(20, dtype=np.float32).reshape(4, 5)
    back = values[::-1, 1:]
    for step in (2, -2, -1):
        out = wp.zeros(8, dtype=float)
        wp.launch(k, dim=1, inputs=[wp.array(values), step, out])
        every = values[0, ::step]
        expected = [back[0, 0], back[-1, -1], 44.0, values[1:3, ::2][1, 1], values[2, 4], every[1], every.size, 24.0]
        assert out.numpy().tolist() == [float(x) for x in expected]


def test_slices_are_written_through(device):
    @wp.kernel
    def k(a: wp.array3d(dtype=float)):
        part = a[:, 1, ::-1]
        part[0, 0] = 5.0
        part[-1, -1] += 7.0

    a = wp.zeros((2, 3, 4), dtype=float)
    wp.launch(k, dim=1, inputs=[a])
    expected = np.zeros((2, 3, 4))
    expected[0, 1, 3], expected[1, 1, 0] = 5.0, 7.0
    assert np.array_equal(a.numpy(), expected)


def test_unpacking_needs_known_bounds():
    @wp.kernel
    def k(a: wp.array(dtype=int), n: int):
        v = wp.vec3i(*a[:n])
        a[0] = v[0]

    with pytest.raises(wp.WarpCodegenValueError, match="compile-time constant"):
        wp.launch(k, dim=1, inputs=[wp.zeros(4, dtype=int), 3])


@wp.func
def squares(n: int):
    made = wp.zeros(shape=5, dtype=int)
    for i in range(n):
        made[i] = i * i
    return made


@wp.func
def total(values: wp.array(dtype=int)):
    s = int(0)
    for i in range(values.shape[0]):
        s += values[i]
    return s


def test_arrays_of_a_thread(device):
    @wp.kernel
    def k(out: wp.array(dtype=int)):
        i = wp.tid()
        table = wp.zeros(shape=(2, 3), dtype=wp.vec2i)
        for r in range(2):
            for c in range(i + 1):
                table[r, c] = wp.vec2i(r, c)
        table[1, 2][0] += 10
        out[i] = total(squares(i + 1)) * 100 + table[1, i][1] * 10 + table[-1][2][0]

    out = wp.zeros(3, dtype=int)
    wp.launch(k, dim=3, inputs=[out])
    assert out.numpy().tolist() == [10, 100 + 10 + 10, 500 + 20 + 11]


def test_arrays_of_a_thread_have_a_known_shape():
    @wp.kernel
    def k():
        i = wp.tid()
        made = wp.zeros(shape=(i,), dtype=int)
        made[0] = 1

    with pytest.raises(wp.WarpCodegenError, match="must be specified as a constant"):
        wp.launch(k, dim=1)


def test_views_of_scalars_as_vectors(device):
    numbers = wp.array(np.arange(16, dtype=np.float32).reshape(4, 4))
    vectors = numbers.view(wp.vec4)
    assert vectors.shape == (4,) and np.array_equal(vectors.numpy(), numbers.numpy())
    assert numbers.flatten().reshape((4, 2, 2)).view(wp.mat22).shape == (4,)
    assert vectors.view(float).shape == (4, 4)
    vectors[1] = wp.vec4(9.0, 9.0, 9.0, 9.0)
    assert numbers.numpy()[1].tolist() == [9.0] * 4
    with pytest.raises(TypeError, match="source dtype has size 4 bytes, but target dtype has size 2 bytes"):
        numbers.view(wp.uint16)
    with pytest.raises(ValueError, match="no whole elements"):
        numbers.view(wp.vec3)


def test_a_slice_in_a_loop_that_is_unrolled_once_and_runs_another_time(device):
    @wp.kernel
    def k(a: wp.array(dtype=int), n: int, out: wp.array(dtype=int)):
        total = 0
        for first in (1, n):
            for j in range(first, 4):
                part = a[j : j + 2]
                total += part[0] * part[-1]
        out[0] = total

    values = np.arange(1, 8, dtype=np.int32)
    out = wp.zeros(1, dtype=int)
    wp.launch(k, dim=1, inputs=[wp.array(values), 2, out])
    products = values[:-1] * values[1:]
    assert out.numpy()[0] == products[1:4].sum() + products[2:4].sum()
