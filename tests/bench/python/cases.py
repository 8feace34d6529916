"""The cases of suite python, as one library runs them: a process of its own for each library.

    python cases.py LIBRARY CASE ROUNDS

LIBRARY is weft or warp. Prints the least time of a call, in microseconds; nothing where the library has not what the case
needs.
"""

import importlib
import sys
import time

import numpy as np

START = time.perf_counter()
wp = importlib.import_module(sys.argv[1])
IMPORTED = time.perf_counter() - START
IS_WEFT = sys.argv[1] == "weft"
if not IS_WEFT:
    wp.config.quiet = True
    wp.init()

N = 16


@wp.kernel
def four_arrays(
    a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), d: wp.array(dtype=float), s: float, n: int
):
    i = wp.tid()
    if i < n:
        d[i] = a[i] * s + b[i] - c[i]


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def least(call, rounds, inner=200):
    """The least time of a call over rounds of `inner` calls, in microseconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(inner):
            call()
        best = min(best, (time.perf_counter() - start) / inner)
    return 1e6 * best


def arrays(requires_grad=False):
    return [wp.zeros(N, dtype=float, device="cpu", requires_grad=requires_grad) for _ in range(4)]


def launch(rounds):
    a, b, c, d = arrays()
    return least(lambda: wp.launch(four_arrays, dim=N, inputs=[a, b, c, d, 1.0, N], device="cpu"), rounds)


def launch_numpy(rounds):
    a, b, c, d = (np.zeros(N, dtype=np.float32) for _ in range(4))
    return least(lambda: wp.launch(four_arrays, dim=N, inputs=[a, b, c, d, 1.0, N], device="cpu"), rounds)


def launch_torch(rounds):
    import torch

    a, b, c, d = (torch.zeros(N) for _ in range(4))
    return least(lambda: wp.launch(four_arrays, dim=N, inputs=[a, b, c, d, 1.0, N], device="cpu"), rounds)


def launch_recorded(rounds):
    a, b, c, d = arrays()
    command = wp.launch(four_arrays, dim=N, inputs=[a, b, c, d, 1.0, N], device="cpu", record_cmd=True)
    return least(command.launch, rounds)


def launch_on_tape(rounds):
    a, b, c, d = arrays(requires_grad=True)

    def batch():
        tape = wp.Tape()
        with tape:
            for _ in range(100):
                wp.launch(four_arrays, dim=N, inputs=[a, b, c, d, 1.0, N], device="cpu")

    return least(batch, rounds, 5) / 100


def zeros(rounds):
    with wp.ScopedDevice("cpu"):
        return least(lambda: wp.zeros(N, dtype=float), rounds)


def conversions(tensors, convert):
    """The documents' benchmark: tensors that are converted for each launch."""

    def run(rounds):
        x, y = tensors()
        return least(lambda: wp.launch(saxpy, dim=N, inputs=[convert(x), convert(y), 1.0], device="cpu"), rounds)

    return run


def torch_tensors():
    import torch

    return torch.zeros(N), torch.zeros(N)


def paddle_tensors():
    import paddle

    return paddle.zeros([N]), paddle.zeros([N])


def import_beyond_numpy(rounds):
    return 1e6 * IMPORTED


def first_kernel(rounds):
    start = time.perf_counter()
    a, b, c, d = arrays()
    wp.launch(four_arrays, dim=N, inputs=[a, b, c, d, 1.0, N], device="cpu")
    d.numpy()
    return 1e6 * (time.perf_counter() - start)


def jax_over_plain(rounds):
    import jax
    import jax.numpy as jnp

    kernel = wp.jax_kernel(square) if IS_WEFT else importlib.import_module("warp.jax_experimental.ffi").jax_kernel(square)
    ours = jax.jit(lambda x: kernel(x)[0])
    plain = jax.jit(lambda x: x * x)
    x = jnp.arange(float(N), dtype=jnp.float32)
    for f in (ours, plain):
        f(x).block_until_ready()
    pairs = [
        (least(lambda: ours(x).block_until_ready(), 1), least(lambda: plain(x).block_until_ready(), 1))
        for _ in range(2 * rounds)
    ]
    return min(a for a, _ in pairs) - min(b for _, b in pairs)


def trace(rounds):
    """Tracing a kernel of some 1,500 instructions."""
    if not IS_WEFT:
        return None

    @wp.kernel
    def long(x: wp.array(dtype=float)):
        i = wp.tid()
        v = x[i]
        for k in range(16):
            for m in range(16):
                v = wp.sin(v * float(k)) + float(m) * v * 0.5 + wp.abs(v)
        x[i] = v

    native = long.native_kernel()
    instructions = native.dump().count("\n")
    assert instructions > 1200, instructions
    return least(native.ir_hash, rounds, 1)


CASES = {
    "launch, 4 arrays and 2 scalars": launch,
    "launch, 4 NumPy arrays": launch_numpy,
    "launch, 4 torch tensors": launch_torch,
    "launch, recorded": launch_recorded,
    "launch on a tape": launch_on_tape,
    "zeros": zeros,
    "from_torch": conversions(torch_tensors, lambda t: wp.from_torch(t)),
    "from_torch, return_ctype": conversions(torch_tensors, lambda t: wp.from_torch(t, return_ctype=True)),
    "torch directly": conversions(torch_tensors, lambda t: t),
    "from_paddle": conversions(paddle_tensors, lambda t: wp.from_paddle(t)),
    "from_paddle, return_ctype": conversions(paddle_tensors, lambda t: wp.from_paddle(t, return_ctype=True)),
    "paddle directly": conversions(paddle_tensors, lambda t: t),
    "import beyond NumPy": import_beyond_numpy,
    "first kernel, not cached": first_kernel,
    "first kernel, cached": first_kernel,
    "jit of JAX over plain": jax_over_plain,
    "trace of 1,500 instructions": trace,
}


def main():
    result = CASES[sys.argv[2]](int(sys.argv[3]))
    if result is not None:
        print(f"RESULT {result}")


if __name__ == "__main__":
    main()
