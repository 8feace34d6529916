"""The programs of the page on interoperability that exchange arrays by DLPack."""

import numpy as np
import pytest

import weft as wp


@pytest.fixture(autouse=True)
def on_the_processor(host):
    """The other libraries' arrays are the processor's here."""
    with wp.ScopedDevice(host):
        yield


@pytest.fixture
def warp_array():
    return wp.array([1.0, 2.0, 3.0], dtype=float)


def test_dlpack_import():
    external_array = np.arange(6, dtype=np.float32)

    warp_array = wp.from_dlpack(external_array)
    external_array[2] = 9.0
    assert warp_array.numpy()[2] == 9.0


def test_dlpack_export_to_numpy(warp_array):
    shared = np.from_dlpack(warp_array)
    assert shared.ctypes.data == warp_array.ptr


def test_dlpack_export_to_jax(warp_array):
    jax = pytest.importorskip("jax")

    jax_array = jax.dlpack.from_dlpack(warp_array)
    assert jax_array.tolist() == [1.0, 2.0, 3.0]


def test_dlpack_export_to_torch(warp_array):
    torch = pytest.importorskip("torch")

    torch_tensor = torch.utils.dlpack.from_dlpack(warp_array)
    torch_tensor[1] = 7.0
    assert torch_tensor.data_ptr() == warp_array.ptr and warp_array.numpy().tolist() == [1.0, 7.0, 3.0]


def test_dlpack_export_to_paddle(warp_array):
    paddle = pytest.importorskip("paddle")

    paddle_tensor = paddle.utils.dlpack.from_dlpack(warp_array)
    assert paddle_tensor.data_ptr() == warp_array.ptr and paddle_tensor.numpy().tolist() == [1.0, 2.0, 3.0]


def test_dlpack_capsules(warp_array):
    again = wp.from_dlpack(wp.to_dlpack(warp_array))
    again.fill_(5.0)
    assert warp_array.numpy().tolist() == [5.0, 5.0, 5.0]


def test_dlpack_capsules_with_jax(warp_array):
    jax = pytest.importorskip("jax")
    jax_array = jax.numpy.arange(4, dtype=jax.numpy.float32)

    warp_array1 = wp.from_dlpack(jax_array)
    assert warp_array1.numpy().tolist() == [0.0, 1.0, 2.0, 3.0]

    jax_array = jax.dlpack.from_dlpack(Protocol(wp.to_dlpack(warp_array)))
    assert jax_array.tolist() == [1.0, 2.0, 3.0]


class Protocol:
    """A capsule as the object that JAX takes: it takes capsules themselves no longer."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def test_dlpack_capsules_with_torch(warp_array):
    torch = pytest.importorskip("torch")
    torch_tensor = torch.arange(4, dtype=torch.float32)

    warp_array2 = wp.from_dlpack(torch.utils.dlpack.to_dlpack(torch_tensor))
    assert warp_array2.ptr == torch_tensor.data_ptr()

    torch_tensor = torch.utils.dlpack.from_dlpack(wp.to_dlpack(warp_array))
    assert torch_tensor.data_ptr() == warp_array.ptr and torch_tensor.tolist() == [1.0, 2.0, 3.0]


def test_dlpack_capsules_with_paddle(warp_array):
    paddle = pytest.importorskip("paddle")
    paddle_tensor = paddle.arange(4, dtype=paddle.float32)

    warp_array3 = wp.from_dlpack(paddle.utils.dlpack.to_dlpack(paddle_tensor))
    assert warp_array3.ptr == paddle_tensor.data_ptr()

    paddle_tensor = paddle.utils.dlpack.from_dlpack(wp.to_dlpack(warp_array))
    assert paddle_tensor.data_ptr() == warp_array.ptr and paddle_tensor.numpy().tolist() == [1.0, 2.0, 3.0]
