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


def test_reductions_of_the_library_give_numbers_and_fill_arrays(device):
    values = np.random.default_rng(11).normal(size=(40, 50)).astype(np.float32)
    a = wp.array(values)
    np.testing.assert_allclose(wp.algorithms.reduce_sum(a), values.sum(dtype=np.float64), rtol=1e-4)
    exact = wp.algorithms.reduce_sum(a, dtype=wp.float64)
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, values.sum(dtype=np.float64), rtol=1e-12)
    assert wp.algorithms.reduce_min(a) == values.min() and wp.algorithms.reduce_max(a) == values.max()
    assert wp.algorithms.reduce_max(a.transpose()) == values.max()
    squares = np.sum(values.astype(np.float64) ** 2)
    np.testing.assert_allclose(wp.algorithms.inner_product(a, a, dtype=wp.float64), squares, rtol=1e-12)
    out = wp.zeros(1, dtype=int)
    assert wp.algorithms.reduce_sum(wp.array(np.arange(10), dtype=int), out) is None
    assert out.numpy()[0] == 45
    vectors = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(wp.algorithms.reduce_sum(wp.array(vectors, dtype=wp.vec3)), vectors.sum(axis=0))
    with pytest.raises(TypeError, match="numbers of 32 and 64 bits"):
        wp.algorithms.reduce_min(wp.zeros(3, dtype=wp.int16))


def test_gradients_pass_through_sums_and_scans(device):
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    sums, total = wp.zeros(3, requires_grad=True), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.algorithms.inclusive_scan(x, sums)
        wp.algorithms.inner_product(sums, sums, total)
    tape.backward(total)
    assert total.numpy()[0] == 1 + 9 + 36
    np.testing.assert_array_equal(x.grad.numpy(), [2 * (1 + 3 + 6), 2 * (3 + 6), 2 * 6])


@pytest.mark.parametrize("dtype", [wp.int32, wp.uint32, wp.int64, wp.uint64, wp.float32, wp.float64])
def test_scans_and_sorts_take_all_numbers_of_32_and_64_bits(device, dtype):
    random = np.random.default_rng(12)
    values = random.integers(0, 1000, 500)
    a, out = wp.array(values, dtype=dtype), wp.zeros(500, dtype=dtype)
    wp.algorithms.inclusive_scan(a, out)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(values))
    wp.algorithms.exclusive_scan(a, a)
    np.testing.assert_array_equal(a.numpy(), np.cumsum(values) - values)
    keys, order = wp.array(values, dtype=dtype), wp.array(np.arange(500), dtype=int)
    wp.algorithms.radix_sort_pairs(keys, order)
    np.testing.assert_array_equal(order.numpy(), np.argsort(values, kind="stable"))
    keys = wp.array(values, dtype=dtype)
    wp.algorithms.radix_sort(keys)
    np.testing.assert_array_equal(keys.numpy(), np.sort(values))
    offsets = np.array([3, 100, 100, 101, 480])
    keys, order = wp.array(values, dtype=dtype), wp.array(np.arange(500), dtype=int)
    alone = wp.array(values, dtype=dtype)
    wp.algorithms.segmented_sort(keys, wp.array(offsets, dtype=int), order)
    wp.algorithms.segmented_sort(alone, wp.array(offsets, dtype=int))
    expected = np.arange(500)
    for low, high in zip(offsets, offsets[1:]):
        expected[low:high] = low + np.argsort(values[low:high], kind="stable")
    np.testing.assert_array_equal(order.numpy(), expected)
    np.testing.assert_array_equal(keys.numpy(), values[expected])
    np.testing.assert_array_equal(alone.numpy(), values[expected])


