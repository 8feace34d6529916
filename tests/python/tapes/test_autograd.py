"""Jacobians by adjoints and by differences, and whether they agree."""

import numpy as np
import pytest

import weft as wp
from weft.autograd import gradcheck, gradcheck_tape, jacobian, jacobian_fd, jacobian_plot


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
    assert exact[0, 0].shape == exact[1, 0].shape == (4, 2)
    assert exact[0, 0].dtype is wp.float32 and exact[1, 0].dtype is wp.vec3
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


def test_the_arrays_of_the_caller_stay_as_they_are():
    @wp.kernel
    def accumulate(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[0] += x[i] * x[i]
        x[i] = 0.0

    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    y = wp.array([10.0], dtype=float, requires_grad=True)
    x.grad.fill_(3.0)
    assert np.allclose(jacobian(accumulate, dim=2, inputs=[x], outputs=[y])[0, 0].numpy(), [[2.0, 4.0]])
    assert gradcheck(accumulate, dim=2, inputs=[x], outputs=[y], eps=1e-3, show_summary=False)
    assert x.numpy().tolist() == [1.0, 2.0] and y.numpy().tolist() == [10.0]
    assert x.grad.numpy().tolist() == [3.0, 3.0] and y.grad.numpy().tolist() == [0.0]


def test_the_launches_on_a_tape_are_checked(capsys):
    a, b, out = arguments()
    wrongly = wp.zeros_like(a)
    tape = wp.Tape()
    with tape:
        wp.launch(mixed, 2, [a, b], [out])
        tape.record_func(lambda: None, [out])
        wp.launch(wrong_kernel, 2, [a], [wrongly])
    before = out.numpy().copy()
    with pytest.raises(ValueError, match="wrong_kernel, input 0, output 0: .* differ"):
        gradcheck_tape(tape, show_summary=False, eps=1e-3)
    assert not gradcheck_tape(tape, raise_exception=False, eps=1e-3)
    assert capsys.readouterr().out.count("pass: ") == 2
    assert gradcheck_tape(tape, blacklist_kernels=["wrong_kernel"], show_summary=False, eps=1e-3)
    assert gradcheck_tape(tape, whitelist_kernels=["mixed"], show_summary=False, eps=1e-3)
    assert not gradcheck_tape(tape, raise_exception=False, skip_to_launch_index=2, show_summary=False)
    assert gradcheck_tape(tape, reverse_launches=True, skip_to_launch_index=1, show_summary=False, eps=1e-3)
    gradcheck_tape(tape, input_output_masks={"mixed": [("a", "out")]}, whitelist_kernels=["mixed"], eps=1e-3)
    assert capsys.readouterr().out.count("pass: ") == 1
    assert np.array_equal(out.numpy(), before)
    tape.backward(grads={out: wp.ones_like(out)})  # the tape goes back as before
    assert np.allclose(a.grad.numpy(), np.linalg.norm(b.numpy(), axis=1) + 2.0 * a.numpy(), rtol=1e-5)


def test_kernels_that_say_they_have_no_adjoint_are_not_checked_on_a_tape():
    @wp.kernel(enable_backward=False)
    def unchecked(a: wp.array(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = wrong(a[i])

    a = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(unchecked, 2, [a], [wp.zeros_like(a)])
    assert gradcheck_tape(tape, show_summary=False)


def test_a_launch_without_outputs_is_not_checked_silently():
    a = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(wrong_kernel, 2, [a, wp.zeros_like(a)])
    with pytest.raises(ValueError, match="list of output arguments"):
        gradcheck_tape(tape)


def test_a_plot_needs_names_and_types():
    from weft.autograd import FunctionMetadata

    one = wp.array([[1.0]], dtype=float)
    with pytest.raises(ValueError, match="inputs must be provided"):
        jacobian_plot({(0, 0): one}, mixed)
    with pytest.raises(ValueError, match="must be a Warp kernel"):
        jacobian_plot({(0, 0): one}, "mixed")
    assert jacobian_plot({}, FunctionMetadata()) is None
    known = dict(input_labels=["a"], input_dtypes=[wp.float32], output_labels=["b"])
    for change, message in (
        ({"input_labels": []}, "input index 0: there are names of 0 inputs"),
        ({"input_labels": [None]}, "input index 0: missing label"),
        ({"input_dtypes": [None]}, "input index 0: missing array dtype"),
        ({"output_labels": []}, "output index 0: there are names of 0 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            jacobian_plot({(0, 0): one}, FunctionMetadata(**{**known, **change}))


def test_plots_show_jacobians_and_their_errors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg", force=True)
    import matplotlib.pyplot as plt

    a, b, out = arguments()
    made = jacobian(mixed, dim=2, inputs=[a, b], outputs=[out])
    figure = jacobian_plot(made, mixed, inputs=[a, b], show_plot=False)
    assert figure.get_suptitle() == "mixed kernel Jacobian" and len(figure.axes) == 3
    left, right = figure.axes[:2]
    assert (left.get_xlabel(), left.get_ylabel(), right.get_xlabel(), right.get_ylabel()) == ("a", "out", "b", "")
    assert left.get_gridspec().get_width_ratios() == [2, 6] and left.get_gridspec().get_height_ratios() == [4]
    assert np.allclose(left.images[0].get_array(), made[0, 0].numpy())
    assert np.allclose(right.images[0].get_array(), made[1, 0].numpy().reshape(4, 6))
    assert left.images[0].get_clim() == right.images[0].get_clim()
    logs = jacobian_plot(
        made,
        mixed,
        inputs=[a, b],
        show_plot=False,
        log_scale=True,
        scale_colors_per_submatrix=True,
        show_colorbar=False,
        title="logarithms",
        colormap="viridis",
    )
    assert logs.get_suptitle() == "logarithms" and len(logs.axes) == 2
    assert np.allclose(logs.axes[0].images[0].get_array(), np.log10(np.abs(made[0, 0].numpy()) + 1e-8), atol=1e-5)
    plt.close("all")
    partly = {(1, 0): made[1, 0], (0, 1): made[0, 0]}
    figure = jacobian_plot(partly, mixed_metadata(), show_plot=False, show_colorbar=False)
    assert [axis.axison for axis in figure.axes] == [False, True, True, False]
    plt.close("all")
    gradcheck(mixed, 2, [a, b], [out], eps=1e-3, plot_relative_error=True, plot_absolute_error=True, show_summary=False)
    shown = [plt.figure(number).get_suptitle() for number in plt.get_fignums()]
    assert shown == ["mixed kernel Jacobian relative error", "mixed kernel Jacobian absolute error"]
    plt.close("all")


def mixed_metadata():
    """Names for two inputs and two outputs."""
    from weft.autograd import FunctionMetadata

    return FunctionMetadata(
        key="mixed",
        input_labels=["a", "b"],
        input_dtypes=[wp.float32, wp.vec3],
        output_labels=["out", "other"],
        output_dtypes=[wp.vec2, wp.vec2],
    )
