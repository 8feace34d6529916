"""Algorithms on whole arrays, under the library's names: reductions, scans, sorts, histograms, compaction, runs.

They work on numbers of 32 and 64 bits in contiguous arrays of one dimension, if nothing else is said, on the arrays' device,
and wait for nothing but a result that they return. `weft.utils` has those of Warp's names.
Errors of all: TypeError for other elements and dimensions; Error for lengths that do not fit, arrays on two devices, arrays
that share memory and views with gaps.
"""

from . import _weft
from .runtime.creation import empty
from .types.scalars import FLOATS, int32


def reduced(function, arrays, out, dtype):
    """Calls a reduction with the array for its result, or with one of its own, whose element it returns."""
    if out is not None:
        function(*arrays, out)
        return None
    total = empty(1, dtype=dtype, device=arrays[0].device)
    function(*arrays, total)
    return total.numpy()[0]


def reduce_sum(values, out=None, dtype=None):
    r"""The sum of all elements, numbers, vectors or matrices: the same bits in each run and on each device. Integers wrap.

    \param values  of up to three dimensions, with gaps too
    \param out  an array of one element for the sum, through which gradients pass; nothing is returned then
    \param dtype  of the sum that is returned: float64 (or vectors of it) for values of float32
    """
    return reduced(_weft.array_sum, (values,), out, dtype or values.dtype)


def reduce_min(values, out=None):
    """The least element, as a number or into an array of one. A NaN results only if all elements are NaN."""
    return reduced(_weft.array_min, (values,), out, values.dtype)


def reduce_max(values, out=None):
    """The greatest element, as a number or into an array of one. A NaN results only if all elements are NaN."""
    return reduced(_weft.array_max, (values,), out, values.dtype)


def inner_product(a, b, out=None, dtype=None):
    """The sum of a[i] * b[i], see reduce_sum(). In float64 the products of float32 are exact."""
    return reduced(_weft.array_inner, (a, b), out, dtype or a.dtype)


def inclusive_scan(values, out):
    """Sets out[i] to the sum of values[0] to values[i]. Both may be one array. Gradients pass."""
    _weft.array_scan(values, out, True)


def exclusive_scan(values, out):
    """Sets out[i] to the sum of the elements before values[i], and out[0] to 0. Both may be one array. Gradients pass."""
    _weft.array_scan(values, out, False)


def radix_sort(keys):
    """Sorts keys in place, ascending, with equal ones in their order; NaNs come last."""
    _weft.sort_keys(keys)


def radix_sort_pairs(keys, values, begin_bit=0, end_bit=0):
    """Sorts keys, and values of 4 or 8 bytes along with them, by the bits [begin_bit, end_bit) of the keys; by all if both
    are 0.
    """
    _weft.sort_pairs(keys, values, begin_bit, end_bit)


def segmented_sort(keys, offsets, values=None):
    """Sorts the keys from offsets[s] to offsets[s + 1] by themselves, for each s, and values along with them. `offsets` is an
    ascending array of int32.
    """
    if values is None:
        _weft.segmented_sort_keys(keys, offsets)
    else:
        _weft.segmented_sort_pairs(keys, values, offsets)


def histogram(values, counts, low=None, high=None):
    """Counts the elements in each of len(counts) bins of equal width from `low` to `high`, or, of integers, the elements equal
    to each k. Others, and NaNs, are not counted; `high` itself belongs to the last bin. `counts` is an array of int32.

    Errors: ValueError for bounds of integers, and for real numbers without bounds.
    """
    real = values.dtype in FLOATS
    if real != (low is not None) or real != (high is not None):
        raise ValueError(f"a histogram of {values.dtype.__name__} takes {'two bounds' if real else 'no bounds'}")
    _weft.histogram(values, counts, float(low or 0), float(high or 0))


def counted(function, arrays, count):
    """Calls a function that counts into an array of one int32, or with one of its own, whose number it returns."""
    if count is not None:
        function(*arrays, count)
        return None
    counter = empty(1, dtype=int32, device=arrays[0].device)
    function(*arrays, counter)
    return int(counter.numpy()[0])


def compact(values, flags, out, count=None):
    """Copies the elements whose flag is set, in their order, to the beginning of `out`. Returns their number, or writes it into
    `count`. Elements have a multiple of 4 bytes; flags are bools or integers of 32 bits.
    """
    return counted(_weft.compact, (values, flags, out), count)


def compact_indices(flags, out, count=None):
    """Writes the indices of the set flags, ascending, to the beginning of `out` (int32). Returns their number, or writes it into
    `count`.
    """
    return counted(_weft.compact_indices, (flags, out), count)


def run_length_encode(values, run_values, run_lengths, count=None):
    """Finds the runs of equal neighbours: the element that each repeats, and its length. Returns their number, or writes it into
    `count`. The outputs are as long as the input.
    """
    return counted(_weft.run_length_encode, (values, run_values, run_lengths), count)


def spatial_order(points, directions=None, out=None):
    """The numbers of points (vec3), or of rays from points along directions, along a space-filling curve: threads that follow
    it have neighbours side by side. Points that are not finite come last. Returns an array of int32, or writes into `out`.
    """
    order = empty(len(points), dtype=int32, device=points.device) if out is None else out
    _weft.spatial_order(points, directions, order)
    return order
