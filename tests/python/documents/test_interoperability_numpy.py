"""The programs of the page on interoperability that need NumPy or CuPy."""

import numpy as np
import pytest

import weft as wp


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def test_interoperability_numpy_arrays_as_arguments(host):
    n = 1000
    x = np.arange(n, dtype=np.float32)
    y = np.ones(n, dtype=np.float32)

    wp.launch(saxpy, dim=n, inputs=[x, y, 1.0], device=host)
    wp.synchronize()
    assert np.array_equal(y, np.arange(n, dtype=np.float32) + 1.0)


def test_interoperability_cupy_arrays_as_arguments():
    cp = pytest.importorskip("cupy")
    if not wp.is_cuda_available():
        pytest.skip("no GPU")
    n = 1000

    with cp.cuda.Device(0):
        x = cp.arange(n, dtype=cp.float32)
        y = cp.ones(n, dtype=cp.float32)

    wp.launch(saxpy, dim=n, inputs=[x, y, 1.0], device="cuda:0")
    wp.synchronize()
    assert np.array_equal(cp.asnumpy(y), np.arange(n, dtype=np.float32) + 1.0)


def test_numpy_array_interface(host, capsys):
    w = wp.array([1.0, 2.0, 3.0], dtype=float, device=host)
    a = np.array(w)
    print(a)
    assert capsys.readouterr().out == "[1. 2. 3.]\n"


def test_numpy_types(gpu):
    n = 8
    warp_type = wp.float32
    numpy_type = wp.dtype_to_numpy(warp_type)
    a = wp.zeros(n, dtype=warp_type)
    b = np.zeros(n, dtype=numpy_type)
    assert numpy_type is np.float32 and a.numpy().dtype == b.dtype


def test_numpy_conversions(gpu):
    numbers = np.random.rand(4).astype(np.float32)
    assert np.array_equal(wp.from_numpy(numbers).numpy(), numbers)
    assert np.array_equal(wp.array(numbers).numpy(), numbers)
