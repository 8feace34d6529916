"""The programs of the page on interoperability that need Paddle."""

import numpy as np
import pytest

import weft as wp

paddle = pytest.importorskip("paddle")


@pytest.fixture
def device(host):
    """The processor, made the current device: that is where Paddle's tensors are."""
    with wp.ScopedDevice(host):
        yield host


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel()
def loss(xs: wp.array(dtype=float, ndim=2), l: wp.array(dtype=float)):
    tid = wp.tid()
    wp.atomic_add(l, 0, xs[tid, 0] ** 2.0 + xs[tid, 1] ** 2.0)


def test_paddle_conversions(device):
    w = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu")

    # convert to Paddle tensor
    t = wp.to_paddle(w)

    # convert from Paddle tensor
    w = wp.from_paddle(t)
    assert w.ptr == t.data_ptr() and w.numpy().tolist() == [1.0, 2.0, 3.0]


def test_paddle_optimization_using_from_paddle(device):
    # init warp context at beginning
    wp.init()

    # indicate requires_grad so that Warp can accumulate gradients in the grad buffers
    xs = paddle.randn([100, 2])
    xs.stop_gradient = False
    l = paddle.zeros([1])
    l.stop_gradient = False
    opt = paddle.optimizer.Adam(learning_rate=0.1, parameters=[xs])

    wp_xs = wp.from_paddle(xs)
    wp_l = wp.from_paddle(l)

    tape = wp.Tape()
    with tape:
        # record the loss function kernel launch on the tape
        wp.launch(loss, dim=len(xs), inputs=[wp_xs], outputs=[wp_l], device=wp_xs.device)

    losses = [l.item()]
    for i in range(100):
        before = xs.numpy().copy()
        tape.zero()
        tape.backward(loss=wp_l)  # compute gradients
        # now xs.grad will be populated with the gradients computed by Warp
        assert np.allclose(xs.grad.numpy(), 2.0 * before)
        opt.step()  # update xs (and thereby wp_xs)

        # these lines are only needed for evaluating the loss
        # (the optimization just needs the gradient, not the loss value)
        wp_l.zero_()
        wp.launch(loss, dim=len(xs), inputs=[wp_xs], outputs=[wp_l], device=wp_xs.device)
        losses.append(l.item())
    assert losses[-1] < 0.01 * losses[0]


def test_paddle_optimization_using_to_paddle(device):
    # init warp context at beginning
    wp.init()

    # initialize the optimization variables in Warp
    xs = wp.array(np.random.randn(100, 2), dtype=wp.float32, requires_grad=True)
    l = wp.zeros(1, dtype=wp.float32, requires_grad=True)
    # just a single wp.to_paddle call is needed, Adam optimizes using the Warp array gradients
    opt = paddle.optimizer.Adam(learning_rate=0.1, parameters=[wp.to_paddle(xs)])

    tape = wp.Tape()
    with tape:
        wp.launch(loss, dim=len(xs), inputs=[xs], outputs=[l], device=xs.device)

    losses = [l.numpy()[0]]
    for i in range(100):
        tape.zero()
        tape.backward(loss=l)
        opt.step()

        l.zero_()
        wp.launch(loss, dim=len(xs), inputs=[xs], outputs=[l], device=xs.device)
        losses.append(l.numpy()[0])
    assert losses[-1] < 0.01 * losses[0]


def test_paddle_performance_converting_again(device):
    n = 100
    x_t = paddle.arange(n, dtype=paddle.float32).to(device=wp.device_to_paddle(device))
    y_t = paddle.ones([n], dtype=paddle.float32).to(device=wp.device_to_paddle(device))

    for i in range(10):
        x_w = wp.from_paddle(x_t)
        y_w = wp.from_paddle(y_t)
        wp.launch(saxpy, dim=n, inputs=[x_w, y_w, 1.0], device=device)
    assert np.array_equal(y_t.numpy(), 10.0 * np.arange(n) + 1.0)


def test_paddle_performance_converting_once(device):
    n = 100
    x_t = paddle.arange(n, dtype=paddle.float32).to(device=wp.device_to_paddle(device))
    y_t = paddle.ones([n], dtype=paddle.float32).to(device=wp.device_to_paddle(device))

    x_w = wp.from_paddle(x_t)
    y_w = wp.from_paddle(y_t)

    for i in range(10):
        wp.launch(saxpy, dim=n, inputs=[x_w, y_w, 1.0], device=device)
    assert np.array_equal(y_t.numpy(), 10.0 * np.arange(n) + 1.0)


def test_paddle_performance_descriptors(device):
    for n in range(1, 10):
        # get Paddle tensors for this iteration
        x_t = paddle.arange(n, dtype=paddle.float32).to(device=wp.device_to_paddle(device))
        y_t = paddle.ones([n], dtype=paddle.float32).to(device=wp.device_to_paddle(device))

        # get Warp array descriptors
        x_ctype = wp.from_paddle(x_t, return_ctype=True)
        y_ctype = wp.from_paddle(y_t, return_ctype=True)

        wp.launch(saxpy, dim=n, inputs=[x_ctype, y_ctype, 1.0], device=device)
        assert np.array_equal(y_t.numpy(), np.arange(n) + 1.0)


def test_paddle_performance_tensors_as_arguments(device):
    n = 100
    x = paddle.arange(n, dtype=paddle.float32).to(device=wp.device_to_paddle(device))
    y = paddle.ones([n], dtype=paddle.float32).to(device=wp.device_to_paddle(device))

    for i in range(10):
        wp.launch(saxpy, dim=n, inputs=[x, y, 1.0], device=device)
    assert np.array_equal(y.numpy(), 10.0 * np.arange(n) + 1.0)


def test_paddle_streams(device):
    with pytest.raises(RuntimeError, match="stream"):
        wp.stream_from_paddle(device)
