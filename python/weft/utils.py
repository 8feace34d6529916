"""Tools beside kernels: timers, scans, sorts, runs."""

import cProfile
import sys
import time
import warnings
from typing import Any

from . import _weft
from ._weft import launch
from .language.builtin import Builtin
from .runtime import device
from .runtime.array import array
from .runtime.creation import zeros
from .runtime.kernel import kernel
from .runtime.profile import Timer, timing_begin, timing_end, timing_print
from .runtime.structures.adjacency import MeshAdjacency, MeshEdge  # noqa: F401
from .types.named import NAMED
from .types.scalars import float32, float64, int32, int64, uint32, uint64

tid = Builtin("tid")


class ScopedTimer:
    r"""A `with` block whose time is printed, and kept in ``elapsed`` (milliseconds). It is a scope of a Profiler that measures.

    \param synchronize  waits for the devices before and after, so that the time is that of their work
    \param dict  a dict of name to a list of times, to which the time is added
    \param detailed  prints what Python's profiler finds, too
    \param cuda_filter  a sum of TIMING_ constants: ``timing_results`` lists these activities of the devices then
    \param report_func  what prints these, called with the list and an indentation; None: timing_print()
    \param use_nvtx  kept for programs that set it
    Errors: with `cuda_filter` those of timing_begin().
    """

    indent = -1
    enabled = True

    def __init__(
        self,
        name,
        active=True,
        print=True,
        detailed=False,
        dict=None,
        use_nvtx=False,
        color="rapids",
        synchronize=False,
        cuda_filter=0,
        report_func=None,
        skip_tape=False,
    ):
        self.name = name
        self.active = active and self.enabled
        self.print = print
        self.dict = dict
        self.synchronize = synchronize
        self.cuda_filter = cuda_filter
        self.report_func = report_func or timing_print
        self.extra_msg = ""  # what the line at the end says, too
        self.timing_results = []
        self.elapsed = 0.0
        self.start = 0.0
        self.profile = cProfile.Profile() if detailed and self.active else None
        self.scope = Timer(name) if self.active else None

    def __enter__(self):
        if self.active:
            if self.synchronize:
                device.synchronize()
            if self.cuda_filter:
                timing_begin(self.cuda_filter)
            ScopedTimer.indent += 1
            if self.profile is not None:
                self.profile.enable()
            self.scope.__enter__()
            self.start = time.perf_counter_ns()
        return self

    def __exit__(self, kind, error, trace):
        if not self.active:
            return
        if self.synchronize:
            device.synchronize()
        self.elapsed = (time.perf_counter_ns() - self.start) / 1.0e6
        self.scope.__exit__(kind, error, trace)
        if self.profile is not None:
            self.profile.disable()
            self.profile.print_stats(sort="tottime")
        if self.cuda_filter:
            self.timing_results = timing_end()
        if self.dict is not None:
            self.dict.setdefault(self.name, []).append(self.elapsed)
        if self.print:
            self.report()
        ScopedTimer.indent -= 1

    def report(self):
        """Prints the activities and the time."""
        indent = "    " * ScopedTimer.indent
        if self.timing_results:
            self.report_func(self.timing_results, indent=indent)
        more = f" {self.extra_msg}" if self.extra_msg else ""
        sys.stdout.write(f"{indent}{self.name} took {self.elapsed:.2f} ms{more}\n")


