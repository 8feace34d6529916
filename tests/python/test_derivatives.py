"""Derivatives that a program gives, optimisers, and graphs."""

import numpy as np
import pytest

import weft as wp
import weft.optim


@wp.func
def safe_sqrt(x: float):
    return wp.sqrt(x)


@wp.func_grad(safe_sqrt)
def adj_safe_sqrt(x: float, adj_ret: float):
    if x > 0.0:
        wp.adjoint[x] += 1.0 / (2.0 * wp.sqrt(x)) * adj_ret


@wp.kernel
def roots(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = safe_sqrt(x[i])


def test_a_gradient_function(device):
    x = wp.array([4.0, 0.0, 16.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(roots, dim=3, inputs=[x, y])
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    assert np.allclose(x.grad.numpy(), [0.25, 0.0, 0.125])


def test_a_gradient_function_has_the_parameters_of_its_function():
    with pytest.raises(wp.WarpCodegenError, match="no overload of"):

        @wp.func_grad(safe_sqrt)
        def wrong(x: int, adj_ret: float):
            wp.adjoint[x] += adj_ret


@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_optimisers_find_the_minimum(device, name):
    @wp.kernel
    def loss(x: wp.array(dtype=wp.vec2), l: wp.array(dtype=float)):
        d = x[wp.tid()] - wp.vec2(1.0, -2.0)
        wp.atomic_add(l, 0, wp.dot(d, d))

    x = wp.zeros(3, dtype=wp.vec2, requires_grad=True)
    l = wp.zeros(1, dtype=float, requires_grad=True)
    optimiser = getattr(weft.optim, name)([x], lr=0.1)
    for _ in range(200):
        l.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(loss, dim=3, inputs=[x, l])
        tape.backward(l)
        optimiser.step([x.grad])
        tape.zero()
    assert np.allclose(x.numpy(), [[1.0, -2.0]] * 3, atol=2e-2)


def test_graphs_run_what_was_captured(device):
    @wp.kernel
    def twice(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * 2.0

    x = wp.ones(4, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(twice, dim=4, inputs=[x])
        wp.launch(twice, dim=4, inputs=[x])
    assert x.numpy().tolist() == [1.0] * 4
    for _ in range(3):
        wp.capture_launch(capture.graph)
    assert x.numpy().tolist() == [64.0] * 4
    with pytest.raises(RuntimeError, match="not active"):
        wp.capture_end()


def test_recorded_launches_take_other_arguments(device):
    @wp.kernel
    def put(x: wp.array(dtype=float), s: float):
        x[wp.tid()] = s

    x = wp.zeros(3, dtype=float)
    command = wp.launch(put, dim=3, inputs=[x, 1.0], record_cmd=True)
    assert x.numpy().tolist() == [0.0] * 3
    command.launch()
    command.set_param_by_name("s", 5.0)
    command.set_dim(2)
    command.launch()
    assert x.numpy().tolist() == [5.0, 5.0, 1.0]


def test_recorded_adjoints(device):
    @wp.kernel
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i]

    x, y = wp.array([1.0, 2.0, 3.0], dtype=float), wp.zeros(3, dtype=float)
    by_x, by_y = wp.zeros(3, dtype=float), wp.ones(3, dtype=float)
    given = dict(adjoint=True, adj_inputs=[by_x], adj_outputs=[by_y], record_cmd=True)
    command = wp.launch(square, dim=3, inputs=[x], outputs=[y], **given)
    command.launch()
    assert by_x.numpy().tolist() == [2.0, 4.0, 6.0] and not y.numpy().any()
    other = wp.zeros(3, dtype=float)
    command.set_param_by_name("x", other, adjoint=True)
    command.launch()
    assert other.numpy().tolist() == [2.0, 4.0, 6.0]
    forward = wp.launch(square, dim=3, inputs=[x, y], record_cmd=True)
    with pytest.raises(RuntimeError, match="no adjoint"):
        forward.set_param_by_name("x", other, adjoint=True)


def test_lines_that_kernels_print(capsys, device):
    @wp.kernel
    def k(x: wp.array(dtype=float)):
        print("x is", x[0], wp.vec2(1.0, 2.0))
        wp.printf("%d of %d\n", 3, 4)
        wp.expect_eq(x[0], 2.0)

    wp.launch(k, dim=1, inputs=[wp.full(1, 2.5, dtype=float)])
    wp.synchronize()
    out = capsys.readouterr().out
    assert "x is 2.5" in out and "3 of 4\n" in out and "Error, expected: 2.5 == 2" in out


def test_a_return_under_a_condition_known_while_tracing(device):
    @wp.kernel
    def k(given: wp.array(dtype=float), out: wp.array(dtype=int)):
        i = wp.tid()
        if not given:
            out[i] = -1
            return
        out[i] = 1

    out = wp.zeros(2, dtype=int)
    wp.launch(k, dim=2, inputs=[None, out])
    assert out.numpy().tolist() == [-1, -1]
    wp.launch(k, dim=2, inputs=[wp.zeros(2, dtype=float), out])
    assert out.numpy().tolist() == [1, 1]


def test_a_function_that_is_defined_again_leaves_the_one_before(device):
    def make(first):
        if first:

            @wp.func
            def value():
                return 17

        else:

            @wp.func
            def value():
                return 42

        @wp.kernel
        def k(out: wp.array(dtype=int)):
            out[0] = value()

        return k

    kernels = [make(True), make(False)]
    out = wp.zeros(1, dtype=int)
    got = []
    for k in kernels:
        wp.launch(k, dim=1, inputs=[out])
        got.append(int(out.numpy()[0]))
    assert got == [17, 42]


@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_optimisers_keep_the_means_that_fit(device, name):
    x, y = wp.zeros(4, dtype=wp.float16, requires_grad=True), wp.zeros(4, dtype=wp.vec3, requires_grad=True)
    optimiser = getattr(weft.optim, name)([x, y], lr=0.1)
    means = optimiser.b if name == "SGD" else optimiser.m
    for mean in means:
        mean.fill_(1.0)
    optimiser.set_params([x, wp.zeros(5, dtype=wp.vec3, requires_grad=True)])
    first, second = optimiser.b if name == "SGD" else optimiser.m
    assert first is means[0] and first.numpy().tolist() == [1.0] * 4
    assert second.numpy().tolist() == [0.0] * 15


def test_copysign_is_derived_as_the_chosen_sign(device):
    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = wp.copysign(x[i], y[i])

    xs, ys = np.array([2.0, -2.0, 0.0, -0.0, -0.0]), np.array([-1.0, -1.0, 3.0, -0.0, 1.0])
    x = wp.array(xs, dtype=float, requires_grad=True)
    out = wp.zeros(5, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(k, dim=5, inputs=[x, wp.array(ys, dtype=float), out])
    tape.backward(grads={out: wp.ones(5, dtype=float)})
    assert np.array_equal(np.signbit(out.numpy()), np.signbit(ys)) and np.array_equal(np.abs(out.numpy()), np.abs(xs))
    assert np.array_equal(x.grad.numpy(), np.where(np.signbit(xs) == np.signbit(ys), 1.0, -1.0))


def test_printf_keeps_to_its_format(capsys, device):
    @wp.kernel
    def k(x: float, n: int):
        wp.printf("%f|%.2f|%e|%5d|%-5d|%x|%d|%s|100%%\n", x, x, x, n, n, n, n, n)

    @wp.kernel
    def booleans(n: int):
        print(n > 1, n < 1)
        wp.printf("%d %s\n", n > 1, n < 1)

    wp.launch(k, dim=1, inputs=[457.5, 42])
    wp.launch(booleans, dim=1, inputs=[42])
    wp.synchronize()
    want = "%f|%.2f|%e|%5d|%-5d|%x|%d|%s|100%%\n" % (457.5, 457.5, 457.5, 42, 42, 42, 42, 42)
    out = capsys.readouterr().out
    assert want in out and "True False\n1 False\n" in out


def test_arguments_of_recorded_launches_are_checked(device):
    @wp.kernel
    def k(v: wp.vec3, out: wp.array(dtype=float)):
        out[0] = v[0] + v[1] + v[2]

    out = wp.zeros(1, dtype=float)
    command = wp.launch(k, dim=1, inputs=[wp.vec3(), out], record_cmd=True)
    for change in (lambda: command.set_param_at_index(0, 3), lambda: command.set_param_by_name("v", 3.0)):
        with pytest.raises(RuntimeError, match="argument 'v' expects vec3f but got a single value"):
            change()
    command.set_param_by_name("v", (1.0, 2.0, 3.0))
    command.launch()
    assert out.numpy()[0] == 6.0
    with pytest.raises(ValueError, match="Failed to convert argument for param v to vec3f"):
        wp.launch(k, dim=1, inputs=[None, out])


def test_recorded_launches_take_structs_and_arrays_as_ctypes(device):
    @wp.struct
    class Pair:
        a: float
        b: float

    @wp.kernel
    def k(pair: Pair, out: wp.array(dtype=float)):
        out[0] = pair.a * pair.b

    out = wp.zeros(1, dtype=float)
    command = wp.launch(k, dim=1, inputs=[Pair(), None], record_cmd=True)
    command.set_param_at_index_from_ctype(0, Pair(3.0, 4.0).__ctype__())
    command.set_param_by_name_from_ctype("out", out.__ctype__())
    command.launch()
    assert out.numpy()[0] == 12.0
