"""The programs of the page on interoperability that need PyTorch."""

import random

import numpy as np
import pytest

import weft as wp

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def on_the_processor(host):
    """PyTorch's tensors are the processor's where it sees no GPU of CUDA's."""
    if torch.cuda.is_available() and wp.is_cuda_available():
        yield
    else:
        with wp.ScopedDevice(host):
            yield


@pytest.fixture
def device():
    return wp.device_to_torch(wp.get_device())


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel()
def loss(xs: wp.array(dtype=float, ndim=2), l: wp.array(dtype=float)):
    tid = wp.tid()
    wp.atomic_add(l, 0, xs[tid, 0] ** 2.0 + xs[tid, 1] ** 2.0)


# Define the Rosenbrock function
@wp.func
def rosenbrock(x: float, y: float):
    return (1.0 - x) ** 2.0 + 100.0 * (y - x**2.0) ** 2.0


@wp.kernel
def eval_rosenbrock(
    xs: wp.array(dtype=wp.vec2),
    # outputs
    z: wp.array(dtype=float),
):
    i = wp.tid()
    x = xs[i]
    z[i] = rosenbrock(x[0], x[1])


@wp.kernel(enable_backward=False)
def forward_kernel(
    a: wp.array(dtype=float),
    b: wp.array(dtype=float),
    output: wp.array(dtype=float)
):
    i = wp.tid()
    x = a[i]
    y = b[i]
    output[i] = x*x + y*y


@wp.kernel(enable_backward=False)
def backward_kernel(
    grad_output: wp.array(dtype=float),
    a: wp.array(dtype=float),
    b: wp.array(dtype=float),
    grad_a: wp.array(dtype=float),
    grad_b: wp.array(dtype=float)
):
    i = wp.tid()
    x = a[i]
    y = b[i]
    adj_z = grad_output[i]

    grad_a[i] = 2.0 * x * adj_z
    grad_b[i] = 2.0 * y * adj_z


def test_interoperability_torch_arrays_as_arguments(host):
    n = 100
    if torch.cuda.is_available() and random.choice([False, True]):
        device = "cuda:0"
    else:
        device = "cpu"

    x = torch.arange(n, dtype=torch.float32, device=device)
    y = torch.ones(n, dtype=torch.float32, device=device)

    wp.launch(saxpy, dim=n, inputs=[x, y, 1.0], device=device)
    assert torch.equal(y, x + 1.0)


def test_pytorch_conversions(host):
    w = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu")

    # convert to Torch tensor
    t = wp.to_torch(w)

    # convert from Torch tensor
    w = wp.from_torch(t)
    assert w.ptr == t.data_ptr() and t.tolist() == [1.0, 2.0, 3.0]


def test_pytorch_optimization_using_from_torch():
    # indicate requires_grad so that Warp can accumulate gradients in the grad buffers
    xs = torch.randn(100, 2, requires_grad=True)
    l = torch.zeros(1, requires_grad=True)
    opt = torch.optim.Adam([xs], lr=0.1)

    wp_xs = wp.from_torch(xs)
    wp_l = wp.from_torch(l)

    tape = wp.Tape()
    with tape:
        # record the loss function kernel launch on the tape
        wp.launch(loss, dim=len(xs), inputs=[wp_xs], outputs=[wp_l], device=wp_xs.device)

    losses = [l.item()]
    for i in range(100):
        before = xs.detach().clone()
        tape.zero()
        tape.backward(loss=wp_l)  # compute gradients
        # now xs.grad will be populated with the gradients computed by Warp
        torch.testing.assert_close(xs.grad, 2.0 * before)
        opt.step()  # update xs (and thereby wp_xs)

        # these lines are only needed for evaluating the loss
        # (the optimization just needs the gradient, not the loss value)
        wp_l.zero_()
        wp.launch(loss, dim=len(xs), inputs=[wp_xs], outputs=[wp_l], device=wp_xs.device)
        losses.append(l.item())
    assert losses[-1] < 0.01 * losses[0]


