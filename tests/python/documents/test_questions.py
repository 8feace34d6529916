"""The programs of the frequent questions."""

import numpy as np

import weft as wp


@wp.kernel
def kernel_1(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 1.0


@wp.kernel
def kernel_2(y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = y[i] * 2.0


def test_when_to_synchronize_kernels(gpu):
    dim = 100
    array_x, array_y, array_z = (wp.zeros(dim, dtype=float, device=gpu) for _ in range(3))

    wp.launch(kernel_1, dim, [array_x, array_y], device=gpu)
    wp.launch(kernel_2, dim, [array_y, array_z], device=gpu)

    x = array_z.numpy()
    assert np.all(x == 2.0)


def test_when_to_synchronize_copies(gpu, host):
    gpu_array_1, gpu_array_2, gpu_array_3 = (wp.full(8, float(k), dtype=float, device=gpu) for k in (1, 2, 3))
    cpu_array_1, cpu_array_2, cpu_array_3 = (wp.zeros(8, dtype=float, device=host) for _ in range(3))

    wp.copy(cpu_array_1, gpu_array_1)
    wp.copy(cpu_array_2, gpu_array_2)
    wp.copy(cpu_array_3, gpu_array_3)

    wp.synchronize()

    a1 = cpu_array_1.numpy()
    a2 = cpu_array_2.numpy()
    a3 = cpu_array_3.numpy()
    assert np.all(a1 == 1.0) and np.all(a2 == 2.0) and np.all(a3 == 3.0)
