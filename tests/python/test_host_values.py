"""Vectors, matrices and scalars on the host compute as they do in kernels."""

import copy
import pickle
import typing

import numpy as np
import pytest

import weft as wp


def test_vectors():
    v = wp.vec3(1.0, 2.0, 3.0)
    assert v.x == 1.0 and v[-1] == 3.0 and list(v[0:2]) == [1.0, 2.0] and len(v) == 3
    v.y = 5.0
    v[0] = 4
    assert list(v) == [4.0, 5.0, 3.0]
    assert v + wp.vec3(1.0) == wp.vec3(5.0, 6.0, 4.0)
    assert v * 2.0 == 2.0 * v == wp.vec3(8.0, 10.0, 6.0)
    assert -v == wp.vec3(-4.0, -5.0, -3.0)
    assert v / 2.0 == wp.vec3(2.0, 2.5, 1.5)
    assert np.array_equal(np.array(v), [4.0, 5.0, 3.0])
    assert pickle.loads(pickle.dumps(v)) == copy.deepcopy(v) == v
    with pytest.raises(ValueError):
        wp.vec3(1.0, 2.0)
    with pytest.raises(TypeError):
        v + wp.vec2(1.0, 2.0)


def test_products_use_the_language():
    m = wp.mat22(1.0, 2.0, 3.0, 4.0)
    assert m * wp.vec2(1.0, 1.0) == wp.vec2(3.0, 7.0)
    assert m @ m == wp.mat22(7.0, 10.0, 15.0, 22.0)
    q = wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), wp.radians(90.0))
    assert np.allclose(wp.quat_rotate(q, wp.vec3(1.0, 0.0, 0.0)), [0.0, 1.0, 0.0], atol=1e-6)
    assert np.allclose(list(q * wp.quat_inverse(q)), [0.0, 0.0, 0.0, 1.0], atol=1e-6)
    assert wp.dot(wp.vec3(1.0, 2.0, 3.0), wp.vec3(1.0, 1.0, 1.0)) == 6.0
    assert np.isclose(wp.length(wp.vec3(3.0, 4.0, 0.0)), 5.0)
    with pytest.raises(RuntimeError, match="Couldn't find a function 'mul' compatible with the arguments 'mat22f, mat22d'"):
        m * wp.mat22d(1.0, 0.0, 0.0, 1.0)
    with pytest.raises(RuntimeError, match="only be called from a Warp kernel"):
        wp.tid()


def test_matrices():
    m = wp.mat33(*range(9))
    assert m[1, 2] == 5.0 and list(m[2]) == [6.0, 7.0, 8.0] and list(m[:, 0]) == [0.0, 3.0, 6.0]
    m[0] = wp.vec3(9.0, 9.0, 9.0)
    m[1, 1] = -1.0
    assert np.array_equal(np.array(m).reshape(3, 3)[0], [9.0, 9.0, 9.0])
    assert wp.matrix_from_cols(wp.vec2(1.0, 2.0), wp.vec2(3.0, 4.0)) == wp.mat22(1.0, 3.0, 2.0, 4.0)


def test_transforms():
    t = wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat_identity())
    assert t.p == wp.vec3(1.0, 2.0, 3.0) and t.q == wp.quat(0.0, 0.0, 0.0, 1.0)
    t.p = wp.vec3(0.0, 0.0, 1.0)
    assert wp.transform_point(t, wp.vec3(1.0, 0.0, 0.0)) == wp.vec3(1.0, 0.0, 1.0)


def test_scalars_have_their_type():
    assert wp.int8(200).value == -56 and wp.uint8(-1).value == 255
    assert float(wp.float32(1.5)) == 1.5 and wp.float32(1.5) + 1 == 2.5
    assert type(wp.float64(1.0) * 2) is wp.float64
    with pytest.raises(TypeError):
        wp.float64(1.0) + wp.float32(1.0)


def test_types_are_one_object_each():
    assert wp.types.vector(3, float) is wp.vec3 is wp.vec3f
    assert wp.types.matrix((6, 6), wp.float64) is wp.spatial_matrixd
    assert wp.types.type_size_in_bytes(wp.transformd) == 56
    assert wp.types.types_equal(int, wp.int32)
    assert wp.types.is_vector(wp.vec2()) and not wp.types.is_matrix(wp.vec2())


def test_functions_change_their_arguments_on_the_host():
    t = wp.transform_identity()
    assert wp.transform_set_translation(t, wp.vec3(1.0, 2.0, 3.0)) is None
    wp.transform_set_rotation(t, wp.quat(0.0, 1.0, 0.0, 0.0))
    assert t.tolist() == [1.0, 2.0, 3.0, 0.0, 1.0, 0.0, 0.0]
    m = wp.mat33(3.0, 1.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0)
    u, s, v = wp.mat33(), wp.vec3(), wp.mat33()
    wp.svd3(m, u, s, v)
    u, v = np.array(u), np.array(v)
    assert np.allclose(u @ np.diag(list(s)) @ v.T, np.array(m), atol=1e-5)
    assert np.allclose(list(s), np.linalg.svd(np.array(m))[1], atol=1e-5)


