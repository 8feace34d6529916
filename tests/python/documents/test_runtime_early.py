"""The programs of the early reference of the runtime."""

import numpy as np
import pytest

import weft as wp


def test_initialization(monkeypatch):
    monkeypatch.setattr(wp.config, "mode", "release")
    monkeypatch.setattr(wp.config, "verify_cuda", False)
    import weft

    wp.config.mode = "debug"
    wp.config.verify_cuda = True

    wp.init()
    assert weft.config.mode == "debug"


def test_kernels(gpu):
    @wp.kernel
    def simple_kernel(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3), c: wp.array(dtype=float)):
        tid = wp.tid()

        x = a[tid]
        y = b[tid]

        r = wp.dot(x, y)

        c[tid] = r

    numbers = np.random.default_rng(1).normal(size=(2, 1024, 3)).astype(np.float32)
    a, b = (wp.array(part, dtype=wp.vec3, device=gpu) for part in numbers)
    c = wp.zeros(1024, dtype=float, device=gpu)
    wp.launch(simple_kernel, dim=1024, inputs=[a, b, c], device=gpu)
    assert np.allclose(c.numpy(), np.sum(numbers[0] * numbers[1], axis=1), atol=1e-5)


def test_arrays_constructors(gpu, host):
    a = wp.empty(n=1024, dtype=wp.vec3, device=host)
    b = wp.zeros(n=1024, dtype=float, device=gpu)
    assert a.shape == b.shape == (1024,) and not b.numpy().any()


def test_arrays_from_numpy(gpu, host):
    r = np.random.rand(1024)

    a = wp.array(r, dtype=float, device=host)
    assert np.allclose(a.numpy(), r)

    a = wp.array(r, dtype=float, copy=False, device=host)
    assert np.allclose(a.numpy(), r)

    a = wp.array(r, dtype=float, device=gpu)
    assert np.allclose(a.numpy(), r)


def test_arrays_of_vectors(gpu):
    r = np.random.rand(1024, 3)

    a = wp.array(r, dtype=wp.vec3, device=gpu)
    assert a.shape == (1024,) and np.allclose(a.numpy(), r)
    with pytest.raises(RuntimeError, match="no elements of type"):
        wp.array(np.random.rand(1024, 5), dtype=wp.vec3, device=gpu)


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


@wp.kernel
def compute1(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = b[i] + a[i]


def test_graphs(gpu):
    a = wp.ones(4, dtype=float, device=gpu)
    b = wp.zeros(4, dtype=float, device=gpu)

    wp.capture_begin()

    for i in range(100):
        wp.launch(kernel=compute1, dim=4, inputs=[a, b], device=gpu)

    graph = wp.capture_end()
    assert not b.numpy().any()

    wp.capture_launch(graph)
    assert b.numpy().tolist() == [100.0] * 4
    wp.capture_launch(graph)
    assert b.numpy().tolist() == [200.0] * 4


def test_data_types(gpu):
    for name, count in (("vec3", 3), ("vec4", 4), ("quat", 4), ("mat22", 4), ("mat33", 9), ("mat44", 16)):
        assert wp.zeros(n=2, dtype=getattr(wp, name), device=gpu).numpy().size == 2 * count
    for name, count in (("spatial_transform", 7), ("spatial_vector", 6), ("spatial_matrix", 36)):
        assert wp.zeros(n=2, dtype=getattr(wp, name), device=gpu).numpy().size == 2 * count


def test_differentiability(gpu, capsys):
    @wp.kernel
    def compute1(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        b[wp.tid()] = 2.0 * a[wp.tid()]

    @wp.kernel
    def compute2(c: wp.array(dtype=float), d: wp.array(dtype=float)):
        d[wp.tid()] = c[wp.tid()] * c[wp.tid()]

    @wp.kernel
    def loss(d: wp.array(dtype=float), l: wp.array(dtype=float)):
        wp.atomic_add(l, 0, d[wp.tid()])

    a = wp.array([1.0, 2.0, 3.0], dtype=float, device=gpu, requires_grad=True)
    b = c = wp.zeros(3, dtype=float, device=gpu, requires_grad=True)
    d = wp.zeros(3, dtype=float, device=gpu, requires_grad=True)
    l = wp.zeros(1, dtype=float, device=gpu, requires_grad=True)
    l.grad.fill_(1.0)

    tape = wp.Tape()

    with tape:
        wp.launch(kernel=compute1, dim=3, inputs=[a, b], device=gpu)
        wp.launch(kernel=compute2, dim=3, inputs=[c, d], device=gpu)
        wp.launch(kernel=loss, dim=3, inputs=[d, l], device=gpu)

    tape.backward()

    print(tape.adjoints[a])
    assert capsys.readouterr().out == "[ 8. 16. 24.]\n"
