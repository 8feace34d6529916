"""wp.map and the operators of arrays: broadcasting, caching, gradients, refusals."""

import numpy as np
import pytest

import weft as wp
from weft.runtime.mapping import map_cache


def test_shapes_are_broadcast(device):
    a = np.arange(12, dtype=np.float32).reshape(1, 3, 1, 4)
    b = np.arange(20, dtype=np.float32).reshape(5, 4)
    made = wp.map(wp.add, wp.array(a), wp.array(b))
    assert made.shape == (1, 3, 5, 4) and np.array_equal(made.numpy(), a + b)
    assert np.array_equal((wp.array(b) - wp.array(a)).numpy(), b - a)
    with pytest.raises(ValueError, match=r"Shapes \(3,\) and \(5,\) are not broadcastable"):
        wp.map(wp.add, wp.zeros(3), wp.zeros(5))


def test_a_kernel_is_made_once_for_a_function():
    map_cache.clear()
    a = wp.array([1.0, 2.0], dtype=float)
    made = [wp.map(lambda x, y: x * y + 1.0, a, scale).numpy().tolist() for scale in (1.0, 2.0)]
    assert made == [[2.0, 3.0], [3.0, 5.0]] and len(map_cache) == 1
    offsets = (1.0, 2.0)
    made = [wp.map(lambda x: x + offset, a).numpy().tolist() for offset in offsets]  # noqa: B023
    assert made == [[2.0, 3.0], [3.0, 4.0]] and len(map_cache) == 3


def test_operators(device):
    a, b = np.array([1.0, 4.0, 9.0], dtype=np.float32), np.array([2.0, 3.0, 0.5], dtype=np.float32)
    x, y = wp.array(a), wp.array(b)
    for made, expected in (
        (x + y, a + b), (x - 1, a - 1), (2 * x, 2 * a), (x / y, a / b), (x // y, a // b), (x % y, np.fmod(a, b)),
        (x**y, a**b), (-x, -a), (+x, a), (1.0 / x, 1.0 / a),
    ):  # fmt: skip
        assert np.allclose(made.numpy(), expected)
    before = x.ptr
    x *= 3.0
    assert x.ptr == before and np.array_equal(x.numpy(), 3.0 * a)


def test_gradients_of_a_map():
    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        out = wp.map(lambda x: x * x * x, a)
    tape.backward(grads={out: wp.ones(3, dtype=float)})
    assert np.allclose(a.grad.numpy(), [3.0, 12.0, 27.0])


def test_the_kernel_of_a_map():
    kernel = wp.map(lambda x: x + 2.0, wp.zeros(3), return_kernel=True)
    given, out = wp.zeros(20), wp.zeros(20)
    wp.launch(kernel, dim=20, inputs=[given], outputs=[out])
    assert out.numpy().tolist() == [2.0] * 20


def test_refusals():
    a = wp.zeros(3)
    with pytest.raises(ValueError, match="at least one"):
        wp.map(wp.add, 1.0, 2.0)
    with pytest.raises(TypeError, match=r"Output array shape \(2,\) does not match expected shape \(3,\)"):
        wp.map(wp.sub, a, a, out=wp.zeros(2))
    with pytest.raises(TypeError, match="dtype int32 does not match expected dtype float32"):
        wp.map(wp.sub, a, a, out=wp.zeros(3, dtype=int))
    with pytest.raises(TypeError, match="must return a value"):
        wp.map(lambda x: None, a)
