"""The programs of the page on interoperability that need JAX."""

import math
from functools import partial

import numpy as np
import pytest

import weft as wp
from weft.jax_experimental import GraphMode, jax_callable, jax_kernel, register_ffi_callback

jax = pytest.importorskip("jax")
jnp = jp = jax.numpy


@pytest.fixture(autouse=True)
def on_the_processor(host):
    """JAX's arrays are the processor's here."""
    with wp.ScopedDevice(host), jax.default_device(jax.devices("cpu")[0]):
        yield


def test_jax_conversions():
    jax_array = jnp.arange(4, dtype=jnp.float32)
    warp_array = wp.from_jax(jax_array)
    jax_array = wp.to_jax(warp_array)
    assert jax_array.tolist() == [0.0, 1.0, 2.0, 3.0]


@wp.kernel
def triple_kernel(input: wp.array(dtype=float), output: wp.array(dtype=float)):
    tid = wp.tid()
    output[tid] = 3.0 * input[tid]


def test_jax_kernels_as_primitives():
    # create a Jax primitive from a Warp kernel
    jax_triple = jax_kernel(triple_kernel)

    # use the Warp kernel in a Jax jitted function
    @jax.jit
    def f():
        x = jnp.arange(0, 64, dtype=jnp.float32)
        return jax_triple(x)

    assert np.array_equal(np.asarray(f()[0]), 3.0 * np.arange(64))


@wp.kernel
def add_kernel_int(a: wp.array(dtype=int), b: wp.array(dtype=int), output: wp.array(dtype=int)):
    tid = wp.tid()
    output[tid] = a[tid] + b[tid]


def test_jax_two_inputs_and_one_output():
    jax_add = jax_kernel(add_kernel_int)

    @jax.jit
    def f():
        n = 10
        a = jnp.arange(n, dtype=jnp.int32)
        b = jnp.ones(n, dtype=jnp.int32)
        return jax_add(a, b)

    assert np.array_equal(np.asarray(f()[0]), np.arange(10) + 1)


@wp.kernel
def sincos_kernel(angle: wp.array(dtype=float),
                  # outputs
                  sin_out: wp.array(dtype=float),
                  cos_out: wp.array(dtype=float)):
    tid = wp.tid()
    sin_out[tid] = wp.sin(angle[tid])
    cos_out[tid] = wp.cos(angle[tid])


def test_jax_one_input_and_two_outputs():
    jax_sincos = jax_kernel(sincos_kernel, num_outputs=2)  # specify multiple outputs

    @jax.jit
    def f():
        a = jnp.linspace(0, 2 * math.pi, 32)
        return jax_sincos(a)

    s, c = f()
    a = np.linspace(0, 2 * math.pi, 32)
    assert np.allclose(s, np.sin(a), atol=1e-5) and np.allclose(c, np.cos(a), atol=1e-5)


@wp.kernel
def diagonal_kernel(output: wp.array(dtype=wp.mat33)):
    tid = wp.tid()
    output[tid] = wp.mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0)


def test_jax_no_inputs():
    jax_diagonal = jax_kernel(diagonal_kernel)

    @jax.jit
    def f():
        # launch dimensions determine the output shape
        return jax_diagonal(launch_dims=4)

    assert np.array_equal(np.asarray(f()[0]), np.broadcast_to(np.diag([1.0, 2.0, 3.0]), (4, 3, 3)))


@wp.kernel
def scale_kernel(a: wp.array(dtype=float),
                 s: float,  # scalar input
                 output: wp.array(dtype=float)):
    tid = wp.tid()
    output[tid] = a[tid] * s


def test_jax_scalar_inputs():
    jax_scale = jax_kernel(scale_kernel)

    @jax.jit
    def f():
        a = jnp.arange(10, dtype=jnp.float32)
        return jax_scale(a, 2.0)  # ok: constant scalar argument

    assert np.array_equal(np.asarray(f()[0]), 2.0 * np.arange(10))


def test_jax_traced_scalars():
    jax_scale = jax_kernel(scale_kernel)

    @jax.jit
    def f(a, s):
        return jax_scale(a, s)  # the peer's error: traced scalar argument

    a = jnp.arange(10, dtype=jnp.float32)

    assert np.array_equal(np.asarray(f(a, 2.0)[0]), 2.0 * np.arange(10))