def array_scan(in_array, out_array, inclusive=True):
    """The running sums of an array, with or without the element itself.

    Errors: RuntimeError for arrays of different types, sizes or devices.
    """
    if in_array.native_device != out_array.native_device:
        raise RuntimeError(f"In and out array storage devices do not match ({in_array.device} vs {out_array.device})")
    if in_array.size != out_array.size:
        raise RuntimeError(f"In and out array storage sizes do not match ({in_array.size} vs {out_array.size})")
    if in_array.element_dtype is not out_array.element_dtype:
        raise RuntimeError(
            f"In and out array data types do not match ({in_array.dtype.__name__} vs {out_array.dtype.__name__})"
        )
    if in_array.dtype.native.kind == "struct" or scalar_of(in_array) not in (int32, int64, uint32, uint64, float32, float64):
        raise RuntimeError(f"Unsupported data type: {in_array.dtype.__name__}")
    if not in_array.size:
        return
    if in_array.dtype.native.kind == "scalar" and in_array.is_contiguous and out_array.is_contiguous:
        _weft.array_scan(in_array, out_array, inclusive)
        return
    count = in_array.dtype._length_ if in_array.dtype.native.kind != "scalar" else 1
    parts = zeros((count, in_array.size), dtype=scalar_of(in_array), device=in_array.device)
    lines = numbers(in_array.contiguous()).reshape((in_array.size, count))
    parts.assign(lines.transpose())
    for k in range(count):
        _weft.array_scan(parts[k], parts[k], inclusive)
    result = _weft.empty(out_array.shape, out_array.element_dtype, out_array.native_device)
    numbers(result).reshape((in_array.size, count)).assign(parts.transpose().contiguous())
    out_array.assign(result)


def one_number(out, like, values):
    """The array of one element for a result: the given one, or a new one. Errors: RuntimeError for one that does not fit."""
    if out is None:
        return zeros(1, dtype=like, device=values.device)
    if out.native_device != values.native_device:
        raise RuntimeError("out storage device should match values array")
    if out.dtype is not like:
        raise RuntimeError(f"out array should have type {like.__name__}")
    if tuple(out.shape) != (1,):
        raise RuntimeError("out array should have shape (1,)")
    return out


def array_sum(values, out=None, value_count=None, axis=None):
    r"""The sum of an array: of all elements, as NumPy's number or array, or along one dimension, as an array in which that
    dimension has one element.

    \param out  the array for the result; nothing is returned then
    Errors: RuntimeError for types that have no sums, and for arrays that do not fit.
    """
    refuse_type(values)
    if axis is not None:
        return along(values, None, values.dtype, out, axis)
    total = one_number(out, values.dtype, values)
    count = values.size if value_count is None else value_count
    if count:
        _weft.array_sum(values.contiguous().flatten()[:count], total)
    else:
        total.zero_()
    return total.numpy()[0] if out is None else None


def array_inner(a, b, out=None, count=None, axis=None):
    """The sum of the products of the components of two arrays: of all elements, as NumPy's number, or along one dimension,
    as an array in which that dimension has one element.

    Errors: RuntimeError for types that have no products, and for arrays that do not fit.
    """
    if a.size != b.size:
        raise RuntimeError(f"A and b array storage sizes do not match ({a.size} vs {b.size})")
    if a.native_device != b.native_device:
        raise RuntimeError(f"A and b array storage devices do not match ({a.device} vs {b.device})")
    if a.element_dtype is not b.element_dtype:
        raise RuntimeError(f"A and b array data types do not match ({a.dtype.__name__} vs {b.dtype.__name__})")
    refuse_type(a)
    if axis is not None:
        return along(a, b, scalar_of(a), out, axis)
    total = one_number(out, scalar_of(a), a)
    count = a.size if count is None else count
    if count:
        _weft.array_inner(numbers(a.contiguous().flatten()[:count]), numbers(b.contiguous().flatten()[:count]), total)
    else:
        total.zero_()
    return total.numpy()[0] if out is None else None


def scalar_of(values):
    """The type of the components of an array's elements."""
    return values.dtype if values.dtype.native.kind == "scalar" else values.dtype._wp_scalar_type_


def numbers(values):
    """The components of a contiguous array as one row of numbers, a view."""
    return values if values.dtype.native.kind == "scalar" else values.scalars().flatten()


def refuse_type(values):
    """Refuses element types of which there are no sums. Errors: RuntimeError."""
    if values.dtype.native.kind == "struct" or scalar_of(values) not in (float32, float64):
        raise RuntimeError(f"Unsupported data type: {values.dtype.__name__}")


@kernel
def sum_rows(a: array(dtype=Any, ndim=2), out: array(dtype=Any)):
    """The sum of each row."""
    i = tid()
    total = a.dtype(0.0)
    for j in range(a.shape[1]):
        total += a[i, j]
    out[i] = total


