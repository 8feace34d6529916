"""The native module by itself: traces, launches, arrays, tapes and graphs, and what it refuses."""

import gc
import weakref

import numpy
import pytest

import weft as wp
from weft import _weft as w
from weft.runtime import conversion

F32 = w.scalar_dtype(w.FLOAT32)
I32 = w.scalar_dtype(w.INT32)
VEC3 = w.vector_dtype(w.FLOAT32, 3)
OPS = w.OPS


class Kernel(w.KernelHandle):
    """A kernel whose code is a function of the module's own calls."""

    def __init__(self, params, body):
        super().__init__()
        self.native = w.Kernel(body.__name__, __file__, 1, params, body)


@pytest.fixture(scope="module", autouse=True)
def without_the_package():
    """The package's conversion of arguments knows the package's kernels only."""
    w.set_converter(None)
    yield
    w.set_converter(conversion.convert)


@pytest.fixture(scope="module")
def cpu():
    return w.Device("cpu")


def scale_body(args):
    x, factor = args
    i = w.thread(0, 1)
    x.store((i,), w.binary(OPS["mul"], x.load((i,)), factor))


def make_scale():
    return Kernel([(F32, 1), F32], scale_body)


def values(array):
    return array.numpy().tolist()


def test_types_are_one_object_each():
    assert w.vector_dtype(w.FLOAT32, 3) is VEC3
    assert (VEC3.name, VEC3.count, VEC3.size, VEC3.align) == ("vec3", 3, 12, 4)
    assert w.quaternion_dtype(w.FLOAT64).name == "quatd"
    with pytest.raises(ValueError):
        w.vector_dtype(w.FLOAT32, 0)
    with pytest.raises(ValueError):
        w.scalar_dtype(99)


def test_structs_are_laid_out_as_in_c():
    inner = w.struct_dtype("Inner", [("a", w.scalar_dtype(w.UINT8)), ("b", w.scalar_dtype(w.FLOAT64))])
    outer = w.struct_dtype("Outer", [("k", I32), ("inner", inner), ("x", (F32, 1))])
    assert (inner.size, inner.align) == (16, 8)
    assert [field[2] for field in outer.fields] == [0, 8, 24]
    assert outer.holds_arrays and not inner.holds_arrays
    assert outer.codes == (w.INT32, w.UINT8, w.FLOAT64)


def test_a_kernel_runs(cpu):
    x = w.full((4,), 3.0, F32, cpu)
    w.launch(make_scale(), dim=4, inputs=[x, 2.0])
    assert values(x) == [6.0] * 4


def test_a_kernel_sees_strided_views(cpu):
    x = w.zeros((6,), F32, cpu)
    x.fill(1.0)
    w.launch(make_scale(), 3, [x.slice(0, 0, 6, 2), 5.0])
    assert values(x) == [5.0, 1.0, 5.0, 1.0, 5.0, 1.0]


def test_control_flow(cpu):
    def body(args):
        (x,) = args
        i = w.thread(0, 1)
        total = w.local(F32, (w.constant(w.FLOAT32, 0.0),))
        k = w.open_range(w.constant(w.INT32, 0), i, w.constant(w.INT32, 1))
        w.open_if(w.binary(OPS["lt"], (w.constant(w.INT32, 1),), (k,))[0])
        w.set(total, w.binary(OPS["add"], w.get(total), w.convert(w.FLOAT32, (k,))))
        w.open_else()
        w.set(total, w.binary(OPS["add"], w.get(total), (w.constant(w.FLOAT32, 100.0),)))
        w.close_if()
        w.close_range()
        x.store((i,), w.get(total))

    x = w.zeros(5, F32, cpu)
    w.launch(Kernel([(F32, 1)], body), 5, [x])
    assert values(x) == [0.0, 100.0, 200.0, 202.0, 205.0]


def test_while_loops(cpu):
    def body(args):
        (x,) = args
        i = w.thread(0, 1)
        left = w.local(I32, x.load((i,)))
        count = w.local(I32, None)
        w.open_while()
        w.while_body(w.binary(OPS["lt"], (w.constant(w.INT32, 1),), w.get(left))[0])
        w.set(left, w.binary(OPS["div"], w.get(left), (w.constant(w.INT32, 2),)))
        w.set(count, w.binary(OPS["add"], w.get(count), (w.constant(w.INT32, 1),)))
        w.close_while()
        x.store((i,), w.get(count))

    x = w.from_host(numpy.array([1, 2, 9, 1024], numpy.int32), I32, 4, cpu)
    w.launch(Kernel([(I32, 1)], body), 4, [x])
    assert values(x) == [0, 1, 3, 10]


