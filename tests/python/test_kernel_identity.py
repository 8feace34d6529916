"""What a module's kernels do as a hash, and kernels of modules of their own that are defined again."""

import numpy as np

import weft as wp

FACTOR = 2.0


def make(amount):
    @wp.kernel(module="unique")
    def add_amount(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] + amount

    return add_amount


def test_a_kernel_that_is_defined_again_is_the_same():
    assert make(1.0) is make(1.0)
    assert make(1.0) is not make(2.0)
    x = wp.zeros(2, dtype=float)
    wp.launch(make(1.0), dim=2, inputs=[x])
    wp.launch(make(2.0), dim=2, inputs=[x])
    assert x.numpy().tolist() == [3.0, 3.0]


def test_what_may_change_makes_a_new_kernel():
    table = {"amount": 1.0}

    def define():
        @wp.kernel(module="unique")
        def add_static(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = x[i] + wp.static(table["amount"])

        return add_static

    x = wp.zeros(1, dtype=float)
    wp.launch(define(), dim=1, inputs=[x])
    table["amount"] = 10.0
    wp.launch(define(), dim=1, inputs=[x])
    assert x.numpy().tolist() == [11.0]


def test_hashes_of_modules():
    global FACTOR

    @wp.kernel(module="unique")
    def scale(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = FACTOR * x[i]

    before = scale.module.hash_module()
    assert isinstance(before, bytes) and scale.module.hash_module() == before
    assert make(1.0).module.hash_module() != make(2.0).module.hash_module()
    FACTOR = 3.0
    try:
        assert scale.module.hash_module() != before
    finally:
        FACTOR = 2.0


def test_angles_of_rotations(device):
    @wp.kernel
    def k(angles: wp.array(dtype=wp.vec3), i: int, j: int, k: int, out: wp.array2d(dtype=wp.quat)):
        t = wp.tid()
        q = wp.quat_from_euler(angles[t], i, j, k)
        out[t, 0] = q
        out[t, 1] = wp.quat_from_euler(wp.quat_to_euler(q, i, j, k), i, j, k)

    given = np.random.default_rng(5).uniform(-3.0, 3.0, (64, 3)).astype(np.float32)
    given[0] = [0.4, -0.2, 0.3]
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0), (0, 2, 1), (2, 0, 1)):
        given[1, order[1]], given[2, order[1]] = np.pi / 2, -np.pi / 2
        out = wp.zeros((64, 2), dtype=wp.quat)
        wp.launch(k, dim=64, inputs=[wp.array(given, dtype=wp.vec3), *order, out])
        made = out.numpy()
        assert np.allclose(np.abs((made[:, 0] * made[:, 1]).sum(axis=1)), 1.0, atol=1e-5)
        if order == (2, 1, 0):
            assert np.allclose(made[0, 0], [0.18083558, -0.12628517, 0.12611651, 0.96718415], atol=1e-6)


def test_conditions_and_loops_outside_and_inside_of_graphs(device):
    @wp.kernel
    def count(left: wp.array(dtype=int), done: wp.array(dtype=int)):
        left[0] = left[0] - 1
        done[0] = done[0] + 1

    left, done, flag = wp.array([3], dtype=int), wp.zeros(1, dtype=int), wp.array([0], dtype=int)

    def work():
        wp.launch(count, dim=1, inputs=[left, done])

    wp.capture_while(left, work)
    assert done.numpy()[0] == 3
    wp.capture_if(flag, on_true=work, on_false=lambda: done.fill_(50))
    assert done.numpy()[0] == 50
    with wp.ScopedCapture() as capture:
        left.fill_(4)
        wp.capture_while(left, work, limit=8)
        wp.capture_if(flag, on_true=work, on_false=work)
    wp.capture_launch(capture.graph)
    assert done.numpy()[0] == 55