def test_jax_static_scalars():
    jax_scale = jax_kernel(scale_kernel)

    # make scalar arguments static
    @partial(jax.jit, static_argnames=["s"])
    def f(a, s):
        return jax_scale(a, s)  # ok: static scalar argument

    a = jnp.arange(10, dtype=jnp.float32)

    assert np.array_equal(np.asarray(f(a, 2.0)[0]), 2.0 * np.arange(10))


@wp.kernel
def matmul_kernel(
    a: wp.array2d(dtype=float),  # NxK input
    b: wp.array2d(dtype=float),  # KxM input
    c: wp.array2d(dtype=float),  # NxM output
):
    # launch dimensions should be (N, M)
    i, j = wp.tid()
    N = a.shape[0]
    K = a.shape[1]
    M = b.shape[1]
    if i < N and j < M:
        s = wp.float32(0)
        for k in range(K):
            s += a[i, k] * b[k, j]
        c[i, j] = s


def test_jax_launch_dimensions():
    # no need to specify launch dims here
    jax_matmul = jax_kernel(matmul_kernel)

    @jax.jit
    def f():
        N1, M1, K1 = 3, 4, 2
        a1 = jnp.full((N1, K1), 2, dtype=jnp.float32)
        b1 = jnp.full((K1, M1), 3, dtype=jnp.float32)

        # use custom launch dims
        result1 = jax_matmul(a1, b1, launch_dims=(N1, M1))

        N2, M2, K2 = 4, 3, 2
        a2 = jnp.full((N2, K2), 2, dtype=jnp.float32)
        b2 = jnp.full((K2, M2), 3, dtype=jnp.float32)

        # use custom launch dims
        result2 = jax_matmul(a2, b2, launch_dims=(N2, M2))

        return result1, result2

    r1, r2 = f()
    assert np.array_equal(np.asarray(r1[0]), np.full((3, 4), 12.0))
    assert np.array_equal(np.asarray(r2[0]), np.full((4, 3), 12.0))


@wp.kernel
def funky_kernel(a: wp.array(dtype=float),
                 # outputs
                 b: wp.array(dtype=float),
                 c: wp.array(dtype=float)):
    i = wp.tid()
    if i < b.shape[0]:
        b[i] = float(b.shape[0])
    if i < c.shape[0]:
        c[i] = float(c.shape[0])


def test_jax_output_dimensions():
    n, m, k = 3, 4, 5
    a = jnp.zeros(6, dtype=jnp.float32)
    jax_funky = jax_kernel(funky_kernel, num_outputs=2)

    # a custom output shape used for all outputs
    b, c = jax_funky(a, output_dims=n)
    assert b.tolist() == [3.0] * 3 and c.tolist() == [3.0] * 3

    # different output dimensions for each output using a dictionary
    b, c = jax_funky(a, output_dims={"b": n, "c": m})
    assert b.tolist() == [3.0] * 3 and c.tolist() == [4.0] * 4

    # custom launch and output dimensions together
    b, c = jax_funky(a, launch_dims=k, output_dims={"b": n, "c": m})
    assert b.tolist() == [3.0] * 3 and c.tolist() == [4.0] * 4


@wp.kernel
def vecmat_kernel(a: wp.array(dtype=float),
                  b: wp.array(dtype=wp.vec3),
                  c: wp.array(dtype=wp.mat22),
                  # outputs
                  d: wp.array(dtype=float),
                  e: wp.array(dtype=wp.vec3),
                  f: wp.array(dtype=wp.mat22)):
    i = wp.tid()
    d[i] = a[i] + 1.0
    e[i] = b[i] + wp.vec3(1.0, 2.0, 3.0)
    f[i] = c[i] + wp.mat22(1.0, 2.0, 3.0, 4.0)


def test_jax_vector_and_matrix_arrays():
    jax_vecmat = jax_kernel(vecmat_kernel, num_outputs=3)
    n = 10
    a = jnp.zeros(n, dtype=jnp.float32)          # scalar array
    b = jnp.zeros((n, 3), dtype=jnp.float32)     # vec3 array
    c = jnp.zeros((n, 2, 2), dtype=jnp.float32)  # mat22 array

    for given in (
        {},
        {"output_dims": n},
        {"output_dims": {"d": n, "e": n, "f": n}},
        {"output_dims": {"d": n, "e": (n, 3), "f": (n, 2, 2)}},
        {"output_dims": {"d": a.shape, "e": b.shape, "f": c.shape}},
    ):
        d, e, f = jax.jit(lambda a, b, c, given=given: jax_vecmat(a, b, c, **given))(a, b, c)
        assert d.tolist() == [1.0] * n and e.tolist() == [[1.0, 2.0, 3.0]] * n
        assert f.tolist() == [[[1.0, 2.0], [3.0, 4.0]]] * n