def test_negative_indices_wrap(cpu):
    def body(args):
        x, y, k = args
        i = w.thread(0, 1)
        y.store((i,), x.load(k, 1))

    x = w.from_host(numpy.arange(5, dtype=numpy.float32), F32, 5, cpu)
    y = w.zeros(1, F32, cpu)
    kernel = Kernel([(F32, 1), (F32, 1), I32], body)
    for k, expected in ((0, 0.0), (-1, 4.0), (-5, 0.0), (3, 3.0)):
        w.launch(kernel, 1, [x, y, k])
        assert values(y) == [expected]


def test_functions_are_called(cpu):
    calls = []

    def square(args):
        calls.append(1)
        (v,) = args
        return w.binary(OPS["mul"], v, v)

    func = w.Func("square", __file__, 1, square)

    def body(args):
        (x,) = args
        i = w.thread(0, 1)
        once = w.call_func(func, ((F32, x.load((i,))),))
        x.store((i,), w.call_func(func, ((F32, once),)))

    x = w.full(3, 3.0, F32, cpu)
    w.launch(Kernel([(F32, 1)], body), 3, [x])
    assert values(x) == [81.0] * 3
    assert len(calls) == 1


def test_library_functions(cpu):
    def body(args):
        x, y = args
        i = w.thread(0, 1)
        v = x.load((i,))
        dtype, length = w.call("length", (VEC3,), (v,))
        assert dtype is F32
        y.store((i,), length)
        dtype, unit = w.call("normalize", (VEC3,), (v,))
        x.store((i,), unit)

    x = w.from_host(numpy.array([[3, 4, 0], [0, 0, 2]], numpy.float32), VEC3, 2, cpu)
    y = w.zeros(2, F32, cpu)
    w.launch(Kernel([(VEC3, 1), (F32, 1)], body), 2, [x, y])
    assert values(y) == [5.0, 2.0]
    assert numpy.allclose(x.numpy(), [[0.6, 0.8, 0], [0, 0, 1]])


def test_library_functions_on_the_host():
    assert w.call_host("length", (VEC3,), ((3.0, 4.0, 0.0),)) == [[5.0]]
    five = w.vector_dtype(w.FLOAT64, 5)
    assert w.call_host("dot", (five, five), ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1])) == [[15.0]]
    with pytest.raises(TypeError, match="no such function"):
        w.call_host("cross", (F32, F32), (1.0, 2.0))


def test_structs_as_arguments_and_elements(cpu):
    pair = w.struct_dtype("Pair", [("k", I32), ("v", VEC3)])

    def body(args):
        out, given = args
        i = w.thread(0, 1)
        out.element((i,)).field("v").store(given[1:])
        out.element((i,)).field("k").store(given[:1])

    class Pair:
        k = 7
        v = (1.0, 2.0, 3.0)

    out = w.zeros(2, pair, cpu)
    w.launch(Kernel([(pair, 1), pair], body), 2, [out, Pair()])
    element = numpy.frombuffer(bytes(out.bytes()), numpy.dtype([("k", "i4"), ("v", "f4", 3)]))
    assert element["k"].tolist() == [7, 7]
    assert element["v"].tolist() == [[1, 2, 3]] * 2


def test_structs_that_hold_arrays_are_spread(cpu):
    state = w.struct_dtype("State", [("x", (F32, 1)), ("dt", F32)])

    def body(args):
        (given,) = args
        i = w.thread(0, 1)
        x = given["x"]
        x.store((i,), w.binary(OPS["add"], x.load((i,)), given["dt"]))

    class State:
        dt = 0.5

    State.x = w.zeros(3, F32, cpu)
    w.launch(Kernel([state], body), 3, [State])
    assert values(State.x) == [0.5] * 3


def test_numpy_arrays_are_arguments(cpu):
    x = numpy.ones(4, numpy.float32)
    w.launch(make_scale(), 4, [x, 3.0], device=cpu)
    cpu.synchronize()
    assert x.tolist() == [3.0] * 4
    with pytest.raises(TypeError):
        w.launch(make_scale(), 4, [numpy.ones(4), 3.0], device=cpu)


def test_views_of_one_numpy_array_are_arguments_beside_each_other(cpu):
    def body(args):
        x, y = args
        i = w.thread(0, 1)
        y.store((i,), x.load((i,)))

    kernel = Kernel([(F32, 1), (F32, 1)], body)
    x = numpy.arange(12, dtype=numpy.float32)
    w.launch(kernel, 4, [x[8:], x[:8:2]], device=cpu)
    cpu.synchronize()
    assert x.tolist() == [8, 1, 9, 3, 10, 5, 11, 7, 8, 9, 10, 11]
    first = w.wrap_host(x, x.ctypes.data, F32, 12, None, cpu)
    second = w.wrap_host(x[2:], x[2:].ctypes.data, F32, 10, None, cpu)
    second.fill(9.0)
    assert values(first) == x.tolist()
    assert values(first)[2:] == [9.0] * 10