def test_pytorch_optimization_using_to_torch():
    # initialize the optimization variables in Warp
    xs = wp.array(np.random.randn(100, 2), dtype=wp.float32, requires_grad=True)
    l = wp.zeros(1, dtype=wp.float32, requires_grad=True)
    # just a single wp.to_torch call is needed, Adam optimizes using the Warp array gradients
    opt = torch.optim.Adam([wp.to_torch(xs)], lr=0.1)

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


def test_pytorch_optimization_using_an_autograd_function():
    class Rosenbrock(torch.autograd.Function):
        @staticmethod
        def forward(ctx, xy, num_points):
            ctx.xy = wp.from_torch(xy, dtype=wp.vec2, requires_grad=True)
            ctx.num_points = num_points

            # allocate output
            ctx.z = wp.zeros(num_points, requires_grad=True)

            wp.launch(
                kernel=eval_rosenbrock,
                dim=ctx.num_points,
                inputs=[ctx.xy],
                outputs=[ctx.z]
            )

            return wp.to_torch(ctx.z)

        @staticmethod
        def backward(ctx, adj_z):
            # map incoming Torch grads to our output variables
            ctx.z.grad = wp.from_torch(adj_z)

            wp.launch(
                kernel=eval_rosenbrock,
                dim=ctx.num_points,
                inputs=[ctx.xy],
                outputs=[ctx.z],
                adj_inputs=[ctx.xy.grad],
                adj_outputs=[ctx.z.grad],
                adjoint=True
            )

            # return adjoint w.r.t. inputs
            return (wp.to_torch(ctx.xy.grad), None)

    num_points = 50
    learning_rate = 5e-2

    torch_device = wp.device_to_torch(wp.get_device())

    rng = np.random.default_rng(42)
    xy = torch.tensor(rng.normal(size=(num_points, 2)), dtype=torch.float32, requires_grad=True, device=torch_device)
    opt = torch.optim.Adam([xy], lr=learning_rate)

    for step in range(4000):
        # step
        opt.zero_grad()
        z = Rosenbrock.apply(xy, num_points)
        z.backward(torch.ones_like(z))
        if step % 100 == 0:
            check_rosenbrock_gradient(xy)

        opt.step()

    # minimum at (1, 1)
    xy_np = xy.numpy(force=True)
    assert np.allclose(np.mean(xy_np, axis=0), 1.0, atol=0.1)


def check_rosenbrock_gradient(xy):
    """The gradient is what PyTorch computes from the formula."""
    own = xy.detach().clone().requires_grad_(True)
    ((1.0 - own[:, 0]) ** 2 + 100.0 * (own[:, 1] - own[:, 0] ** 2) ** 2).sum().backward()
    torch.testing.assert_close(xy.grad, own.grad, rtol=1e-4, atol=1e-3)