@kernel
def multiply_rows(a: array(dtype=Any, ndim=2), b: array(dtype=Any, ndim=2), out: array(dtype=Any)):
    """The sum of the products of each row."""
    i = tid()
    total = a.dtype(0.0)
    for j in range(a.shape[1]):
        total += a[i, j] * b[i, j]
    out[i] = total


def along(a, b, dtype, out, axis):
    """Sums of an array along a dimension, or of the products of two arrays: a thread for each sum.

    Errors: RuntimeError for a dimension that there is not, and for another shape or type of the target.
    """
    if not -a.ndim <= axis < a.ndim:
        raise RuntimeError(f"an array of {a.ndim} dimensions has no axis {axis}")
    axis %= a.ndim
    shape = tuple(1 if k == axis else n for k, n in enumerate(a.shape))
    given = out is not None
    out = zeros(shape, dtype=dtype, device=a.device) if out is None else out
    if tuple(out.shape) != shape or out.dtype.native is not dtype.native or out.native_device != a.native_device:
        raise RuntimeError(f"out array should have type {dtype.__name__} and shape {shape}")
    sums = out if out.is_contiguous else zeros(shape, dtype=dtype, device=a.device)
    if a.size == 0:
        sums.zero_()
    else:
        launch(sum_rows if b is None else multiply_rows, sums.size, [*rows_of(a, b, axis), sums.flatten()], device=a.device)
    if sums is not out:
        out.assign(sums)
    return None if given else out


