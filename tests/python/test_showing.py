"""Arrays, kernels, functions, structs and devices show themselves, in text and in notebooks."""

from typing import Any

import numpy as np
import pytest

import weft as wp


@wp.struct
class Ball:
    """A struct with a number, a vector and an array."""

    mass: float
    place: wp.vec3
    trail: wp.array(dtype=wp.vec3)


@wp.func
def scaled(x: float, factor: float = 2.0):
    return x * factor


@wp.kernel
def stretch(x: wp.array(dtype=float), y: wp.array2d(dtype=wp.vec3), factor: float):
    i = wp.tid()
    x[i] = scaled(x[i], factor)  # 1 < 2


def test_an_array_shows_its_elements_and_what_it_is(device):
    a = wp.array([1.0, 2.5], dtype=float)
    assert repr(a) == f"array([1. , 2.5], shape=(2,), dtype=float32, device={device})"
    shown = a._repr_html_()
    assert "<pre>[1. , 2.5]</pre>" in shown and f"2 of float32 on {device}, 8 bytes" in shown
    assert "with a gradient" in wp.zeros(3, dtype=float, requires_grad=True)._repr_html_()


@pytest.mark.parametrize("shape", [(5000,), (40, 50), (2, 900), (900, 3, 2), (9, 8, 10, 7)])
def test_a_large_array_shows_its_ends_as_numpy_does(device, shape):
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    assert np.array2string(values, separator=", ") in wp.array(values).__repr__().replace("\n      ", "\n")


def test_only_the_elements_that_are_shown_are_read(cpu, monkeypatch):
    read = []
    numpy = wp.array.numpy
    monkeypatch.setattr(wp.array, "numpy", lambda self: read.append(self.size) or numpy(self))
    repr(wp.zeros((1000, 1000), dtype=float))
    assert sum(read) < 100


def test_views_vectors_and_structs_in_arrays_are_shown(device):
    a = wp.array(np.arange(12).reshape(4, 3), dtype=wp.vec3)
    assert "[[0., 1., 2.],\n" in repr(a[::2]) and "shape=(2,), dtype=vec3f" in repr(a[::2])
    chosen = a[wp.array([3, 0], dtype=int)]
    assert repr(chosen).startswith("indexedarray([[ 9., 10., 11.],\n") and "2 of vec3f" in chosen._repr_html_()
    empty = wp.zeros((0, 3), dtype=float)
    assert "shape=(0, 3)" in repr(empty) and "0 × 3" in empty._repr_html_()


def test_a_kernel_shows_its_signature_and_its_source():
    text = "Kernel stretch(x: array[float32], y: array2d[vec3f], factor: float32)"
    assert repr(stretch) == f"<{text}>"
    shown = stretch._repr_html_()
    assert text in shown and "test_showing.py:" in shown and "scaled(x[i], factor)  # 1 &lt; 2" in shown
    assert repr(scaled) == "<Function scaled(x: float32, factor: float32)>"
    assert "return x * factor" in scaled._repr_html_()


def test_a_kernel_shows_its_ir_when_it_is_asked():
    assert 'kernel "stretch"' in stretch.ir() and 'func0 "scaled"' in stretch.ir()

    @wp.kernel
    def generic(x: wp.array(dtype=Any)):
        x[0] = x[0]

    with pytest.raises(RuntimeError, match="overloads"):
        generic.ir()
    assert wp.overload(generic, [wp.array(dtype=float)]).ir()


def test_a_kernel_with_wrong_annotations_still_shows_its_name():
    @wp.kernel
    def wrong(x):
        pass

    assert "wrong" in repr(wrong) and "def wrong(x):" in wrong._repr_html_()


def test_a_struct_shows_its_fields_and_what_its_arrays_are(device):
    ball = Ball(mass=2.0, place=wp.vec3(1.0, 2.0, 3.0))
    assert repr(ball) == "Ball(mass=2.0, place=vec3f([1.0, 2.0, 3.0]), trail=None)"
    ball.trail = wp.zeros(7, dtype=wp.vec3)
    assert f"trail=array(shape=(7,), dtype=vec3f, device={device})" in repr(ball)
    shown = ball._repr_html_()
    assert "<b>Ball</b>" in shown and "mass: float32" in shown and "shape=(7,)" in shown


def test_a_device_shows_its_name_and_kind(device):
    shown = device._repr_html_()
    assert f"<b>{device}</b>" in shown and "processor" in shown
