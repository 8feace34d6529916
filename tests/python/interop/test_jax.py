"""Kernels and functions of Python's in programs of JAX."""

import os
import subprocess
import sys

import numpy as np
import pytest

import weft as wp

jax = pytest.importorskip("jax")
jnp = jax.numpy

pytestmark = pytest.mark.usefixtures("cpu")


@wp.kernel
def scale(a: wp.array(dtype=float), s: float, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = a[i] * s


@wp.kernel
def square(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = a[i] * a[i]


@wp.kernel
def neighbours(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    left = float(0.0)
    if i > 0:
        left = a[i - 1]
    out[i] = left + float(a.shape[0])


@wp.kernel
def rows(matrix: wp.array2d(dtype=float), sums: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(sums, i, matrix[i, j])


@wp.kernel
def squared_in_place(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i]
    wp.atomic_add(total, 0, x[i])


@wp.kernel
def values(a: wp.array(dtype=wp.vec3), m: wp.mat33, v: wp.vec3, n: int, out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    out[i] = m * a[i] + v * float(n)


@wp.kernel
def product(a: wp.array(dtype=float), b: wp.array(dtype=float), k: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = a[i] * b[k[i]]


ARRAYS = [
    (jnp.float16, wp.float16),
    (jnp.float32, wp.float32),
    (jnp.int8, wp.int8),
    (jnp.int16, wp.int16),
    (jnp.int32, wp.int32),
    (jnp.uint8, wp.uint8),
    (jnp.uint16, wp.uint16),
    (jnp.uint32, wp.uint32),
    (jnp.bool_, wp.bool),
]


@pytest.mark.parametrize("theirs, ours", ARRAYS)
def test_types_and_arrays_go_both_ways(theirs, ours):
    assert wp.dtype_from_jax(theirs) is ours and wp.dtype_to_jax(ours) is theirs
    x = jnp.array([1, 0, 1], dtype=theirs)
    array = wp.from_jax(x)
    assert array.dtype is ours and array.ptr == x.unsafe_buffer_pointer()
    assert np.array_equal(np.asarray(wp.to_jax(array)), np.asarray(x))


def test_vectors_are_last_dimensions_of_jaxs_arrays():
    x = jnp.arange(12, dtype=jnp.float32).reshape(2, 2, 3)
    assert wp.from_jax(x, dtype=wp.vec3).shape == (2, 2)
    assert np.array_equal(np.asarray(wp.to_jax(wp.from_jax(x, dtype=wp.vec3))), np.asarray(x))
    with pytest.raises(RuntimeError, match="no elements"):
        wp.from_jax(x, dtype=wp.vec2)
    with pytest.raises(RuntimeError, match="Cannot convert"):
        wp.from_jax(x, dtype=wp.int32)
    with pytest.raises(TypeError, match="complex64"):
        wp.from_jax(jnp.ones(2, dtype=jnp.complex64))


def test_devices_go_both_ways():
    assert wp.device_from_jax(jax.devices("cpu")[0]) == "cpu"
    assert wp.device_to_jax("cpu") == jax.devices("cpu")[0]


def test_a_kernel_runs_with_and_without_jit():
    f = wp.jax_kernel(square)
    x = jnp.arange(5, dtype=jnp.float32)
    for g in (f, jax.jit(f)):
        (out,) = g(x)
        assert np.array_equal(np.asarray(out), np.arange(5) ** 2.0)


def test_numbers_are_constants_or_traced():
    f = wp.jax_kernel(scale)
    x = jnp.arange(4, dtype=jnp.float32)
    assert np.array_equal(np.asarray(jax.jit(lambda a: f(a, 2.0))(x)[0]), np.arange(4) * 2.0)
    traced = jax.jit(f)
    for s in (3.0, 4.0):
        assert np.array_equal(np.asarray(traced(x, s)[0]), np.arange(4) * s)
    each = jax.vmap(f, in_axes=(None, 0))(x, jnp.array([1.0, 2.0, 3.0]))[0]
    assert np.array_equal(np.asarray(each), np.outer([1, 2, 3], np.arange(4)))


def test_values_of_the_package_are_constants_and_arrays_are_traced_values():
    f = wp.jax_kernel(values)
    a = jnp.ones((2, 3), dtype=jnp.float32)
    m = wp.mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0)
    v = wp.vec3(1.0, 1.0, 1.0)
    wanted = np.array([[3.0, 4.0, 5.0]] * 2)
    assert np.array_equal(np.asarray(jax.jit(lambda a: f(a, m, v, 2))(a)[0]), wanted)
    traced = jax.jit(f)(a, jnp.diag(jnp.array([1.0, 2.0, 3.0])), jnp.ones(3), 2)
    assert np.array_equal(np.asarray(traced[0]), wanted)


@pytest.mark.parametrize("method", ["broadcast_all", "expand_dims", "sequential"])
def test_a_batch_is_launched_element_by_element(method):
    f = wp.jax_kernel(neighbours, vmap_method=method)
    x = jnp.arange(24, dtype=jnp.float32).reshape(2, 3, 4)
    (out,) = jax.jit(jax.vmap(jax.vmap(f)))(x)
    wanted = np.concatenate([np.zeros((2, 3, 1)), np.asarray(x)[:, :, :-1]], axis=2) + 4.0
    assert np.array_equal(np.asarray(out), wanted)
    (out,) = jax.vmap(f, in_axes=1)(x[0])
    wanted = np.concatenate([np.zeros((4, 1)), np.asarray(x[0]).T[:, :-1]], axis=1) + 3.0
    assert np.array_equal(np.asarray(out), wanted)


@pytest.mark.parametrize("method", ["broadcast_all", "expand_dims", "sequential"])
def test_arrays_that_are_changed_are_outputs_under_vmap_too(method):
    f = wp.jax_kernel(rows, in_out_argnames=["sums"], vmap_method=method)
    matrices = jnp.arange(24, dtype=jnp.float32).reshape(2, 3, 4)
    start = jnp.ones((2, 3), dtype=jnp.float32)
    (sums,) = jax.jit(jax.vmap(f))(matrices, start)
    assert np.array_equal(np.asarray(sums), np.asarray(matrices).sum(axis=2) + 1.0)
    (sums,) = jax.jit(jax.vmap(f, in_axes=(1, None)))(matrices, start[:, 0])
    assert np.array_equal(np.asarray(sums), np.asarray(matrices).transpose(1, 0, 2).sum(axis=2) + 1.0)
    assert np.array_equal(np.asarray(start), np.ones((2, 3)))


def test_dimensions_of_launches_and_outputs_are_given():
    @wp.kernel
    def fill(out: wp.array(dtype=wp.vec2), other: wp.array2d(dtype=int)):
        i = wp.tid()
        out[i] = wp.vec2(float(i), 1.0)
        other[i, 0] = i

    f = wp.jax_kernel(fill, num_outputs=2)
    for dims in ({"out": 3, "other": (3, 1)}, {"out": (3, 2), "other": [3, 1]}):
        out, other = jax.jit(lambda dims=dims: f(launch_dims=3, output_dims=dims))()
        assert out.tolist() == [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]] and other.tolist() == [[0], [1], [2]]
    with pytest.raises(ValueError, match="launch_dims"):
        f()
    with pytest.raises(ValueError, match="'other'"):
        f(launch_dims=3)
    with pytest.raises(ValueError, match="cannot have dimensions"):
        f(launch_dims=3, output_dims={"out": (3, 3), "other": (3, 1)})


def test_empty_arrays_launch_nothing():
    (out,) = jax.jit(wp.jax_kernel(square))(jnp.zeros(0, dtype=jnp.float32))
    assert out.shape == (0,)
    (out,) = jax.vmap(wp.jax_kernel(square))(jnp.zeros((0, 3), dtype=jnp.float32))
    assert out.shape == (0, 3)


# ---- Gradients


def test_gradients_are_those_of_the_formula():
    f = wp.jax_kernel(product, enable_backward=True)
    k = jnp.array([2, 2, 0], dtype=jnp.int32)
    a, b = jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, 5.0, 6.0])

    def ours(a, b):
        return jnp.sum(f(a, b, k)[0] ** 2)

    def theirs(a, b):
        return jnp.sum((a * b[k]) ** 2)

    for transform in (lambda g: g, jax.jit):
        for got, wanted in zip(transform(jax.grad(ours, (0, 1)))(a, b), jax.grad(theirs, (0, 1))(a, b)):
            assert np.allclose(np.asarray(got), np.asarray(wanted))
    # One array for both: each parameter has its own gradient.
    assert np.allclose(np.asarray(jax.grad(lambda x: ours(x, x))(a)), np.asarray(jax.grad(lambda x: theirs(x, x))(a)))


def test_gradients_under_vmap_are_summed_where_an_array_serves_for_all():
    f = wp.jax_kernel(product, enable_backward=True)
    k = jnp.array([1, 0, 1], dtype=jnp.int32)
    a, b = jnp.arange(6, dtype=jnp.float32).reshape(2, 3), jnp.array([4.0, 5.0, 6.0])

    def ours(a, b):
        return jnp.sum(jax.vmap(lambda x: f(x, b, k)[0])(a) ** 2)

    def theirs(a, b):
        return jnp.sum((a * b[k]) ** 2)

    for got, wanted in zip(jax.jit(jax.grad(ours, (0, 1)))(a, b), jax.grad(theirs, (0, 1))(a, b)):
        assert np.allclose(np.asarray(got), np.asarray(wanted))


def test_arrays_that_are_changed_have_gradients():
    f = wp.jax_kernel(squared_in_place, num_outputs=2, in_out_argnames=["x", "total"], enable_backward=True)

    def ours(x, total):
        y, t = f(x, total)
        return jnp.sum(y) * 3.0 + t[0] * 5.0

    x = jnp.array([1.0, 2.0, 3.0])
    gradients = jax.jit(jax.grad(ours, (0, 1)))(x, jnp.zeros(1))
    assert np.allclose(np.asarray(gradients[0]), 2.0 * np.asarray(x) * 8.0)
    assert np.allclose(np.asarray(gradients[1]), [5.0])
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_gradients_with_given_dimensions():
    @wp.kernel
    def ends(a: wp.array(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = a[i] * a[a.shape[0] - 1 - i]

    f = wp.jax_kernel(ends, enable_backward=True)
    x = jnp.array([1.0, 2.0, 3.0, 4.0])
    gradient = jax.grad(lambda x: jnp.sum(f(x, launch_dims=2)[0]))(x)
    assert gradient.tolist() == [4.0, 3.0, 2.0, 1.0]


def test_gradients_of_launches_that_compute_nothing():
    f = wp.jax_kernel(square, enable_backward=True)
    assert jax.grad(lambda x: jnp.sum(f(x)[0]))(jnp.zeros(0)).shape == (0,)
    none = jax.grad(lambda x: jnp.sum(0.0 * f(x, launch_dims=0, output_dims=3)[0] + x[0]))(jnp.ones(3))
    assert none.tolist() == [3.0, 0.0, 0.0]

    @wp.kernel
    def in_place(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * x[i]

    @wp.kernel
    def whole(x: wp.array(dtype=float), out: wp.array(dtype=int)):
        i = wp.tid()
        out[i] = int(x[i])

    g = wp.jax_kernel(in_place, in_out_argnames=["x"], enable_backward=True)
    for threads, gradient in ((0, [1.0, 1.0, 1.0]), (2, [10.0, 10.0, 1.0])):
        made = jax.grad(lambda x, threads=threads: jnp.sum(g(x, launch_dims=threads)[0]))(jnp.full(3, 5.0))
        assert made.tolist() == gradient
    h = wp.jax_kernel(whole, enable_backward=True)
    assert jax.grad(lambda x: jnp.sum(h(x)[0]) * 1.0 + x[0])(jnp.ones(3)).tolist() == [1.0, 0.0, 0.0]


def test_gradients_of_numbers_are_refused_and_constants_have_none():
    f = wp.jax_kernel(scale, enable_backward=True)
    x = jnp.ones(3)
    assert jax.grad(lambda x: jnp.sum(f(x, 3.0)[0]))(x).tolist() == [3.0, 3.0, 3.0]
    assert jax.jit(jax.grad(lambda x, s: jnp.sum(f(x, s)[0])))(x, 3.0).tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(TypeError, match="number 's'"):
        jax.grad(lambda s: jnp.sum(f(x, s)[0]))(3.0)
    with pytest.raises(Exception, match="[Dd]ifferentiat|JVP|jvp"):
        jax.grad(lambda x: jnp.sum(wp.jax_kernel(square)(x)[0]))(x)


# ---- Functions of Python's


def scaled_both(a: wp.array(dtype=float), b: wp.array(dtype=wp.vec2), s: float, c: wp.array(dtype=float), d: wp.array(dtype=wp.vec2)):
    wp.launch(scale, dim=a.shape, inputs=[a, s], outputs=[c])
    wp.copy(d, b)


def test_a_function_launches_kernels_on_jaxs_arrays():
    f = wp.jax_callable(scaled_both, num_outputs=2)
    a, b = jnp.arange(3, dtype=jnp.float32), jnp.arange(4, dtype=jnp.float32).reshape(2, 2)
    for g in (lambda a, b, s: f(a, b, s, output_dims={"c": 3, "d": 2}),) * 2:
        c, d = jax.jit(g)(a, b, 2.0)
        assert c.tolist() == [0.0, 2.0, 4.0] and d.tolist() == b.tolist()
    c, d = jax.jit(lambda a, b: f(a, b, 3.0, output_dims={"c": a.shape, "d": b.shape}))(a, b)
    assert c.tolist() == [0.0, 3.0, 6.0]


@pytest.mark.parametrize("mode", list(wp.JaxCallableGraphMode))
def test_a_function_under_vmap_is_called_for_each_element(mode):
    calls = []

    def counted(a: wp.array(dtype=float), total: wp.array(dtype=float)):
        calls.append(a.shape)
        wp.launch(squared_in_place, dim=a.shape, inputs=[wp.clone(a), total])

    f = wp.jax_callable(counted, in_out_argnames=["total"], graph_mode=mode)
    (out,) = jax.jit(jax.vmap(f, in_axes=(0, None)))(jnp.arange(6, dtype=jnp.float32).reshape(2, 3), jnp.ones(1))
    assert out.tolist() == [[6.0], [51.0]] and calls == [(3,), (3,)]


def test_what_a_function_raises_is_an_error_of_the_program():
    def broken(a: wp.array(dtype=float), out: wp.array(dtype=float)):
        raise KeyError("no such thing")

    with pytest.raises(Exception, match="no such thing"):
        jax.block_until_ready(jax.jit(wp.jax_callable(broken))(jnp.ones(2)))
    with pytest.raises(TypeError, match="annotations"):
        wp.jax_callable(lambda a, b: None)


def test_callbacks_get_buffers_and_attributes():
    seen = []

    def callback(inputs, outputs, attrs, ctx):
        seen.append((attrs["scale"], attrs["text"], list(attrs["list"]), ctx.stream))
        wp.launch(scale, dim=inputs[0].shape, inputs=[inputs[0], float(attrs["scale"])], outputs=[outputs[0]])

    wp.register_ffi_callback("weft_test_callback", callback)
    x = jnp.arange(3, dtype=jnp.float32)
    call = jax.ffi.ffi_call("weft_test_callback", [jax.ShapeDtypeStruct(x.shape, x.dtype)])
    (out,) = call(x, scale=np.float32(2.0), text="words", list=np.array([1, 2]))
    assert out.tolist() == [0.0, 2.0, 4.0] and seen == [(2.0, "words", [1, 2], 0)]


# ---- Refusals


def test_wrong_arguments_are_refused_by_name():
    f = wp.jax_kernel(square)
    with pytest.raises(TypeError, match="argument 'a' has elements of type int32"):
        f(jnp.ones(3, dtype=jnp.int32))
    with pytest.raises(ValueError, match="argument 'a' has shape"):
        f(jnp.ones((3, 3)))
    with pytest.raises(ValueError, match="expected 1 input arguments, got 2"):
        f(jnp.ones(3), jnp.ones(3))
    with pytest.raises(TypeError, match="argument 'a' is of type float"):
        f(1.0)
    with pytest.raises(TypeError, match="argument 's'"):
        wp.jax_kernel(scale)(jnp.ones(3), "text")


def test_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match="duplicate"):
        wp.jax_kernel(rows, in_out_argnames=["sums", "sums"], num_outputs=2)
    with pytest.raises(ValueError, match="did not match any"):
        wp.jax_kernel(rows, in_out_argnames=["nothing"])
    with pytest.raises(ValueError, match="before output-only"):
        wp.jax_kernel(rows, in_out_argnames=["sums"], num_outputs=2)
    with pytest.raises(ValueError, match="num_outputs"):
        wp.jax_kernel(rows, num_outputs=0)
    with pytest.raises(TypeError, match="no array"):

        @wp.kernel
        def number_last(a: wp.array(dtype=float), s: float):
            a[0] = s

        wp.jax_kernel(number_last)


def test_errors_of_launches_are_errors_of_the_program():
    f = jax.jit(lambda x: wp.jax_kernel(square)(x, launch_dims=2**40, output_dims=2)[0])
    with pytest.raises(Exception, match='kernel "square": a launch over'):
        f(jnp.ones(2)).block_until_ready()
    assert wp.jax_kernel(square)(jnp.ones(2))[0].tolist() == [1.0, 1.0]


def test_a_tape_and_a_capture_of_the_thread_do_not_see_jaxs_work():
    f = jax.jit(wp.jax_kernel(square))
    x = jnp.arange(3, dtype=jnp.float32)
    tape = wp.Tape()
    with tape:
        assert f(x)[0].tolist() == [0.0, 1.0, 4.0]
    assert len(tape.launches) == 0
    with wp.ScopedCapture(device="cpu"):
        assert f(x)[0].tolist() == [0.0, 1.0, 4.0]


# ---- Several devices and processes

SHARDED = """
import numpy as np
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import weft as wp

@wp.kernel
def twice(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = 2.0 * a[i] + float(a.shape[0])

f = wp.jax_kernel(twice, enable_backward=True)
mesh = Mesh(np.array(jax.devices()), "x")
n = 4 * len(jax.devices())
placed = NamedSharding(mesh, P("x"))
x = jax.make_array_from_callback((n,), placed, lambda index: np.arange(n, dtype=np.float32)[index])
g = jax.jit(jax.shard_map(lambda a: f(a)[0], mesh=mesh, in_specs=P("x"), out_specs=P("x")))
y = g(x)
for shard in y.addressable_shards:
    assert np.array_equal(np.asarray(shard.data), 2.0 * np.arange(n, dtype=np.float32)[shard.index] + 4.0)
grad = jax.jit(jax.grad(lambda x: jnp.sum(g(x) ** 2)))(x)
for shard in grad.addressable_shards:
    part = np.arange(n, dtype=np.float32)[shard.index]
    assert np.allclose(np.asarray(shard.data), 4.0 * (2.0 * part + 4.0))
print("right on", len(jax.devices()), "devices")
"""


def run_python(folder, code, **environment):
    """Runs a program of its own, from a file: kernels need their source."""
    file = folder / "program.py"
    file.write_text(code)
    return subprocess.Popen(
        [sys.executable, str(file)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_shard_map_over_devices_of_one_process(tmp_path):
    process = run_python(tmp_path, SHARDED, XLA_FLAGS="--xla_force_host_platform_device_count=4", JAX_PLATFORMS="cpu")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and "right on 4 devices" in output, output


def test_shard_map_over_two_processes(tmp_path):
    start = """
import jax, os
jax.distributed.initialize("127.0.0.1:" + os.environ["PORT"], 2, int(os.environ["RANK"]))
"""
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu", "PORT": port}
    processes = [run_python(tmp_path, start + SHARDED, RANK=str(rank), **flags) for rank in range(2)]
    for process in processes:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0 and "right on 4 devices" in output, output


def test_a_stored_program_finds_its_kernel_in_another_process(tmp_path):
    code = """
import jax, jax.numpy as jnp
import weft as wp

@wp.kernel
def thrice(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = 3.0 * a[i]

jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
print(jax.jit(wp.jax_kernel(thrice))(jnp.arange(3, dtype=jnp.float32))[0].tolist())
"""
    for _ in range(2):
        process = run_python(tmp_path, code, JAX_COMPILATION_CACHE_DIR=str(tmp_path), JAX_PLATFORMS="cpu")
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0 and "[0.0, 3.0, 6.0]" in output, output
