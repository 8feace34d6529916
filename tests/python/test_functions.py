"""Functions of kernels: overloads, generics, defaults, keywords, closures, functions as arguments, static expressions."""

from typing import Any

import numpy as np
import pytest

import weft as wp


def first(kernel, *inputs, dtype=float):
    """The number that a kernel of one thread writes into its first parameter."""
    out = wp.zeros(1, dtype=dtype)
    wp.launch(kernel, dim=1, inputs=[out, *inputs])
    return out.numpy()[0]


@wp.func
def area(side: float):
    return side * side


@wp.func
def area(box: wp.vec2):  # noqa: F811
    return box[0] * box[1]


def test_overloads_are_chosen_by_type(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = area(3.0) + area(wp.vec2(2.0, 5.0))

    assert first(k) == 19.0


def test_generic_functions(device):
    @wp.func
    def twice(x: Any):
        return x + x

    @wp.func
    def scaled(x: Any, s: float):
        return twice(x) * s

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        v = scaled(wp.vec3(1.0, 2.0, 3.0), 2.0)
        out[0] = v[2] + scaled(1.0, 0.5) + float(twice(4))

    assert first(k) == 12.0 + 1.0 + 8.0


def test_defaults_and_keywords(device):
    @wp.func
    def line(x: float, slope: float = 2.0, shift: float = 1.0):
        return slope * x + shift

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = line(1.0) + 10.0 * line(1.0, shift=0.0) + 100.0 * line(slope=3.0, x=2.0)

    assert first(k) == 3.0 + 20.0 + 700.0


def test_several_results(device):
    @wp.func
    def divide(a: int, b: int) -> tuple[int, int]:
        return a // b, a % b

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        q, r = divide(17, 5)
        both = divide(9, 4)
        out[0] = float(q * 1000 + r * 100 + both[0] * 10 + both[1])

    assert first(k) == 3221.0


def test_functions_that_return_nothing_return_from_everywhere(device):
    @wp.func
    def fill(out: wp.array(dtype=float), n: int):
        if n < 1:
            return
        for j in range(n):
            if j == 3:
                out[j] = 9.0
                return
            out[j] = 1.0
        out[n] = 5.0

    @wp.kernel
    def k(out: wp.array2d(dtype=float)):
        i = wp.tid()
        fill(out[i], i)

    out = wp.zeros((6, 6), dtype=float)
    wp.launch(k, dim=6, inputs=[out])
    rows = [[0.0] * 6, [1.0, 5.0], [1.0, 1.0, 5.0], [1.0, 1.0, 1.0, 5.0], [1.0, 1.0, 1.0, 9.0], [1.0, 1.0, 1.0, 9.0]]
    assert out.numpy().tolist() == [row + [0.0] * (6 - len(row)) for row in rows]


def test_closures_have_the_values_of_their_making(device):
    def make(factor, function):
        @wp.kernel
        def k(out: wp.array(dtype=float)):
            out[0] = function(factor)

        return k

    @wp.func
    def plus(x: float):
        return x + 1.0

    @wp.func
    def minus(x: float):
        return x - 1.0

    assert [first(make(f, g)) for f, g in ((2.0, plus), (3.0, minus), (4.0, plus))] == [3.0, 2.0, 5.0]


def test_functions_as_arguments(device):
    @wp.func
    def square(x: float):
        return x * x

    @wp.func
    def cube(x: float):
        return x * x * x

    @wp.func
    def apply(f: Any, x: float):
        return f(x)

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = apply(square, 3.0) + apply(cube, 2.0)

    assert first(k) == 17.0


def test_static_expressions_and_constants(device):
    table = (1.0, 2.0, 4.0)
    n = wp.constant(3)

    class Numbers:
        base = wp.constant(100.0)

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        s = wp.static(sum(table)) + Numbers.base
        for j in range(n):
            s += wp.static(table[j])
        if wp.static(len(table) > 5):
            s = undefined_function(s)  # noqa: F821
        out[0] = s

    assert first(k) == 114.0


def test_generic_kernels_and_overloads(device):
    @wp.kernel
    def scale(x: wp.array(dtype=Any), s: Any):
        i = wp.tid()
        x[i] = s * x[i]

    for dtype in (wp.float32, wp.float64, wp.int32):
        x = wp.array(np.arange(4), dtype=dtype)
        wp.launch(scale, dim=4, inputs=[x, dtype(3)])
        assert x.numpy().tolist() == [0, 3, 6, 9]
    fixed = wp.overload(scale, [wp.array(dtype=wp.vec3), wp.float32])
    v = wp.ones(2, dtype=wp.vec3)
    wp.launch(fixed, dim=2, inputs=[v, 2.0])
    assert v.numpy().tolist() == [[2.0] * 3] * 2
    with pytest.raises(RuntimeError, match="cannot be of type"):
        wp.overload(scale, [wp.vec3, wp.float32])


def test_annotations_as_strings(device):
    @wp.kernel
    def k(out: "wp.array(dtype=float)", s: "float"):
        out[0] = s

    assert first(k, 2.5) == 2.5


def test_a_function_that_returns_an_array(device):
    @wp.func
    def row(a: wp.array2d(dtype=float), i: int):
        return a[i]

    @wp.kernel
    def k(out: wp.array(dtype=float), a: wp.array2d(dtype=float)):
        r = row(a, 1)
        out[0] = r[0] + r[1]

    assert first(k, wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=float)) == 7.0


def test_functions_run_on_the_host():
    assert area.overloads[0].function(3.0) == 9.0
    assert area(3.0) == 9.0
    assert area(wp.vec2(2.0, 4.0)) == 8.0
    with pytest.raises(RuntimeError, match="no overload found"):
        area("x")


def test_recursion_is_refused():
    @wp.func
    def down(n: int) -> int:
        return down(n - 1)

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = float(down(3))

    with pytest.raises(Exception, match="down"):
        first(k)


def test_map(device):
    a = wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=float)
    assert wp.map(lambda x, y: x * y + 1.0, a, a).numpy().tolist() == [[2.0, 5.0], [10.0, 17.0]]
    assert np.allclose(wp.map(wp.sqrt, a).numpy(), np.sqrt(a.numpy()))
    assert wp.map(area, a).numpy().tolist() == [[1.0, 4.0], [9.0, 16.0]]

    @wp.func
    def parts(x: float, s: float):
        return wp.vec2(x, s), x < s

    vectors, flags = wp.map(parts, a, 2.5)
    assert vectors.dtype is wp.vec2 and vectors.numpy()[1, 0].tolist() == [3.0, 2.5]
    assert flags.numpy().tolist() == [[True, True], [False, False]]
    with pytest.raises(ValueError, match="not broadcastable"):
        wp.map(lambda x, y: x + y, a, wp.zeros(3, dtype=float))


def test_functions_return_arrays_that_kernels_make(device):
    @wp.func
    def table(step: int) -> wp.fixedarray(shape=(2, 3), dtype=int):
        made = wp.zeros(shape=(2, 3), dtype=int)
        for r in range(2):
            for c in range(3):
                made[r, c] = (3 * r + c) * step
        return made

    @wp.func
    def last(made: wp.fixedarray(shape=(2, 3), dtype=int)):
        return made[1, 2]

    @wp.kernel
    def k(out: wp.array(dtype=int)):
        i = wp.tid()
        out[i] = last(table(i))

    out = wp.zeros(3, dtype=int)
    wp.launch(k, dim=3, inputs=[out])
    assert out.numpy().tolist() == [0, 5, 10]