@wp.kernel
def add_kernel(a: wp.array(dtype=float), b: wp.array(dtype=float), output: wp.array(dtype=float)):
    tid = wp.tid()
    output[tid] = a[tid] + b[tid]


def test_jax_vmap_methods():
    # set default vmap behavior
    jax_callback = jax_kernel(triple_kernel, vmap_method="sequential")
    a = jp.arange(12, dtype=jp.float32).reshape((3, 4))

    @jax.jit
    def f(a):
        b = jax.vmap(jax_callback)(a)  # uses "sequential"
        d = jax.vmap(partial(jax_callback, vmap_method="expand_dims"))(a)  # uses "expand_dims"
        return b[0], d[0]

    b, d = f(a)
    assert np.array_equal(b, 3.0 * a) and np.array_equal(d, 3.0 * a)


def test_jax_vmap_basic():
    jax_add = jax_kernel(add_kernel)

    # batched inputs
    a = jp.arange(3 * 4, dtype=jp.float32).reshape((3, 4))
    b = jp.ones(3 * 4, dtype=jp.float32).reshape((3, 4))

    (output,) = jax.jit(jax.vmap(jax_add))(a, b)
    assert np.array_equal(output, a + b)


@wp.kernel
def rowsum_kernel(matrix: wp.array2d(dtype=float), sums: wp.array1d(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(sums, i, matrix[i, j])


def test_jax_vmap_with_in_out_arguments():
    jax_rowsum = jax_kernel(rowsum_kernel, in_out_argnames=["sums"])

    # batched input with shape (2, 3, 4)
    matrices = jp.arange(2 * 3 * 4, dtype=jp.float32).reshape((2, 3, 4))

    # vmap with batch dim 0: input 2 matrices with shape (3, 4), output shape (2, 3)
    sums = jp.zeros((2, 3), dtype=jp.float32)
    (output,) = jax.jit(jax.vmap(jax_rowsum, in_axes=(0, 0)))(matrices, sums)
    assert np.array_equal(output, matrices.sum(axis=2))

    # vmap with batch dim 1: input 3 matrices with shape (2, 4), output shape (3, 2)
    sums = jp.zeros((3, 2), dtype=jp.float32)
    (output,) = jax.jit(jax.vmap(jax_rowsum, in_axes=(1, 0)))(matrices, sums)
    assert np.array_equal(output, matrices.sum(axis=2).T)

    # vmap with batch dim 2: input 4 matrices with shape (2, 3), output shape (4, 2)
    sums = jp.zeros((4, 2), dtype=jp.float32)
    (output,) = jax.jit(jax.vmap(jax_rowsum, in_axes=(2, 0)))(matrices, sums)
    assert np.array_equal(output, matrices.sum(axis=1).T)


@wp.kernel
def lookup_kernel(table: wp.array(dtype=float), indices: wp.array(dtype=int), output: wp.array(dtype=float)):
    i = wp.tid()
    output[i] = table[indices[i]]


def test_jax_vmap_with_launch_dimensions():
    jax_lookup = jax_kernel(lookup_kernel)

    # lookup table (not batched)
    N = 100
    table = jp.arange(N, dtype=jp.float32)

    # batched indices to look up
    key = jax.random.key(42)
    indices = jax.random.randint(key, (20, 50), 0, N, dtype=jp.int32)

    # vmap with batch dim 0: input 20 sets of 50 indices each, output shape (20, 50)
    (output,) = jax.jit(jax.vmap(partial(jax_lookup, launch_dims=50), in_axes=(None, 0)))(
        table, indices
    )
    assert np.array_equal(output, indices.astype(jp.float32))

    # vmap with batch dim 1: input 50 sets of 20 indices each, output shape (50, 20)
    (output,) = jax.jit(jax.vmap(partial(jax_lookup, launch_dims=20), in_axes=(None, 1)))(
        table, indices
    )
    assert np.array_equal(output, indices.T.astype(jp.float32))


@wp.kernel
def scale_sum_square(
    a: wp.array(dtype=float),
    b: wp.array(dtype=float),
    s: float,
    out: wp.array(dtype=float),
):
    tid = wp.tid()
    out[tid] = (a[tid] * s + b[tid]) ** 2.0


def test_jax_differentiation_basic():
    jax_scale = jax_kernel(scale_sum_square, num_outputs=1, enable_backward=True)

    # scalars must be static
    @partial(jax.jit, static_argnames=["s"])
    def loss(a, b, s):
        (out,) = jax_scale(a, b, s)
        return jnp.sum(out)

    n = 16
    a = jnp.arange(n, dtype=jnp.float32)
    b = jnp.ones(n, dtype=jnp.float32)
    s = 2.0

    # gradients w.r.t. array inputs
    da, db = jax.grad(loss, argnums=(0, 1))(a, b, s)
    assert np.allclose(da, 2.0 * s * (s * a + b)) and np.allclose(db, 2.0 * (s * a + b))


@wp.kernel
def multi_output(
    a: wp.array(dtype=float),
    b: wp.array(dtype=float),
    s: float,
    c: wp.array(dtype=float),
    d: wp.array(dtype=float),
):
    tid = wp.tid()
    c[tid] = a[tid] ** 2.0
    d[tid] = a[tid] * b[tid] * s


def test_jax_differentiation_multiple_outputs():
    jax_multi = jax_kernel(multi_output, num_outputs=2, enable_backward=True)

    def caller(fn, a, b, s):
        c, d = fn(a, b, s)
        return jnp.sum(c + d)

    n = 16
    a = jnp.arange(n, dtype=jnp.float32)
    b = jnp.ones(n, dtype=jnp.float32)
    s = 2.0

    # differentiate a batched scalar objective over two inputs
    da, db = jax.grad(lambda a, b, s: caller(jax_multi, a, b, s), argnums=(0, 1))(a, b, s)
    assert np.allclose(da, 2.0 * a + b * s) and np.allclose(db, a * s)


@wp.kernel
def scale_vec2(a: wp.array(dtype=wp.vec2), s: float, out: wp.array(dtype=wp.vec2)):
    tid = wp.tid()
    out[tid] = a[tid] * s


def test_jax_differentiation_of_vectors():
    jax_vec = jax_kernel(scale_vec2, num_outputs=1, enable_backward=True)

    @partial(jax.jit, static_argnames=["s"])
    def vec_loss(a, s):
        (out,) = jax_vec(a, s)
        return jnp.sum(out)

    a2 = jnp.arange(10, dtype=jnp.float32).reshape((5, 2))  # vec2 payload shape
    (da2,) = jax.grad(vec_loss, argnums=(0,))(a2, 3.0)
    assert np.array_equal(da2, np.full((5, 2), 3.0))


@wp.kernel
def scale_vec_kernel(a: wp.array(dtype=wp.vec2), s: float, output: wp.array(dtype=wp.vec2)):
    tid = wp.tid()
    output[tid] = a[tid] * s


# The Python function to call.
# Note the argument type annotations, just like Warp kernels.
def example_func(
    # inputs
    a: wp.array(dtype=float),
    b: wp.array(dtype=wp.vec2),
    s: float,
    # outputs
    c: wp.array(dtype=float),
    d: wp.array(dtype=wp.vec2),
):
    # launch multiple kernels
    wp.launch(scale_kernel, dim=a.shape, inputs=[a, s], outputs=[c])
    wp.launch(scale_vec_kernel, dim=b.shape, inputs=[b, s], outputs=[d])


@pytest.mark.parametrize("mode", [GraphMode.JAX, GraphMode.WARP, GraphMode.NONE])
def test_jax_annotated_functions(mode):
    jax_func = jax_callable(example_func, num_outputs=2, graph_mode=mode)

    @jax.jit
    def f():
        # inputs
        a = jnp.arange(10, dtype=jnp.float32)
        b = jnp.arange(10, dtype=jnp.float32).reshape((5, 2))  # wp.vec2
        s = 2.0

        # output shapes
        output_dims = {"c": a.shape, "d": b.shape}

        c, d = jax_func(a, b, s, output_dims=output_dims)

        return c, d

    r1, r2 = f()
    assert np.array_equal(r1, 2.0 * np.arange(10)) and np.array_equal(r2, 2.0 * np.arange(10).reshape(5, 2))


def get_jax_device():
    return jax.devices("cpu")[0]


def test_jax_callbacks():
    # the Python function to call
    def warp_func(inputs, outputs, attrs, ctx):
        # input arrays
        a = inputs[0]
        b = inputs[1]

        # scalar attributes
        s = attrs["scale"]

        # output arrays
        c = outputs[0]
        d = outputs[1]

        device = wp.device_from_jax(get_jax_device())
        stream = wp.Stream(device, cuda_stream=ctx.stream)

        with wp.ScopedStream(stream):
            # launch with arrays of scalars
            wp.launch(scale_kernel, dim=a.shape, inputs=[a, s], outputs=[c])

            # launch with arrays of vec2
            # NOTE: the input shapes are from JAX arrays, so we need to strip the inner dimension for vec2 arrays
            wp.launch(scale_vec_kernel, dim=b.shape[0], inputs=[b, s], outputs=[d])

    # register callback
    register_ffi_callback("warp_func", warp_func)

    n = 10

    # inputs
    a = jnp.arange(n, dtype=jnp.float32)
    b = jnp.arange(n, dtype=jnp.float32).reshape((n // 2, 2))  # array of wp.vec2
    s = 2.0

    # set up the call
    out_types = [
        jax.ShapeDtypeStruct(a.shape, jnp.float32),
        jax.ShapeDtypeStruct(b.shape, jnp.float32),  # array of wp.vec2
    ]
    call = jax.ffi.ffi_call("warp_func", out_types)

    # call it
    c, d = call(a, b, scale=s)

    assert np.array_equal(c, 2.0 * a) and np.array_equal(d, 2.0 * b)


def test_jax_distributed_computation():
    from jax.sharding import PartitionSpec as P

    # The program initializes JAX's distributed environment, and gathers over processes: see interop/test_jax.py
    num_gpus = jax.device_count()

    @wp.kernel
    def multiply_by_two_kernel(
        a_in: wp.array(dtype=wp.float32),
        a_out: wp.array(dtype=wp.float32),
    ):
        index = wp.tid()
        a_out[index] = a_in[index] * 2.0

    jax_warp_multiply = jax_kernel(multiply_by_two_kernel)

    def warp_multiply(x):
        result = jax_warp_multiply(x)
        return result

    # a_in here is the full sharded array with shape (M,)
    # The output will also be a sharded array with shape (M,)
    def warp_distributed_operator(a_in):
        def _sharded_operator(a_in):
            # warp_multiply applies the Warp kernel to the local shard
            result = warp_multiply(a_in)[0]

            # result has the same shape as the input shard (M/N,)
            return result

        # shard_map distributes the computation across devices
        return jax.shard_map(
            _sharded_operator,
            mesh=jax.sharding.Mesh(np.array(jax.devices()), "x"),
            in_specs=(P("x"),),  # Input is sharded along the 'x' axis
            out_specs=P("x"),    # Output is also sharded along the 'x' axis
            check_vma=False,
        )(a_in)

    devices = jax.devices()
    mesh = jax.sharding.Mesh(np.array(devices), "x")
    sharding_spec = jax.sharding.NamedSharding(mesh, P("x"))

    input_size = num_gpus * 5  # 5 elements per device
    single_device_arrays = jnp.arange(input_size, dtype=jnp.float32)

    # Define the shape of the input array based on the total input size
    shape = (input_size,)

    # Create a list of arrays by distributing the single_device_arrays across the available devices
    # Each device will receive a portion of the input data
    arrays = [
        jax.device_put(single_device_arrays[index], d)  # Place each element on the corresponding device
        for d, index in sharding_spec.addressable_devices_indices_map(shape).items()
    ]

    # Combine the individual device arrays into a single sharded array
    sharded_array = jax.make_array_from_single_device_arrays(shape, sharding_spec, arrays)

    # warp_result has the same shape and sharding as sharded_array
    warp_result = warp_distributed_operator(sharded_array)

    assert np.array_equal(np.asarray(warp_result), 2.0 * np.arange(input_size))
