"""Vectors, matrices and scalars on the host compute as they do in kernels."""

import copy
import pickle

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