def test_arrays_share_memory_with_numpy(cpu):
    x = w.zeros((2, 3), F32, cpu)
    view = x.numpy()
    view[1, 2] = 5
    assert x.read((1, -1)) == [5.0]
    del x
    gc.collect()
    assert view[1, 2] == 5


def test_memory_of_the_host_is_let_go(cpu):
    owner = numpy.arange(8, dtype=numpy.float32)
    watched = weakref.ref(owner)
    x = w.wrap_host(owner, owner.ctypes.data, F32, 8, None, cpu)
    assert values(x)[7] == 7.0
    del owner
    gc.collect()
    assert watched() is not None
    del x
    cpu.synchronize()
    w.zeros(1, F32, cpu)
    gc.collect()
    assert watched() is None


def test_wrong_arguments_are_refused(cpu):
    scale = make_scale()
    x = w.zeros(4, F32, cpu)
    for arguments, error in (
        ([x], TypeError),
        ([x, 1.0, 2.0], TypeError),
        ([w.zeros(4, I32, cpu), 1.0], TypeError),
        ([w.zeros((2, 2), F32, cpu), 1.0], TypeError),
        ([x, "one"], TypeError),
        ([x, None], TypeError),
        ([3.0, 1.0], TypeError),
    ):
        with pytest.raises(error):
            w.launch(scale, 4, arguments)
    with pytest.raises(TypeError):
        w.launch(scale, 4, [x, 1.0], nonsense=1)
    with pytest.raises(TypeError):
        w.launch(None, 4, [x, 1.0])
    with pytest.raises(ValueError):
        w.launch(scale, (1, 1, 1, 1, 1), [x, 1.0])
    with pytest.raises(w.Error) as caught:
        w.launch(scale, -1, [x, 1.0])
    assert caught.value.kind == "invalid argument"
    with pytest.raises(w.Error) as caught:
        w.Array.reshape(x, (3, 3))
    assert caught.value.file is None and "python/src" not in str(caught.value)
    uninitialised = w.Array.__new__(w.Array)
    with pytest.raises(TypeError):
        w.launch(scale, 4, [uninitialised, 1.0])


def test_integers_out_of_range_are_refused(cpu):
    def body(args):
        x, k = args
        x.store((w.thread(0, 1),), k)

    kernel = Kernel([(I32, 1), I32], body)
    x = w.zeros(1, I32, cpu)
    w.launch(kernel, 1, [x, -(2**31)])
    assert values(x) == [-(2**31)]
    for value in (2**31, -(2**31) - 1, 2**70):
        with pytest.raises(OverflowError):
            w.launch(kernel, 1, [x, value])
    with pytest.raises(TypeError):
        w.launch(kernel, 1, [x, 1.5])


def test_mistakes_in_a_body_are_exceptions(cpu):
    x = w.zeros(1, F32, cpu)

    def launch(body):
        w.launch(Kernel([(F32, 1)], body), 1, [x])

    def raises(args):
        raise ZeroDivisionError("mine")

    def other_types(args):
        w.binary(OPS["add"], (w.constant(w.FLOAT32, 1),), (w.constant(w.INT32, 1),))

    def no_such_value(args):
        w.unary(OPS["neg"], (10**6,))

    def no_such_operator(args):
        w.unary(OPS["load"], (w.constant(w.FLOAT32, 1),))

    def not_closed(args):
        w.open_if(w.constant(w.BOOL, True))

    def out_of_loop(args):
        w.break_()

    for body, error in (
        (raises, ZeroDivisionError),
        (other_types, TypeError),
        (no_such_value, IndexError),
        (no_such_operator, ValueError),
        (out_of_loop, w.Error),
        (not_closed, ValueError),
    ):
        with pytest.raises(error):
            launch(body)
    w.launch(make_scale(), 1, [x, 1.0])


def test_values_outside_of_kernels_are_refused():
    with pytest.raises(w.Error, match="outside a kernel"):
        w.constant(w.FLOAT32, 1.0)


def square_body(args):
    x, y = args
    i = w.thread(0, 1)
    v = x.load((i,))
    y.store((i,), w.binary(OPS["mul"], v, v))


