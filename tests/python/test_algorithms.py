"""Sums, scans, sorts and casts of arrays: wp.utils."""

import numpy as np
import pytest

import weft as wp


def test_sums_of_all_and_along_a_dimension(device):
    values = np.random.default_rng(1).random((3, 4, 5)).astype(np.float32)
    a = wp.array(values)
    assert np.isclose(wp.utils.array_sum(a.flatten()), values.sum(), rtol=1e-5)
    for axis in (0, 1, 2, -1):
        expected = values.sum(axis=axis, keepdims=True)
        assert np.allclose(wp.utils.array_sum(a, axis=axis).numpy(), expected, rtol=1e-5)
        expected = (values * values).sum(axis=axis, keepdims=True)
        assert np.allclose(wp.utils.array_inner(a, a, axis=axis).numpy(), expected, rtol=1e-5)
    out = wp.zeros((3, 1, 5), dtype=float)
    assert wp.utils.array_sum(a, out=out, axis=1) is None
    assert np.allclose(out.numpy()[:, 0], values.sum(axis=1), rtol=1e-5)
    with pytest.raises(RuntimeError, match="no axis 3"):
        wp.utils.array_sum(a, axis=3)


def test_sums_of_vectors(device):
    values = np.random.default_rng(2).random((100, 3)).astype(np.float32)
    a = wp.array(values, dtype=wp.vec3)
    assert np.allclose(wp.utils.array_sum(a), values.sum(axis=0), rtol=1e-5)
    assert np.isclose(wp.utils.array_inner(a, a), (values * values).sum(), rtol=1e-5)
    with pytest.raises(RuntimeError, match="Unsupported data type: int32"):
        wp.utils.array_sum(wp.zeros(3, dtype=int))


def test_scans_of_vectors_and_strided_arrays(device):
    values = np.random.default_rng(3).integers(0, 100, (50, 3)).astype(np.int32)
    a = wp.array(values, dtype=wp.vec3i)
    out = wp.zeros(50, dtype=wp.vec3i)
    wp.utils.array_scan(a, out)
    assert np.array_equal(out.numpy(), np.cumsum(values, axis=0))
    wp.utils.array_scan(a, out, False)
    assert np.array_equal(out.numpy(), np.cumsum(values, axis=0) - values)
    whole, result = wp.array(values[:, 0].copy()), wp.zeros(50, dtype=int)
    wp.utils.array_scan(whole[::2], result[::2])
    assert np.array_equal(result.numpy()[::2], np.cumsum(values[::2, 0]))
    assert not result.numpy()[1::2].any()


def test_sorts_of_segments(device):
    keys = np.array([7, 2, 8, 4, 1, 6, 5, 3], dtype=np.int32)

    def sorted_by(starts, ends):
        given = wp.array(np.concatenate([keys, 0 * keys]))
        values = wp.array(np.concatenate([np.arange(8), np.arange(8)]).astype(np.int32))
        wp.utils.segmented_sort_pairs(given, values, 8, starts, ends)
        made = given.numpy()[:8]
        assert np.array_equal(keys[values.numpy()[:8]], made)
        return made.tolist()

    def bounds(*numbers):
        return wp.array(numbers, dtype=int)

    assert sorted_by(bounds(0, 4), bounds(4, 8)) == [2, 4, 7, 8, 1, 3, 5, 6]
    assert sorted_by(bounds(0, 3, 8), None) == [2, 7, 8, 1, 3, 4, 5, 6]
    assert sorted_by(bounds(0, 5), bounds(2, 8)) == [2, 7, 8, 4, 1, 3, 5, 6]
    with pytest.raises(RuntimeError, match="segment 0 to 9"):
        sorted_by(bounds(0), bounds(9))
    with pytest.raises(RuntimeError, match=r"2\*count"):
        wp.utils.segmented_sort_pairs(wp.zeros(3, dtype=int), wp.zeros(3, dtype=int), 3, bounds(0), bounds(3))


def test_bit_ranges_of_sorts_are_checked():
    keys, values = wp.zeros(6, dtype=int), wp.zeros(6, dtype=int)
    with pytest.raises(RuntimeError, match=r"Invalid radix sort bit range \[4, 2\) for 32-bit keys"):
        wp.utils.radix_sort_pairs(keys, values, 3, begin_bit=4, end_bit=2)
    with pytest.raises(RuntimeError, match="float16"):
        wp.utils.radix_sort_pairs(keys, wp.zeros(6, dtype=wp.float16), 3)


def test_casts(device):
    out = wp.zeros((2, 2), dtype=float)
    wp.utils.array_cast(wp.array([1, 2, 3, 4], dtype=int), out)
    assert out.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    row = wp.zeros(2, dtype=float)
    wp.utils.array_cast(wp.array([[1.5, 2.5], [3.0, 4.0]], dtype=wp.vec2), row, count=1)
    assert row.numpy().tolist() == [1.5, 2.5]
    with pytest.raises(RuntimeError, match="Partial cast"):
        wp.utils.array_cast(wp.zeros((2, 2)), out, count=1)


def test_counts_of_runs_are_not_negative(device):
    a, out = wp.zeros(8, dtype=int), wp.zeros(8, dtype=int)
    with pytest.raises(RuntimeError, match="value_count must be non-negative, got -1"):
        wp.utils.runlength_encode(a, out, wp.zeros(8, dtype=int), value_count=-1)