def rows_of(a, b, axis):
    """The arrays with the dimension last, and the others as one before it; of products, component by component."""
    order = [k for k in range(a.ndim) if k != axis] + [axis]
    made = []
    for values in (a,) if b is None else (a, b):
        lines = (values.transpose(order) if values.ndim > 1 else values).contiguous()
        lines = lines.reshape((values.size // values.shape[axis], values.shape[axis]))
        if b is not None and values.dtype.native.kind != "scalar":
            lines = lines.scalars().reshape((lines.shape[0], lines.shape[1] * values.dtype._length_))
        made.append(lines)
    return made


def radix_sort_pairs(keys, values, count, begin_bit=0, end_bit=None):
    """Sorts the first `count` keys, and the values with them. The arrays have room for twice as many, as in Warp.

    Errors: RuntimeError for arrays that are too small, or on different devices.
    """
    if keys.native_device != values.native_device:
        raise RuntimeError(
            f"Keys and values array storage devices do not match ({keys.device} vs {values.device})"
        )
    if count < 0:
        raise ValueError(f"count must be non-negative, got {count}")
    if count == 0:
        return
    names = f"{keys.dtype.__name__}, {values.dtype.__name__}"
    for name, one in (("keys", keys), ("values", values)):
        if not one.is_contiguous:
            raise RuntimeError(
                f"radix_sort_pairs() requires a contiguous {name} array, got non-contiguous {name} with data types: {names}"
            )
    if keys.size < 2 * count or values.size < 2 * count:
        raise RuntimeError("Keys and values array storage must be large enough to contain 2*count elements")
    if keys.dtype not in (int32, uint32, float32, int64, uint64, float64) or values.itemsize not in (4, 8):
        raise RuntimeError(f"Unsupported keys and values data types: {names}")
    bits = 8 * keys.itemsize
    last = bits if end_bit is None else end_bit
    if not 0 <= begin_bit < last <= bits:
        raise RuntimeError(f"Invalid radix sort bit range [{begin_bit}, {last}) for {bits}-bit keys")
    _weft.sort_pairs(keys[:count], values[:count], begin_bit, last)


def segmented_sort_pairs(keys, values, count, segment_start_indices, segment_end_indices=None):
    """Sorts keys in each of several parts of the first `count`, and the values with them. The arrays have room for twice
    as many, as in Warp. Without ends, each segment ends where the next begins, and the last start is the last end.

    Errors: RuntimeError for arrays that are too small, of other types, or on different devices.
    Cost: that of one sort of all keys, and of a wait for the bounds; parts with gaps between them are sorted one by one.
    """
    if keys.native_device != values.native_device:
        raise RuntimeError(f"Array storage devices do not match ({keys.device} vs {values.device})")
    if keys.size < 2 * count or values.size < 2 * count:
        raise RuntimeError("Array storage must be large enough to contain 2*count elements")
    if keys.dtype not in (int32, float32) or values.dtype is not int32:
        raise RuntimeError(f"Unsupported data type: {keys.dtype.__name__}")
    starts = segment_start_indices.numpy().tolist()
    ends = starts[1:] if segment_end_indices is None else segment_end_indices.numpy().tolist()
    for start, end in zip(starts, ends):
        if not 0 <= start <= end <= count:
            raise RuntimeError(f"segment {start} to {end} is no part of {count} keys")
    if not ends:
        return
    if starts[1:] in (ends, ends[:-1]):
        offsets = array([*starts[: len(ends)], ends[-1]], dtype=int32, device=keys.device)
        _weft.segmented_sort_pairs(keys[:count], values[:count], offsets)
        return
    for start, end in zip(starts, ends):
        if end - start > 1:
            _weft.sort_pairs(keys[start:end], values[start:end], 0, 0)


def array_cast(in_array, out_array, count=None):
    """Converts the numbers of an array to those of another: element by element, or, where the types have different numbers
    of components, number by number, the first `count` elements.

    Errors: RuntimeError for a count with several dimensions, and for sizes that do not fit.
    """
    if in_array.native_device != out_array.native_device:
        raise RuntimeError(f"Array storage devices do not match ({in_array.device} vs {out_array.device})")
    if count is not None and (in_array.ndim > 1 or out_array.ndim > 1):
        raise RuntimeError("Partial cast is not supported for arrays with more than one dimension")
    source, target = numbers(in_array.contiguous().flatten()), out_array
    target = target if target.is_contiguous else _weft.empty(target.shape, target.element_dtype, target.native_device)
    length = in_array.dtype._length_ if in_array.dtype.native.kind != "scalar" else 1
    amount = source.size if count is None else count * length
    there = numbers(target.flatten())
    if amount > source.size or amount > there.size or count is None and source.size != there.size:
        raise RuntimeError(f"{amount} numbers of {source.size} cannot be cast to {there.size}")
    if amount:
        launch(cast_numbers, amount, [source, there], device=in_array.device)
    if target is not out_array:
        out_array.assign(target)


@kernel
def cast_numbers(a: array(dtype=Any), out: array(dtype=Any)):
    """Number by number."""
    i = tid()
    out[i] = out.dtype(a[i])


def runlength_encode(values, run_values, run_lengths, run_count=None, value_count=None):
    """The runs of equal values and their lengths. Returns the number of runs, or `run_count` if it is given.

    Errors: RuntimeError for arrays that are too small, of other types, or on different devices, and for a negative count.
    """
    count = values.size if value_count is None else value_count
    if count < 0:
        raise RuntimeError(f"value_count must be non-negative, got {count}")
    if run_values.size < count or run_lengths.size < count:
        raise RuntimeError(f"Output array storage sizes must be at least equal to value_count ({count})")
    if values.element_dtype is not run_values.element_dtype:
        raise RuntimeError(
            f"values and run_values data types do not match ({values.dtype.__name__} vs {run_values.dtype.__name__})"
        )
    if run_lengths.dtype is not int32:
        raise RuntimeError("run_lengths array must be of type int32")
    counter = zeros(1, dtype=int32, device=values.device) if run_count is None else run_count
    if counter.dtype is not int32:
        raise RuntimeError("run_count array must be of type int32")
    if count == 0:
        counter.zero_()
    else:
        _weft.run_length_encode(values[:count], run_values[:count], run_lengths[:count], counter[:1])
    return int(counter.numpy()[0]) if run_count is None else run_count


def transform_expand(t):
    """The transform of seven numbers: a position, then a rotation."""
    return NAMED["transform"](*t)


def warn(message, category=None, stacklevel=1):
    """Warns, once for each place."""
    warnings.warn(message, category or UserWarning, stacklevel + 1)
