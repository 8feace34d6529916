"""Launches with wrong arguments are refused with the kernel's and the argument's name, those with wrong dimensions and
devices with a sentence; nothing is converted silently where it would change.
"""

from typing import Any

import numpy as np
import pytest

import weft as wp


@wp.struct
class Body:
    pos: wp.vec3
    mass: float


@wp.kernel
def k(a: wp.array(dtype=float), s: float, n: int, v: wp.vec3, b: Body, u: wp.uint8):
    i = wp.tid()
    a[i] = s + float(n) + v[0] + b.mass + float(u)


@wp.kernel
def ones(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] = 1.0


@wp.kernel
def generic(a: wp.array(dtype=Any), s: Any):
    i = wp.tid()
    a[i] = s


def good():
    """Arguments that the kernel takes."""
    return [wp.zeros(4, dtype=float), 1.0, 2, wp.vec3(), Body(), 3]


ARRAY = r"kernel 'k', argument 'a' expects an array of type array\(ndim=1, dtype=float32\), but passed value has "

ARGUMENTS = [
    (0, lambda: [1.0, 2.0], RuntimeError, ARRAY + "type list"),
    (0, lambda: 1.0, RuntimeError, ARRAY + "type float"),
    (0, lambda: wp.zeros(4, dtype=int), RuntimeError, ARRAY + "dtype=int32"),
    (0, lambda: wp.zeros((2, 2), dtype=float), RuntimeError, ARRAY + "2 dimension"),
    (0, lambda: np.zeros(4), RuntimeError, ARRAY + "dtype=float64"),
    (0, lambda: np.zeros((2, 2), np.float32), RuntimeError, ARRAY + "shape"),
    (1, lambda: "x", RuntimeError, "kernel 'k', argument 's' expects float32, but passed value has type str"),
    (1, lambda: None, RuntimeError, "argument 's' expects float32"),
    (1, lambda: wp.zeros(1, dtype=float), RuntimeError, "argument 's' expects float32"),
    (1, lambda: 1j, RuntimeError, "argument 's' expects float32"),
    (2, lambda: 1.5, RuntimeError, "argument 'n' expects int32, but passed value has type float"),
    (2, lambda: 2.0, RuntimeError, "argument 'n' expects int32, but passed value has type float"),
    (2, lambda: np.float32(2.5), RuntimeError, "argument 'n' expects int32, but passed value has type float32"),
    (2, lambda: float("nan"), RuntimeError, "argument 'n' expects int32"),
    (2, lambda: 2**40, OverflowError, "argument 'n': 1099511627776 is out of the range of int32"),
    (2, lambda: 2**70, OverflowError, "argument 'n': .* is out of the range of int32"),
    (5, lambda: 256, OverflowError, "argument 'u': 256 is out of the range of uint8"),
    (5, lambda: -1, OverflowError, "argument 'u': -1 is out of the range of uint8"),
    (3, lambda: 1.0, RuntimeError, "argument 'v' expects vec3f"),
    (3, lambda: (1.0, 2.0), RuntimeError, "argument 'v' expects vec3f, but passed value has 2 components"),
    (3, lambda: ("a", "b", "c"), TypeError, "argument 'v' expects vec3f: 'a' is no number"),
    (3, lambda: wp.vec2(), RuntimeError, "argument 'v' expects vec3f"),
    (4, lambda: 1.0, RuntimeError, "argument 'b' expects a Body"),
    (4, lambda: {"mass": 1.0}, RuntimeError, "argument 'b' expects a Body, but passed value has type dict"),
    (4, lambda: Body, RuntimeError, "argument 'b' expects a Body"),
]


@pytest.mark.parametrize("position,make,kind,message", ARGUMENTS, ids=[f"{k}" for k in range(len(ARGUMENTS))])
def test_wrong_arguments_are_refused_by_name(position, make, kind, message):
    inputs = good()
    wp.launch(k, dim=4, inputs=inputs)
    before = inputs[0].numpy().tolist()
    inputs[position] = make()
    array = inputs[0]
    with pytest.raises(kind, match=message):
        wp.launch(k, dim=4, inputs=inputs)
    if position:
        assert array.numpy().tolist() == before


@pytest.mark.parametrize(
    "inputs,message",
    [
        (lambda: good()[:5], "takes 6 argument.*5 are given"),
        (lambda: good() + [1], "takes 6 argument.*7 are given"),
        (lambda: wp.zeros(6, dtype=float), "given as a list, as in inputs=.array., not as a array"),
        (lambda: {"a": 1.0}, "given as a list, .* not as a dict"),
        (lambda: "abcdef", "given as a list, .* not as a str"),
        (lambda: 5, "given as a list, .* not as a int"),
    ],
)
def test_arguments_are_a_list_of_as_many_as_there_are_parameters(inputs, message):
    with pytest.raises(TypeError, match=message):
        wp.launch(k, dim=4, inputs=inputs())


@pytest.mark.parametrize(
    "dim,kind,message",
    [
        (-1, RuntimeError, "dimension 0 of the launch is negative"),
        ((2, -3), RuntimeError, "dimension 1 of the launch is negative"),
        (2.5, TypeError, "dim=2.5: the dimensions of a launch are 1 to 4 whole numbers"),
        ("4", TypeError, "dim='4'"),
        (None, TypeError, "dim=None"),
        ([2, "a"], TypeError, "dim=.2, 'a'."),
        ((), ValueError, "1 to 4 dimensions"),
        ((1, 1, 1, 1, 1), ValueError, "more than four dimensions"),
        (2**63, ValueError, "fewer than 2.63 threads"),
        (2**31, RuntimeError, "counts to 2.31 - 1"),
        ((2, 2), RuntimeError, "asks tid.. for 1 coordinate.* launched over 2 dimension"),
    ],
)
def test_wrong_dimensions_are_refused(dim, kind, message):
    with pytest.raises(kind, match=message):
        wp.launch(ones, dim=dim, inputs=[wp.zeros(4, dtype=float)])


def test_wrong_devices_and_what_is_no_kernel_are_refused():
    a = wp.zeros(4, dtype=float)
    for wrong, kind, message in (
        (dict(device="cud"), RuntimeError, 'no device "cud"'),
        (dict(device=5), TypeError, "no device"),
        (dict(stream="x"), TypeError, "no stream"),
        (dict(foo=3), TypeError, "no parameter 'foo'"),
    ):
        with pytest.raises(kind, match=message):
            wp.launch(ones, dim=4, inputs=[a], **wrong)
    for wrong in (len, "ones", None, wp.sin, Body):
        with pytest.raises(TypeError, match="takes a kernel"):
            wp.launch(wrong, dim=4, inputs=[a])


def test_arguments_of_generic_kernels_are_refused_by_name():
    a = wp.zeros(4, dtype=float)
    for inputs, message in (
        ([a], "kernel 'generic', passed 1 arguments but kernel requires 2"),
        ([a, "x"], "argument 's' for kernel generic: the parameter is Any, got str"),
        ([[1.0], 1.0], "argument 'a' for kernel generic: the parameter is array.Any., got list"),
        ([wp.zeros((2, 2), dtype=float), 1.0], "argument 'a' for kernel generic: .* got array2d.float32."),
    ):
        with pytest.raises(RuntimeError, match=message):
            wp.launch(generic, dim=4, inputs=inputs)