def test_tapes_record_between_begin_and_end(cpu):
    square = Kernel([(F32, 1), (F32, 1)], square_body)
    x = w.from_host(numpy.array([1, 2, 3], numpy.float32), F32, 3, cpu)
    x.require_gradient()
    y = w.zeros(3, F32, cpu, requires_grad=True)
    tape = w.Tape()
    tape.begin()
    w.launch(square, 3, [x], [y])
    tape.end()
    assert tape.size == 1
    assert [a.ptr for a in tape.arrays()] == [x.ptr, y.ptr]
    tape.backward([(y, w.full(3, 1.0, F32, cpu))])
    assert values(x.grad) == [2.0, 4.0, 6.0]
    assert x.grad is x.grad
    with pytest.raises(ValueError):
        tape.end()
    tape.begin()
    tape.backward([(y, w.full(3, 1.0, F32, cpu))])
    tape.end()
    assert values(x.grad) == [4.0, 8.0, 12.0]
    tape.reset()
    assert tape.arrays() == []


def test_adjoints_are_launched_with_given_gradients(cpu):
    square = Kernel([(F32, 1), (F32, 1)], square_body)
    x = w.from_host(numpy.array([1, 2, 3], numpy.float32), F32, 3, cpu)
    y = w.zeros(3, F32, cpu)
    by_x, by_y = w.full(3, 10.0, F32, cpu), w.full(3, 1.0, F32, cpu)
    w.launch(square, 3, [x], [y], adj_inputs=[by_x], adj_outputs=[by_y], adjoint=True)
    assert values(by_x) == [12.0, 14.0, 16.0]
    assert values(by_y) == [1.0] * 3


def test_a_gradient_may_be_an_array_of_the_caller(cpu):
    square = Kernel([(F32, 1), (F32, 1)], square_body)
    x, y = w.full(2, 3.0, F32, cpu), w.zeros(2, F32, cpu)
    mine = w.full(2, 1.0, F32, cpu)
    x.grad = mine
    assert x.grad is mine
    tape = w.Tape()
    tape.begin()
    w.launch(square, 2, [x], [y])
    tape.end()
    tape.backward([(y, w.full(2, 1.0, F32, cpu))])
    assert values(mine) == [7.0, 7.0]


def test_graphs_are_captured_between_begin_and_end(cpu):
    scale = make_scale()
    x = w.full(2, 1.0, F32, cpu)
    w.launch(scale, 2, [x, 1.0])
    capture = w.Capture(cpu)
    capture.begin()
    assert w.is_capturing()
    w.launch(scale, 2, [x, 2.0])
    graph = capture.end()
    assert values(x) == [1.0, 1.0]
    graph.launch()
    graph.launch()
    assert values(x) == [4.0, 4.0]
    with pytest.raises(ValueError):
        capture.end()


def test_prints_come_to_the_sink(cpu):
    def body(args):
        w.print_items(("x = ", (F32, args[0].load((w.thread(0, 1),))), "!"))

    lines = []
    w.set_print_sink(lines.append)
    try:
        w.launch(Kernel([(F32, 1)], body), 1, [w.full(1, 1.5, F32, cpu)])
        cpu.synchronize()
    finally:
        w.set_print_sink(wp._show)
    assert lines == ["x = 1.5!"]


def test_values_have_buffers():
    v = w.Value(VEC3, (1.0, 2.0, 3.0))
    assert numpy.array(v).tolist() == [1.0, 2.0, 3.0]
    m = w.Value(w.matrix_dtype(w.FLOAT32, 2, 3), [[1, 2, 3], [4, 5, 6]])
    assert numpy.array(m).tolist() == [[1, 2, 3], [4, 5, 6]]
    v.set(1, 7)
    assert v.tolist() == [1.0, 7.0, 3.0]
    with pytest.raises(IndexError):
        v.get(3)
    with pytest.raises(TypeError):
        w.Value(VEC3, (1.0, 2.0))


def test_kernels_from_many_threads(cpu):
    import threading

    scale = make_scale()
    arrays = [w.full(1000, 1.0, F32, cpu) for _ in range(4)]
    errors = []

    def run(x):
        try:
            for _ in range(200):
                w.launch(scale, 1000, [x, 1.0])
            x.wait()
        except Exception as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=run, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_settings_of_the_package_reach_kernels(capsys):
    @wp.kernel
    def stored(x: wp.array(dtype=float), d: float):
        x[wp.tid()] = 1.0 / d

    x = wp.zeros(2, dtype=float)
    wp.config.verify_fp = wp.config.print_launches = wp.config.verify_cuda = True
    try:
        with pytest.raises(wp.Error, match="inf is stored"):  # at the launch itself
            wp.launch(stored, 2, [x, 0.0])
    finally:
        wp.config.verify_fp = wp.config.print_launches = wp.config.verify_cuda = False
    assert "stored, 2 threads" in capsys.readouterr().out
    wp.launch(stored, 2, [x, 1.0])
    assert "launch of" not in capsys.readouterr().out
