"""Paddle's tensors: memory and gradients that both libraries share."""

import numpy as np
import pytest

import weft as wp

paddle = pytest.importorskip("paddle")

pytestmark = pytest.mark.usefixtures("cpu")


@wp.kernel
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


NAMES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize("name", NAMES)
def test_types_and_memory_go_both_ways(name):
    theirs, ours = getattr(paddle, name), getattr(wp, name)
    assert wp.dtype_from_paddle(theirs) is ours and wp.dtype_to_paddle(ours) == theirs
    tensor = paddle.to_tensor(np.array([1, 0, 1]), dtype=theirs)
    array = wp.from_paddle(tensor)
    assert array.dtype is ours and array.ptr == tensor.data_ptr()
    back = wp.to_paddle(array)
    assert back.dtype == theirs and back.data_ptr() == tensor.data_ptr()
    assert np.array_equal(back.numpy(), tensor.numpy())


def test_vectors_and_matrices_are_last_dimensions():
    tensor = paddle.arange(12, dtype="float32").reshape([2, 2, 3])
    array = wp.from_paddle(tensor, dtype=wp.vec3)
    assert array.shape == (2, 2) and np.array_equal(array.numpy(), tensor.numpy())
    assert wp.to_paddle(wp.zeros((2, 5), dtype=wp.mat22)).shape == [2, 5, 2, 2]
    assert wp.to_paddle(wp.zeros((1, 0), dtype=wp.vec2)).shape == [1, 0, 2]
    assert wp.to_paddle(wp.array([1, 2], dtype=wp.uint32)).numpy().tolist() == [1, 2]


def test_tensors_and_descriptors_are_arguments():
    x = paddle.ones([3])
    wp.launch(double, dim=3, inputs=[x])
    given = wp.from_paddle(x, return_ctype=True)
    assert (given.data, given.grad) == (x.data_ptr(), 0)
    wp.launch(double, dim=3, inputs=[given])
    wp.launch(double, dim=3, inputs=[wp.to_paddle(wp.from_paddle(x))])
    assert x.numpy().tolist() == [8.0, 8.0, 8.0]


def test_a_gradient_is_made_when_a_tape_goes_back():
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    y = wp.zeros(3, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(square, dim=3, inputs=[wp.from_paddle(x)], outputs=[y])
    tape.zero()
    assert x.grad is None
    for _ in range(2):
        tape.backward(grads={y: wp.ones(3)})
    assert x.grad.numpy().tolist() == [4.0, 8.0, 12.0]
    x.clear_gradient(False)
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad.numpy().tolist() == [2.0, 4.0, 6.0]


def test_tensors_of_arrays_have_their_gradients():
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    tensor = wp.to_paddle(x)
    (tensor * tensor).sum().backward()
    assert x.grad.numpy().tolist() == [2.0, 4.0]
    assert wp.to_paddle(x, requires_grad=False).stop_gradient


class Square(paddle.autograd.PyLayer):
    """The square by an adjoint launch."""

    @staticmethod
    def forward(ctx, x):
        ctx.x, ctx.y = wp.from_paddle(x), wp.zeros(len(x), requires_grad=True)
        wp.launch(square, dim=len(x), inputs=[ctx.x], outputs=[ctx.y])
        return wp.to_paddle(ctx.y, requires_grad=False)

    @staticmethod
    def backward(ctx, gradient):
        adj_x = wp.zeros_like(ctx.x, requires_grad=False)
        wp.launch(
            square,
            dim=len(ctx.x),
            inputs=[ctx.x],
            outputs=[ctx.y],
            adj_inputs=[adj_x],
            adj_outputs=[wp.from_paddle(gradient)],
            adjoint=True,
        )
        return wp.to_paddle(adj_x)


def test_a_layer_gives_the_right_gradients_in_the_middle_of_paddles():
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    (3.0 * Square.apply(2.0 * x)).sum().backward()
    assert x.grad.numpy().tolist() == [24.0, 48.0, 72.0]


def test_refusals_say_what_is_wrong():
    with pytest.raises(RuntimeError, match="Cannot convert Paddle type"):
        wp.from_paddle(paddle.ones([3]), dtype=wp.int32)
    with pytest.raises(RuntimeError, match="last dimensions"):
        wp.from_paddle(paddle.ones([3, 2]), dtype=wp.vec3)
    with pytest.raises(RuntimeError, match="'double', argument 'x'"):
        wp.launch(double, dim=3, inputs=[paddle.ones([3], dtype="float64")])
    with pytest.raises(TypeError, match="complex64"):
        wp.from_paddle(paddle.ones([3], dtype="complex64"))
    with wp.Tape():
        with pytest.raises(RuntimeError, match="tape"):
            wp.to_paddle(wp.ones(2, requires_grad=True))


def test_devices_go_both_ways():
    assert wp.device_to_paddle("cpu") == "cpu"
    assert wp.device_from_paddle(paddle.CPUPlace()) == "cpu" and wp.device_from_paddle("cpu") == "cpu"
    with pytest.raises(RuntimeError, match="xpu"):
        wp.device_from_paddle("xpu:0")
    with pytest.raises(RuntimeError, match="stream"):
        wp.stream_from_paddle("gpu:0")