def test_pytorch_optimization_using_custom_operators():
    if not hasattr(torch.library, "custom_op"):
        pytest.skip("this PyTorch has no custom operators")

    @torch.library.custom_op("wp::warp_rosenbrock", mutates_args=())
    def warp_rosenbrock(xy: torch.Tensor, num_points: int) -> torch.Tensor:
        wp_xy = wp.from_torch(xy, dtype=wp.vec2)
        wp_z = wp.zeros(num_points, dtype=wp.float32)

        wp.launch(kernel=eval_rosenbrock, dim=num_points, inputs=[wp_xy], outputs=[wp_z])

        return wp.to_torch(wp_z)

    @warp_rosenbrock.register_fake
    def _(xy, num_points):
        return torch.empty(num_points, dtype=torch.float32)

    @torch.library.custom_op("wp::warp_rosenbrock_backward", mutates_args=())
    def warp_rosenbrock_backward(
        xy: torch.Tensor, num_points: int, z: torch.Tensor, adj_z: torch.Tensor
    ) -> torch.Tensor:
        wp_xy = wp.from_torch(xy, dtype=wp.vec2)
        wp_z = wp.from_torch(z, requires_grad=False)
        wp_adj_z = wp.from_torch(adj_z, requires_grad=False)

        wp.launch(
            kernel=eval_rosenbrock,
            dim=num_points,
            inputs=[wp_xy],
            outputs=[wp_z],
            adj_inputs=[wp_xy.grad],
            adj_outputs=[wp_adj_z],
            adjoint=True,
        )

        return wp.to_torch(wp_xy.grad)

    @warp_rosenbrock_backward.register_fake
    def _(xy, num_points, z, adj_z):
        return torch.empty_like(xy)

    def backward(ctx, adj_z):
        return warp_rosenbrock_backward(ctx.xy, ctx.num_points, ctx.z, adj_z), None

    def setup_context(ctx, inputs, output):
        ctx.xy, ctx.num_points = inputs
        ctx.z = output

    warp_rosenbrock.register_autograd(backward, setup_context=setup_context)

    num_points = 50
    learning_rate = 5e-2

    torch_device = wp.device_to_torch(wp.get_device())

    rng = np.random.default_rng(42)
    xy = torch.tensor(rng.normal(size=(num_points, 2)), dtype=torch.float32, requires_grad=True, device=torch_device)
    opt = torch.optim.Adam([xy], lr=learning_rate)

    @torch.compile(fullgraph=True)
    def forward():
        z = warp_rosenbrock(xy, num_points)
        return z

    for step in range(4000):
        # step
        opt.zero_grad()
        z = forward()
        z.backward(torch.ones_like(z))
        if step % 100 == 0:
            check_rosenbrock_gradient(xy)
        opt.step()

    # minimum at (1, 1)
    xy_np = xy.numpy(force=True)
    assert np.allclose(np.mean(xy_np, axis=0), 1.0, atol=0.1)


def test_pytorch_performance_converting_again(device):
    n = 100
    x_t = torch.arange(n, dtype=torch.float32, device=device)
    y_t = torch.ones(n, dtype=torch.float32, device=device)

    for i in range(10):
        x_w = wp.from_torch(x_t)
        y_w = wp.from_torch(y_t)
        wp.launch(saxpy, dim=n, inputs=[x_w, y_w, 1.0], device=device)
    assert torch.equal(y_t, 10.0 * x_t + 1.0)


def test_pytorch_performance_converting_once(device):
    n = 100
    x_t = torch.arange(n, dtype=torch.float32, device=device)
    y_t = torch.ones(n, dtype=torch.float32, device=device)

    x_w = wp.from_torch(x_t)
    y_w = wp.from_torch(y_t)

    for i in range(10):
        wp.launch(saxpy, dim=n, inputs=[x_w, y_w, 1.0], device=device)
    assert torch.equal(y_t, 10.0 * x_t + 1.0)


def test_pytorch_performance_descriptors(device):
    for n in range(1, 10):
        # get Torch tensors for this iteration
        x_t = torch.arange(n, dtype=torch.float32, device=device)
        y_t = torch.ones(n, dtype=torch.float32, device=device)

        # get Warp array descriptors
        x_ctype = wp.from_torch(x_t, return_ctype=True)
        y_ctype = wp.from_torch(y_t, return_ctype=True)

        wp.launch(saxpy, dim=n, inputs=[x_ctype, y_ctype, 1.0], device=device)
        assert torch.equal(y_t, x_t + 1.0)


def test_pytorch_performance_tensors_as_arguments(device):
    n = 100
    x = torch.arange(n, dtype=torch.float32, device=device)
    y = torch.ones(n, dtype=torch.float32, device=device)

    for i in range(10):
        wp.launch(saxpy, dim=n, inputs=[x, y, 1.0], device=device)
    assert torch.equal(y, 10.0 * x + 1.0)


N = 1000


