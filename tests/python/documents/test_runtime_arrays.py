"""The programs of the runtime's reference on kernels, arrays and graphs."""

import numpy as np
import pytest

import weft as wp


def test_kernels_launch(gpu):
    @wp.kernel
    def simple_kernel(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
        tid = wp.tid()
        c[tid] = a[tid] + b[tid]

    a, b = wp.ones(1024, dtype=float, device=gpu), wp.full(1024, 2.0, dtype=float, device=gpu)
    c = wp.zeros(1024, dtype=float, device=gpu)
    wp.launch(simple_kernel, dim=1024, inputs=[a, b, c], device=gpu)
    assert np.all(c.numpy() == 3.0)


def test_kernels_grids(gpu):
    @wp.kernel
    def complex_kernel(out: wp.array3d(dtype=int)):
        i, j, k = wp.tid()
        out[i, j, k] = i * 10000 + j * 10 + k

    out = wp.zeros((128, 128, 3), dtype=int, device=gpu)
    wp.launch(complex_kernel, dim=(128, 128, 3), inputs=[out], device=gpu)
    i, j, k = np.indices((128, 128, 3))
    assert np.array_equal(out.numpy(), i * 10000 + j * 10 + k)


def test_arrays_constructors(gpu, host):
    a = wp.empty(shape=1024, dtype=wp.vec3, device=host)
    b = wp.zeros(shape=1024, dtype=float, device=gpu)
    assert a.shape == b.shape == (1024,) and not b.numpy().any()


def test_arrays_from_numpy(gpu, host):
    r = np.random.rand(1024)

    a = wp.array(r, dtype=float, device=host)
    assert np.allclose(a.numpy(), r)

    a = wp.array(r, dtype=float, copy=False, device=host)
    assert np.allclose(a.numpy(), r)

    a = wp.array(r, dtype=float, device=gpu)
    assert np.allclose(a.numpy(), r)


def test_arrays_that_share_memory_with_numpy(host):
    r = np.random.rand(1024).astype(np.float32)
    a = wp.array(r, dtype=float, copy=False, device=host)
    r[3] = 7.0
    assert a.numpy()[3] == 7.0


def test_arrays_of_vectors(gpu):
    r = np.random.rand(1024, 3)

    a = wp.array(r, dtype=wp.vec3, device=gpu)
    assert a.shape == (1024,) and np.allclose(a.numpy(), r)


def test_arrays_to(gpu, host):
    a = np.random.rand(16)
    host_array = wp.array(a, dtype=float, device=host)

    device_array = host_array.to(gpu)
    assert device_array.device == gpu and np.allclose(device_array.numpy(), a)


def test_arrays_copy(host):
    a = np.random.rand(16)
    host_array = wp.array(a, dtype=float, device=host)

    src_array = wp.array(a, dtype=float, device=host)
    dest_array = wp.empty_like(host_array)

    wp.copy(dest_array, src_array)
    assert np.allclose(dest_array.numpy(), a)


def test_multi_dimensional_arrays_constructor(gpu):
    a = wp.zeros(shape=(1024, 16), dtype=float, device=gpu)
    assert a.shape == (1024, 16) and a.ndim == 2


def test_multi_dimensional_arrays_signature(gpu):
    @wp.kernel
    def test(input: wp.array(dtype=float, ndim=2), output: wp.array2d(dtype=float)):
        i, j = wp.tid()
        output[i, j] = 2.0 * input[i, j]

    numbers = np.random.rand(5, 7).astype(np.float32)
    input = wp.array(numbers, dtype=float, device=gpu)
    output = wp.zeros((5, 7), dtype=float, device=gpu)
    wp.launch(test, dim=(5, 7), inputs=[input, output], device=gpu)
    assert np.array_equal(output.numpy(), 2.0 * numbers)
    with pytest.raises(RuntimeError, match="dimension"):
        wp.launch(test, dim=(5, 7), inputs=[input, output.flatten()], device=gpu)


def test_multi_dimensional_arrays_elements_and_rows(gpu):
    @wp.func
    def total(row: wp.array(dtype=float)):
        sum = float(0.0)
        for k in range(row.shape[0]):
            sum += row[k]
        return sum

    @wp.kernel
    def test(input: wp.array2d(dtype=float), deep: wp.array3d(dtype=float), out: wp.array2d(dtype=float)):
        i, j = wp.tid()

        value = input[i, j]

        row = input[i]

        s = deep[i][j][1]

        out[i, j] = value + total(row) * 10.0 + s * 1000.0

    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    deep = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    out = wp.zeros((2, 3), dtype=float, device=gpu)
    inputs = [wp.array(numbers, dtype=float, device=gpu), wp.array(deep, dtype=float, device=gpu), out]
    wp.launch(test, dim=(2, 3), inputs=inputs, device=gpu)
    want = numbers + numbers.sum(axis=1, keepdims=True) * 10.0 + deep[:, :, 1] * 1000.0
    assert np.array_equal(out.numpy(), want)


@pytest.mark.xfail(raises=AttributeError, strict=True, reason="products of arrays are not there yet")
def test_matrix_multiplication(gpu):
    @wp.kernel
    def loss_kernel(d: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
        i, j = wp.tid()
        wp.atomic_add(loss, 0, d[i, j])

    device, m, n, k = gpu, 4, 3, 5
    numbers = np.random.default_rng(4)
    A, B, C = (
        wp.array(numbers.normal(size=s), dtype=float, device=device, requires_grad=True)
        for s in ((m, k), (k, n), (m, n))
    )
    D = wp.zeros((m, n), dtype=float, device=device, requires_grad=True)
    loss = wp.zeros(1, dtype=float, device=device, requires_grad=True)

    tape = wp.Tape()
    with tape:
        wp.matmul(A, B, C, D, device=device)
        wp.launch(loss_kernel, dim=(m, n), inputs=[D, loss], device=device)

    tape.backward(loss=loss)
    A_grad = A.grad.numpy()
    assert np.allclose(A_grad, np.ones((m, n)) @ B.numpy().T, atol=1e-5)


def test_graphs(gpu):
    @wp.kernel
    def compute1(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        i = wp.tid()
        b[i] = b[i] + a[i]

    a = wp.ones(4, dtype=float, device=gpu)
    b = wp.zeros(4, dtype=float, device=gpu)

    wp.capture_begin()

    for i in range(100):
        wp.launch(kernel=compute1, dim=4, inputs=[a, b], device=gpu)

    graph = wp.capture_end()

    wp.capture_launch(graph)
    assert b.numpy().tolist() == [100.0] * 4
