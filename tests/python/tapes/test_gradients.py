"""Gradients by tapes, against derivatives by hand and by differences."""

import numpy as np
import pytest

import weft as wp


def test_a_sum_of_squares(device):
    @wp.kernel
    def loss(x: wp.array(dtype=float), l: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(l, 0, x[i] * x[i])

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    l = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(loss, dim=3, inputs=[x, l])
    tape.backward(l)
    assert l.numpy()[0] == 14.0
    assert tape.gradients[x].numpy().tolist() == [2.0, 4.0, 6.0]
    assert x.grad.numpy().tolist() == [2.0, 4.0, 6.0]
    tape.zero()
    assert x.grad.numpy().tolist() == [0.0, 0.0, 0.0]


def test_a_dynamic_loop_that_changes_a_variable(device):
    @wp.kernel
    def power(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
        i = wp.tid()
        p = float(1.0)
        for _ in range(n):
            p = p * x[i]
        y[i] = p

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(power, dim=3, inputs=[x, 4, y])
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    assert np.allclose(x.grad.numpy(), [4.0, 32.0, 108.0])


def test_rows_of_a_jacobian(device):
    @wp.kernel
    def f(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.length(x[i]) * x[i][0]

    x = wp.array([[1.0, 2.0, 2.0], [0.0, 3.0, 4.0]], dtype=wp.vec3, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(f, dim=2, inputs=[x, y])
    rows = []
    for k in range(2):
        e = wp.array(np.eye(2, dtype=np.float32)[k], dtype=float)
        tape.backward(grads={y: e})
        rows.append(tape.gradients[x].numpy().copy())
        tape.zero()
    assert np.allclose(rows[0], [[3.0 + 1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0], [0.0] * 3], atol=1e-5)
    assert np.allclose(rows[1], [[0.0] * 3, [5.0, 0.0, 0.0]], atol=1e-5)


def test_functions_branches_and_matrices(device):
    @wp.func
    def energy(m: wp.mat22, v: wp.vec2) -> float:
        w = m * v
        if w[0] > 0.0:
            return wp.dot(w, w)
        return w[1] * 3.0

    @wp.kernel
    def k(m: wp.array(dtype=wp.mat22), v: wp.array(dtype=wp.vec2), e: wp.array(dtype=float)):
        i = wp.tid()
        e[0] += energy(m[i], v[i])

    mats = np.array([[[1.0, 2.0], [0.5, -1.0]], [[-1.0, 0.0], [2.0, 1.0]]], dtype=np.float32)
    vecs = np.array([[1.0, 0.5], [2.0, -1.0]], dtype=np.float32)

    def value(mats):
        total = 0.0
        for m, v in zip(mats.astype(np.float64), vecs.astype(np.float64)):
            w = m @ v
            total += w @ w if w[0] > 0 else 3 * w[1]
        return total

    m = wp.array(mats, dtype=wp.mat22, requires_grad=True)
    v = wp.array(vecs, dtype=wp.vec2)
    e = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(k, dim=2, inputs=[m, v, e])
    tape.backward(e)
    assert np.isclose(e.numpy()[0], value(mats), rtol=1e-5)
    want = np.zeros_like(mats)
    for index in np.ndindex(mats.shape):
        d = np.zeros_like(mats)
        d[index] = 1e-3
        want[index] = (value(mats + d) - value(mats - d)) / 2e-3
    assert np.allclose(m.grad.numpy(), want, rtol=1e-2, atol=1e-2)


def test_arrays_that_are_overwritten_keep_the_values_that_the_way_back_needs(device):
    @wp.kernel
    def square(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * x[i]

    @wp.kernel
    def add(x: wp.array(dtype=float), l: wp.array(dtype=float)):
        wp.atomic_add(l, 0, x[wp.tid()])

    x = wp.array([1.5, 2.0], dtype=float, requires_grad=True)
    l = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(square, dim=2, inputs=[x])
        wp.launch(square, dim=2, inputs=[x])
        wp.launch(add, dim=2, inputs=[x, l])
    tape.backward(l)
    assert np.allclose(x.grad.numpy(), [4 * 1.5**3, 32.0])


def test_a_loss_is_one_number():
    tape = wp.Tape()
    with pytest.raises(RuntimeError, match="scalar loss"):
        tape.backward(wp.zeros(2, dtype=float, requires_grad=True))


def test_arcs_of_numbers_beside_their_domain(device):
    @wp.kernel
    def arcs(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.acos(x[i])
        z[i] = wp.asin(x[i])

    x = wp.array([0.5, 1.0, 1.0000001, 2.0, -1.5, np.nan], dtype=float, requires_grad=True)
    y, z = wp.zeros(6, dtype=float, requires_grad=True), wp.zeros(6, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(arcs, 6, [x, y, z])
    tape.backward(grads={y: np.ones(6, np.float32)})
    inside = np.array([0.5, 1.0, 1.0, 1.0, -1.0, np.nan])
    np.testing.assert_allclose(y.numpy(), np.arccos(inside), atol=1e-6)
    np.testing.assert_allclose(z.numpy(), np.arcsin(inside), atol=1e-6)
    np.testing.assert_allclose(x.grad.numpy()[:5], [-1 / np.sqrt(0.75), 0, 0, 0, 0], atol=1e-6)
    assert wp.acos(2.0) == 0.0


def test_a_recorded_function_is_called_whatever_comes_to_its_arrays(device):
    @wp.kernel
    def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
        wp.atomic_add(loss, 0, y[wp.tid()])

    x, y = wp.zeros(3, dtype=float, requires_grad=True), wp.zeros(3, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        tape.record_func(lambda: wp.copy(x.grad, y.grad), [x])  # nothing leads from the loss to x
        wp.launch(total, 3, [y, loss])
    tape.backward(loss)
    assert x.grad.numpy().tolist() == [1.0] * 3


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def gradients_of_squares(x):
    """What a tape adds to the gradient of x by the sum of the squares."""
    y = wp.zeros(len(x), dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(square, len(x), [x], [y])
    tape.backward(grads={y: np.ones(len(x), np.float32)})
    return tape


def test_a_gradient_is_taken_away(device):
    for take in (lambda a: setattr(a, "requires_grad", False), lambda a: setattr(a, "grad", None)):
        x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
        x.grad.fill_(5.0)
        take(x)
        assert x.grad is None and not x.requires_grad and not x.has_grad
        assert not x[:1].requires_grad and not wp.clone(x).requires_grad and x.reshape((2, 1)).grad is None
        y = wp.zeros(2, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(square, 2, [x], [y])
        assert x not in tape.gradients
        with pytest.raises(KeyError, match="taken away"):
            tape.gradients[x]
        take(x)
        assert x.grad is None


def test_a_gradient_that_was_taken_away_is_made_anew(device):
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    x.grad.fill_(5.0)
    x.requires_grad = False
    x.requires_grad = True
    assert x.grad.numpy().tolist() == [0.0, 0.0]
    tape = gradients_of_squares(x)
    assert x.grad.numpy().tolist() == [2.0, 4.0] and tape.gradients[x] is x.grad
    gradients_of_squares(x)
    assert x.grad.numpy().tolist() == [4.0, 8.0]
    x.grad = None
    x.grad = wp.array([1.0, 1.0], dtype=float)
    gradients_of_squares(x)
    assert x.grad.numpy().tolist() == [3.0, 5.0]


def test_other_arrays_on_the_memory_keep_the_gradient_that_one_loses(device):
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    part = x[1:]
    x.requires_grad = False
    assert part.requires_grad
    gradients_of_squares(part)
    assert part.grad.numpy().tolist() == [4.0] and x.grad is None
    x.requires_grad = True
    assert x.grad.numpy().tolist() == [0.0, 0.0] and part.grad.numpy().tolist() == [4.0]


def test_adjoint_launches_take_nothing_from_a_gradient_that_was_taken_away(device):
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    whole = y[:]
    y.grad.fill_(1.0)
    y.grad = None
    wp.launch(square, 2, [x], [y], adjoint=True)
    assert x.grad.numpy().tolist() == [0.0, 0.0] and whole.grad.numpy().tolist() == [1.0, 1.0]


def test_a_gradient_that_does_not_fit_changes_nothing(device):
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    x.grad.fill_(5.0)
    with pytest.raises(ValueError, match="shape"):
        x.grad = wp.zeros(3, dtype=float)
    with pytest.raises(TypeError, match="type"):
        x.grad = wp.zeros(2, dtype=wp.float64)
    assert x.grad.numpy().tolist() == [5.0, 5.0]
    gradients_of_squares(x)
    assert x.grad.numpy().tolist() == [7.0, 9.0]