def run_case_study(device, function):
    """The loop of the case study, with the gradients checked."""
    TRIALS = 2
    a = torch.randn(N, device=device, dtype=torch.float32, requires_grad=True)
    b = torch.randn(N, device=device, dtype=torch.float32, requires_grad=True)

    for i in range(TRIALS):
        with wp.ScopedTimer(f"TRIAL {i}", use_nvtx=True, synchronize=True):
            with wp.ScopedTimer("Create Tensors", use_nvtx=True, synchronize=True):
                a_torch = a.clone().detach().requires_grad_(True)
                b_torch = b.clone().detach().requires_grad_(True)
            with wp.ScopedTimer("Forward", use_nvtx=True, synchronize=True):
                output_warp = function.apply(a_torch, b_torch)
            with wp.ScopedTimer("Loss", use_nvtx=True, synchronize=True):
                loss_warp = output_warp.sum()
            with wp.ScopedTimer("Backward", use_nvtx=True, synchronize=True):
                grads = torch.autograd.grad(loss_warp, (a_torch, b_torch))
        torch.testing.assert_close(grads[0], 2.0 * a.detach())
        torch.testing.assert_close(grads[1], 2.0 * b.detach())


def test_case_study_the_problem(device):
    class WarpFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)

            device = wp.device_from_torch(a.device)

            output = torch.empty(N, device=a.device)
            wp.launch(
                kernel=forward_kernel,
                dim=(N),
                device=device,
                inputs=[
                    wp.from_torch(a),
                    wp.from_torch(b),
                    wp.from_torch(output),
                ],
            )
            assert a.grad is None and b.grad is None

            return output

        @staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors

            device = wp.device_from_torch(a.device)

            grad_a = torch.empty_like(a)
            grad_b = torch.empty_like(b)

            wp.launch(
                kernel=backward_kernel,
                dim=(N),
                device=device,
                inputs=[
                    wp.from_torch(grad_output.contiguous()),
                    wp.from_torch(a),
                    wp.from_torch(b),
                    wp.from_torch(grad_a),
                    wp.from_torch(grad_b),
                ],
            )

            return grad_a, grad_b

    run_case_study(device, WarpFunction)


def test_case_study_solution_a(device):
    class WarpFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            device = wp.device_from_torch(a.device)
            output = torch.empty(N, device=a.device)

            wp.launch(
                kernel=forward_kernel,
                dim=(N),
                device=device,
                inputs=[
                    wp.from_torch(a, requires_grad=False),
                    wp.from_torch(b, requires_grad=False),
                    wp.from_torch(output, requires_grad=False),
                ],
            )
            return output

        @staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors
            device = wp.device_from_torch(a.device)
            grad_a = torch.empty_like(a)
            grad_b = torch.empty_like(b)

            wp.launch(
                kernel=backward_kernel,
                dim=(N),
                device=device,
                inputs=[
                    wp.from_torch(grad_output.contiguous(), requires_grad=False),
                    wp.from_torch(a, requires_grad=False),
                    wp.from_torch(b, requires_grad=False),
                    wp.from_torch(grad_a, requires_grad=False),
                    wp.from_torch(grad_b, requires_grad=False),
                ],
            )
            return grad_a, grad_b

    run_case_study(device, WarpFunction)


def test_case_study_solution_b(device):
    class WarpFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            # Store detached tensors - we'll manage gradients manually
            ctx.a = a.detach()
            ctx.b = b.detach()

            device = wp.device_from_torch(a.device)
            output = torch.empty(N, device=a.device)

            wp.launch(
                kernel=forward_kernel,
                dim=(N),
                device=device,
                inputs=[
                    ctx.a,  # Detached, no requires_grad
                    ctx.b,  # Detached, no requires_grad
                    output,
                ],
            )
            return output

        @staticmethod
        def backward(ctx, grad_output):
            device = wp.device_from_torch(ctx.a.device)
            grad_a = torch.empty_like(ctx.a)
            grad_b = torch.empty_like(ctx.b)

            wp.launch(
                kernel=backward_kernel,
                dim=(N),
                device=device,
                inputs=[
                    grad_output.detach(),
                    ctx.a,  # Already detached
                    ctx.b,  # Already detached
                    grad_a,
                    grad_b,
                ],
            )
            return grad_a, grad_b

    run_case_study(device, WarpFunction)