def test_bare_integers_are_of_32_bits_in_functions():
    assert wp.mul(-1234567890, -1234567890) == np.int32(-1234567890) * np.int64(-1234567890) % 2**32
    assert wp.add(2**31 - 1, 1) == -(2**31) and wp.mul(wp.int64(2**31), 2) == wp.int64(2**32)


def test_transforms_without_arguments_do_nothing_and_wrong_parts_are_refused():
    assert wp.transform().tolist() == [0.0] * 6 + [1.0]
    assert wp.transform_expand((1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0)) == wp.transform((1.0, 2.0, 3.0), (4.0, 3.0, 2.0, 1.0))
    for args, keywords, message in (
        ((), {"pos": 1.0}, "^got an unexpected keyword argument 'pos'$"),
        ((*range(7),), {"q": (1.0,) * 4}, "^multiple values for argument 'q'$"),
        ((1.5, 2.5), {}, "Invalid argument 'p' in transformation constructor: expected a sequence, got float"),
        (((1.0, 2.0, 3.0),), {"q": 1.0}, "Invalid argument 'q'"),
        ((object(),), {}, "expected a scalar value, got object"),
    ):
        with pytest.raises(TypeError, match=message):
            wp.transform(*args, **keywords)


def test_a_row_of_a_matrix_takes_a_matrix_of_one_row():
    m = wp.mat33(*range(9))
    m[1:2] = wp.types.matrix((1, 3), float)(7.0, 8.0, 9.0)
    assert m.tolist() == [0.0, 1.0, 2.0, 7.0, 8.0, 9.0, 6.0, 7.0, 8.0]


def test_values_without_components_are_equal():
    m, none = wp.mat44(*range(16)), wp.types.matrix((0, 0), float)()
    assert m[4:] == none and m[:, :0] == none and not m[4:] == m[:1]
    assert m[4:] != wp.types.matrix((0, 0), wp.float64)() and hash(m[4:]) == hash(none)


def test_questions_about_values_and_types():
    assert wp.types.is_int(3) and not wp.types.is_int(int) and wp.types.type_is_int(int)
    assert wp.types.is_vector(wp.vec3()) and not wp.types.is_vector(wp.vec3) and wp.types.type_is_vector(wp.vec3)
    assert wp.types.is_array(wp.array(dtype=int)) and not wp.types.is_array(wp.array)
    assert wp.types.type_is_array(wp.fixedarray) and not wp.types.type_is_array(wp.array(dtype=int))


@wp.struct
class Sample:
    count: wp.uint8
    weight: float


@wp.struct
class Chosen:
    cells: wp.indexedarray(dtype=float)


def test_fields_keep_scalars_of_the_package(device):
    sample = Sample()
    sample.count, sample.weight = wp.uint8(200), 0.5
    assert isinstance(sample.count, wp.uint8) and sample.weight == 0.5
    assert Chosen.numpy_dtype().names == ("cells",)

    @wp.kernel
    def k(sample: Sample, out: wp.array(dtype=float)):
        out[0] = float(sample.count) + sample.weight

    out = wp.zeros(1, dtype=float)
    wp.launch(k, dim=1, inputs=[sample, out])
    assert out.numpy()[0] == 200.5
    sample.count = 7
    assert type(sample.count) is int


def test_structs_and_their_fields_are_checked():
    for value, message in (
        ([1.0], "'cells' expects a Warp indexed array, got list"),
        (wp.indexedarray1d(wp.zeros(2, dtype=int), [None]), "'cells' expects dtype float32, got int32"),
        (wp.indexedarray2d(wp.zeros((2, 2), dtype=float), [None, None]), r"1 dimension\(s\), got 2 dimension\(s\)"),
    ):
        with pytest.raises(TypeError, match=message):
            Chosen().cells = value
    with pytest.raises(RuntimeError, match="must be defined as base classes"):

        @wp.struct
        class Child(Sample):
            more: int


def test_decorators_have_overloads_for_checkers():
    shown = [str(o.__annotations__["return"]) for o in typing.get_overloads(wp.func)]
    assert len(shown) == 2 and all("Callable" in s for s in shown)


def test_a_timer_shows_what_the_profiler_finds(capsys):
    with wp.ScopedTimer("work", detailed=True):
        sorted(range(10))
    out = capsys.readouterr().out
    assert "function calls in" in out and out.rstrip().endswith("ms")
