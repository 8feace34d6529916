"""Annotations of arrays as objects, and what values of the host say of themselves."""

import typing

import numpy as np
import pytest

import weft as wp


def test_annotations_are_written_as_programs_write_them():
    for annotation in (wp.array[wp.float32], wp.array3d[wp.vec3f], wp.array[wp.float32, typing.Any]):
        assert eval(repr(annotation), {"wp": wp, "Any": typing.Any}) == annotation
    assert repr(wp.indexedarray[float, 2]) == "wp.indexedarray[wp.float32, Literal[2]]"
    assert repr(wp.array[wp.types.vector(5, float)]) == "wp.array[vector(length=5, dtype=float32)]"
    assert typing.get_args(wp.array[float] | None) == (wp.array[float], type(None))
    assert repr(wp.ref[float]) == "wp.ref[float32]" and wp.ref[float] == wp.ref[wp.float32]


def test_wrong_annotations_are_refused():
    with pytest.raises(ValueError, match="ndim must be between"):
        wp.array[float, 5]
    with pytest.raises(TypeError, match="single Literal"):
        wp.array[float, typing.Literal[1, 2]]
    with pytest.raises(TypeError, match="single type parameter"):
        wp.array2d[float, 2]
    with pytest.raises(TypeError, match="positive integer"):
        wp.types.Vector[float, 0]
    with pytest.raises(TypeError):
        wp.ref["no type"]


def test_values_show_and_compare_themselves():
    assert repr(wp.vec2i(1, 2)) == "vec2i([1, 2])"
    assert repr(wp.vec2d(1.0, 2.0)) == "vec2d([float64(1.0), float64(2.0)])"
    assert wp.int8(1) == 1.0 and wp.int8(1) != 1.5 and wp.int8(1) < np.float16(1.5) and wp.int8(1) == wp.float32(1.0)
    with pytest.raises(OverflowError):
        wp.float32(1.0) < 2**1024  # noqa: B015
    values = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    assert wp.vec3.from_ptr(values.ctypes.data) == wp.vec3(1.0, 2.0, 3.0)
    with pytest.raises(RuntimeError, match="NULL"):
        wp.vec3.from_ptr(0)
    with pytest.raises(TypeError, match=r"expected row of length 2, got \(1, 2, 3\)"):
        wp.mat22((1, 2, 3), (3, 4, 5))
    with pytest.raises(ValueError, match="sequence of same size"):
        wp.vec3()[:1] = (1, 2)


def test_numbers_of_the_host_wrap_and_keep_their_types():
    assert wp.mul(wp.uint8(200), wp.uint8(2)) == wp.uint8(144)
    assert wp.invert(wp.uint8(0)) == wp.uint8(255)
    assert isinstance(wp.sin(np.float64(1.0)), wp.float64) and isinstance(wp.sin(1.0), float)
    assert wp.lerp(wp.vec2(0.0, 0.0), wp.vec2(1.0, 1.0), np.float64(0.5)) == wp.vec2(0.5, 0.5)


def test_slices_without_components():
    none = wp.types.vector(0, float)
    v = wp.vec4(1.0, 2.0, 3.0, 4.0)
    assert v[4:] == none() and len(v[4:]) == 0
    assert wp.mat33()[3:, :] == wp.types.matrix((0, 3), float)()

    @wp.kernel
    def k(out: wp.array(dtype=int)):
        v = wp.vec4(1.0, 2.0, 3.0, 4.0)
        if v[123:] == none():
            out[0] = 1

    out = wp.zeros(1, dtype=int)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy()[0] == 1


def test_loops_run_backwards_with_any_step(device):
    @wp.kernel
    def k(start: int, end: int, step: int, out: wp.array(dtype=int)):
        n = int(0)
        for i in reversed(range(start, end, step)):
            out[n] = i
            n += 1

    for bounds in ((-2, 8, 3), (9, -3, -2), (0, 0, 1), (5, 0, 2)):
        out = wp.full(8, 99, dtype=int)
        wp.launch(k, dim=1, inputs=[*bounds, out])
        expected = list(reversed(range(*bounds)))
        assert out.numpy().tolist() == expected + [99] * (8 - len(expected))


def test_an_array_that_a_struct_was_not_given():
    @wp.struct
    class Holder:
        a: wp.array(dtype=int)
        x: float

    @wp.func
    def extent(h: Holder):
        return h.a.shape[0]

    @wp.kernel
    def k(out: wp.array(dtype=int)):
        h = Holder()
        out[0] = extent(h) + 5

    @wp.kernel
    def wrong(out: wp.array(dtype=int)):
        h = Holder()
        out[0] = h.a[0]

    out = wp.zeros(1, dtype=int)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy()[0] == 5
    with pytest.raises(RuntimeError, match="not assigned"):
        wp.launch(wrong, dim=1, inputs=[out])
