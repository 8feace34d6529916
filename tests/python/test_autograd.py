"""Jacobians by adjoints and by differences, and whether they agree."""

import numpy as np
import pytest

import weft as wp
from weft.autograd import gradcheck, jacobian, jacobian_fd


@wp.kernel
def mixed(a: wp.array(dtype=float), b: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    out[i] = wp.vec2(a[i] * wp.length(b[i]), a[i] * a[i])


@wp.func
def wrong(x: float):
    return x * x


@wp.func_grad(wrong)
def adj_wrong(x: float, adj: float):
    wp.adjoint[x] -= 2.0 * x * adj


@wp.kernel
def wrong_kernel(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wrong(a[i])


def arguments():
    a = wp.array([2.0, -1.0], dtype=float, requires_grad=True)
    b = wp.array([[3.0, 1.0, 2.0], [-4.0, -1.0, 0.5]], dtype=wp.vec3, requires_grad=True)
    return a, b, wp.zeros(2, dtype=wp.vec2, requires_grad=True)


def test_jacobians_of_a_kernel():
    a, b, out = arguments()
    a.grad.fill_(5.0)
    exact = jacobian(mixed, dim=2, inputs=[a, b], outputs=[out])
    near = jacobian_fd(mixed, dim=2, inputs=[a, b], outputs=[out], eps=1e-3)
    assert sorted(exact) == sorted(near) == [(0, 0), (1, 0)]
    assert exact[0, 0].shape == (4, 2) and exact[1, 0].shape == (4, 6)
    lengths = np.linalg.norm(b.numpy(), axis=1)
    assert np.allclose(exact[0, 0].numpy(), [[lengths[0], 0], [4, 0], [0, lengths[1]], [0, -2]], rtol=1e-5)
    for key in exact:
        assert np.allclose(exact[key].numpy(), near[key].numpy(), atol=1e-2)
    assert a.grad.numpy().tolist() == [5.0, 5.0]  # the caller's gradients stay


def test_masks_and_limits():
    a, b, out = arguments()
    made = jacobian(mixed, dim=2, inputs=[a, b], outputs=[out], input_output_mask=[("a", "out")], max_outputs_per_var=1)
    assert sorted(made) == [(0, 0)]
    assert np.isfinite(made[0, 0].numpy()[0]).all() and np.isnan(made[0, 0].numpy()[1:]).all()
    with pytest.raises(ValueError, match="no input 'c'"):
        jacobian(mixed, dim=2, inputs=[a, b], outputs=[out], input_output_mask=[("c", "out")])


def test_functions_that_change_their_inputs():
    @wp.kernel
    def increase(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] + 1.0

    @wp.kernel
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i]

    def function(x):
        wp.launch(increase, dim=x.size, inputs=[x])
        y = wp.zeros_like(x)
        wp.launch(square, dim=x.size, inputs=[x, y])
        return y

    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    assert np.allclose(jacobian(function, inputs=[x])[0, 0].numpy(), np.diag([4.0, 6.0]))
    assert x.numpy().tolist() == [1.0, 2.0]
    assert gradcheck(function, inputs=[x], show_summary=False)
    assert not gradcheck(function, inputs=[x], show_summary=False, raise_exception=False, restore_inputs=False)


def test_wrong_gradients_are_found(capsys):
    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    out = wp.zeros_like(a)
    with pytest.raises(ValueError, match="differ"):
        gradcheck(wrong_kernel, dim=3, inputs=[a], outputs=[out], show_summary=False)
    assert not gradcheck(wrong_kernel, dim=3, inputs=[a], outputs=[out], raise_exception=False)
    assert "fail: input 0, output 0" in capsys.readouterr().out