def function_with_gradients_of_pytorchs():
    """Solution C with analytic gradients."""

    class WarpFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            # Pre-allocate gradients using PyTorch's allocator
            if a.grad is None:
                a.grad = torch.empty_like(a)
            if b.grad is None:
                b.grad = torch.empty_like(b)

            ctx.save_for_backward(a, b)

            device = wp.device_from_torch(a.device)
            output = torch.empty(N, device=a.device)

            wp.launch(
                kernel=forward_kernel,
                dim=(N),
                device=device,
                inputs=[
                    wp.from_torch(a),
                    wp.from_torch(b),
                    wp.from_torch(output),
                ],
            )
            return output

        @staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors
            device = wp.device_from_torch(a.device)

            # Now we can use a.grad and b.grad directly
            wp.launch(
                kernel=backward_kernel,
                dim=(N),
                device=device,
                inputs=[
                    wp.from_torch(grad_output.contiguous()),
                    wp.from_torch(a),
                    wp.from_torch(b),
                    wp.from_torch(a.grad),  # Allocated by PyTorch
                    wp.from_torch(b.grad),  # Allocated by PyTorch
                ],
            )
            return a.grad, b.grad

    return WarpFunction


def test_case_study_solution_c_with_analytic_gradients(device):
    run_case_study(device, function_with_gradients_of_pytorchs())


def test_case_study_solution_c_with_gradients_made_at_creation(device):
    WarpFunction = function_with_gradients_of_pytorchs()
    a = torch.randn(N, device=device)
    b = torch.randn(N, device=device)

    # At tensor creation time
    a_torch = a.clone().detach().requires_grad_(True)
    b_torch = b.clone().detach().requires_grad_(True)

    # Pre-allocate gradients immediately
    a_torch.grad = torch.empty_like(a_torch)
    b_torch.grad = torch.empty_like(b_torch)
    made = a_torch.grad.data_ptr(), b_torch.grad.data_ptr()

    # Now safe to use in WarpFunction
    output = WarpFunction.apply(a_torch, b_torch)

    torch.testing.assert_close(output, a * a + b * b)
    grads = torch.autograd.grad(output.sum(), (a_torch, b_torch))
    torch.testing.assert_close(grads[0], 2.0 * a)
    torch.testing.assert_close(grads[1], 2.0 * b)
    assert (a_torch.grad.data_ptr(), b_torch.grad.data_ptr()) == made


def test_case_study_solution_c_with_a_tape(device):
    class WarpFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            device = wp.device_from_torch(a.device)
            output = torch.zeros(N, device=a.device)

            # Pre-allocate gradients using PyTorch's allocator
            if a.grad is None:
                a.grad = torch.zeros_like(a)
            if b.grad is None:
                b.grad = torch.zeros_like(b)

            wp_output = wp.from_torch(output, requires_grad=True)

            with wp.Tape() as tape:
                wp.launch(
                    kernel=forward_kernel,
                    dim=(N),
                    device=device,
                    inputs=[
                        wp.from_torch(a),
                        wp.from_torch(b),
                        wp_output,
                    ],
                )

            ctx.tape = tape
            ctx.wp_output = wp_output
            ctx.a = a
            ctx.b = b

            return output

        @staticmethod
        def backward(ctx, grad_output):
            ctx.tape.backward(grads={ctx.wp_output: wp.from_torch(grad_output.contiguous())})

            # Grab gradients before clearing references
            grad_a = ctx.a.grad
            grad_b = ctx.b.grad

            # Clear context to break reference cycles and free memory
            ctx.tape = None
            ctx.wp_output = None

            return grad_a, grad_b

    run_case_study(device, WarpFunction)


def test_pytorch_streams(device):
    with pytest.raises(RuntimeError, match="stream"):
        wp.stream_from_torch(device)
    with pytest.raises(RuntimeError, match="stream"):
        wp.stream_to_torch(wp.get_device())