def test_histograms_count_as_numpy_does(device):
    random = np.random.default_rng(13)
    values = random.uniform(-1, 2, 1000).astype(np.float32)
    values[:3] = [0.0, 1.0, np.nan]
    counts = wp.full(16, value=9, dtype=int)
    wp.algorithms.histogram(wp.array(values), counts, 0.0, 1.0)
    np.testing.assert_array_equal(counts.numpy(), np.histogram(values[np.isfinite(values)], 16, (0, 1))[0])
    numbers = random.integers(-3, 12, 1000)
    counts = wp.zeros(10, dtype=int)
    wp.algorithms.histogram(wp.array(numbers, dtype=wp.int64), counts)
    np.testing.assert_array_equal(counts.numpy(), [np.sum(numbers == k) for k in range(10)])
    with pytest.raises(ValueError, match="float32 takes two bounds"):
        wp.algorithms.histogram(wp.array(values), counts)
    with pytest.raises(ValueError, match="int32 takes no bounds"):
        wp.algorithms.histogram(wp.zeros(3, dtype=int), counts, 0, 1)
    with pytest.raises(wp.Error):
        wp.algorithms.histogram(wp.array(values), counts, 1.0, 0.0)


@pytest.mark.parametrize("kind", [wp.bool, wp.int32, wp.uint32])
def test_compaction_keeps_the_flagged_elements(device, kind):
    random = np.random.default_rng(14)
    values, flags = random.normal(size=(300, 3)).astype(np.float32), random.integers(0, 2, 300)
    out, marks = wp.full(300, value=wp.vec3(7.0), dtype=wp.vec3), wp.array(flags, dtype=kind)
    count = wp.algorithms.compact(wp.array(values, dtype=wp.vec3), marks, out)
    assert count == flags.sum()
    np.testing.assert_array_equal(out.numpy()[:count], values[flags != 0])
    np.testing.assert_array_equal(out.numpy()[count:], 7.0)
    indices, number = wp.zeros(300, dtype=int), wp.zeros(1, dtype=int)
    assert wp.algorithms.compact_indices(marks, indices, number) is None
    assert number.numpy()[0] == count
    np.testing.assert_array_equal(indices.numpy()[:count], np.flatnonzero(flags))


def test_what_cannot_be_compacted_is_refused(device):
    flags = wp.ones(3, dtype=int)
    with pytest.raises(TypeError, match=r"multiple of 4 bytes.*compact_indices\(\)"):
        wp.algorithms.compact(wp.zeros(3, dtype=wp.int16), flags, wp.zeros(3, dtype=wp.int16))
    with pytest.raises(TypeError, match="flags of a compaction are bools"):
        wp.algorithms.compact_indices(wp.zeros(3), wp.zeros(3, dtype=int))
    with pytest.raises(TypeError, match="arrays of int32"):
        wp.algorithms.compact_indices(flags, wp.zeros(3, dtype=wp.int64))
    with pytest.raises(wp.Error):
        wp.algorithms.compact(wp.zeros(3), flags, wp.zeros(2))


def test_runs_are_encoded(device):
    values = np.repeat([5, 3, 3, 9, 5], [4, 1, 2, 1, 3])
    run_values, lengths = wp.zeros(11, dtype=wp.float64), wp.zeros(11, dtype=int)
    count = wp.algorithms.run_length_encode(wp.array(values, dtype=wp.float64), run_values, lengths)
    assert count == 4
    np.testing.assert_array_equal(run_values.numpy()[:4], [5, 3, 9, 5])
    np.testing.assert_array_equal(lengths.numpy()[:4], [4, 3, 1, 3])


def test_an_order_in_space_brings_neighbours_together(device):
    points = np.random.default_rng(15).uniform(0, 1, (2000, 3)).astype(np.float32)
    points[7, 1] = np.nan
    order = wp.algorithms.spatial_order(wp.array(points, dtype=wp.vec3)).numpy()
    np.testing.assert_array_equal(np.sort(order), np.arange(2000))
    assert order[-1] == 7
    steps = np.linalg.norm(np.diff(points[order[:-1]], axis=0), axis=1)
    assert steps.mean() < 0.3 * np.linalg.norm(np.diff(np.delete(points, 7, axis=0), axis=0), axis=1).mean()
    out = wp.zeros(2000, dtype=int)
    ways = wp.array(points - 0.5, dtype=wp.vec3)
    assert wp.algorithms.spatial_order(wp.array(points, dtype=wp.vec3), ways, out) is out
    np.testing.assert_array_equal(np.sort(out.numpy()), np.arange(2000))
