"""The programs of the runtime's reference on gradients and Jacobians."""

import numpy as np

import weft as wp


def test_differentiability_arrays(gpu):
    a = wp.zeros(1024, dtype=wp.vec3, device=gpu, requires_grad=True)
    assert a.requires_grad and not a.grad.numpy().any() and a.grad.shape == (1024,)


def test_differentiability_tape(gpu, capsys):
    @wp.kernel
    def compute1(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        b[wp.tid()] = 3.0 * a[wp.tid()]

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

    tape = wp.Tape()

    with tape:
        wp.launch(kernel=compute1, dim=3, inputs=[a, b], device=gpu)
        wp.launch(kernel=compute2, dim=3, inputs=[c, d], device=gpu)
        wp.launch(kernel=loss, dim=3, inputs=[d, l], device=gpu)

    tape.backward(l)

    print(tape.gradients[a])
    assert capsys.readouterr().out == "[18. 36. 54.]\n"

    tape.zero()
    assert not a.grad.numpy().any()


@wp.kernel
def products(x: wp.array(dtype=float), y: wp.array(dtype=float), inputs: int, outputs: int):
    env, k = wp.tid()
    sum = float(0.0)
    for i in range(inputs):
        sum += float(k + 1) * x[env * inputs + i] * x[env * inputs + i]
    y[env * outputs + k] = sum


def launcher(num_envs, input_dim, output_dim, device):
    """The function whose Jacobian is asked: output k is (k + 1) times the sum of squares of the environment."""

    def launch_kernels_to_be_differentiated(input_buffer):
        output = wp.zeros(num_envs * output_dim, dtype=float, device=device, requires_grad=True)
        wp.launch(products, dim=(num_envs, output_dim), inputs=[input_buffer, output, input_dim, output_dim])
        return output

    return launch_kernels_to_be_differentiated


def test_jacobians(gpu):
    input_dim, output_dim = 4, 3
    numbers = np.random.default_rng(6).normal(size=input_dim).astype(np.float32)
    input_buffer = wp.array(numbers, dtype=float, device=gpu, requires_grad=True)
    launch_kernels_to_be_differentiated = launcher(1, input_dim, output_dim, gpu)

    jacobian = np.empty((output_dim, input_dim), dtype=np.float32)
    tape = wp.Tape()
    with tape:
        output_buffer = launch_kernels_to_be_differentiated(input_buffer)
    for output_index in range(output_dim):
        select_index = np.zeros(output_dim)
        select_index[output_index] = 1.0
        e = wp.array(select_index, dtype=wp.float32)
        tape.backward(grads={output_buffer: e})
        q_grad_i = tape.gradients[input_buffer]
        jacobian[output_index, :] = q_grad_i.numpy()
        tape.zero()

    assert np.allclose(jacobian, 2.0 * numbers * np.arange(1, output_dim + 1)[:, None], atol=1e-5)


def test_jacobians_of_environments(gpu):
    num_envs, input_dim, output_dim = 5, 2, 3
    numbers = np.random.default_rng(7).normal(size=(num_envs, input_dim)).astype(np.float32)
    input_buffer = wp.array(numbers.reshape(-1), dtype=float, device=gpu, requires_grad=True)
    launch_kernels_to_be_differentiated = launcher(num_envs, input_dim, output_dim, gpu)

    jacobians = np.empty((num_envs, output_dim, input_dim), dtype=np.float32)
    tape = wp.Tape()
    with tape:
        output_buffer = launch_kernels_to_be_differentiated(input_buffer)
    for output_index in range(output_dim):
        select_index = np.zeros(output_dim)
        select_index[output_index] = 1.0
        e = wp.array(np.tile(select_index, num_envs), dtype=wp.float32)
        tape.backward(grads={output_buffer: e})
        q_grad_i = tape.gradients[input_buffer]
        jacobians[:, output_index, :] = q_grad_i.numpy().reshape(num_envs, input_dim)
        tape.zero()

    want = 2.0 * numbers[:, None, :] * np.arange(1, output_dim + 1)[None, :, None]
    assert np.allclose(jacobians, want, atol=1e-5)
