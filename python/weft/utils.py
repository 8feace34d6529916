"""Tools beside kernels: timers, scans, sorts, runs."""

import sys
import time
import warnings

from . import _weft
from .runtime import device
from .runtime.creation import zeros
from .types.scalars import float32, float64, int32


class ScopedTimer:
    r"""A `with` block whose time is printed, and kept in ``elapsed`` (milliseconds).

    \param synchronize  waits for the devices before and after, so that the time is that of their work
    \param dict  a dict of name to a list of times, to which the time is added
    \param use_nvtx  kept for programs that set it
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
        self.report_func = report_func
        self.elapsed = 0.0
        self.start = 0.0

    def __enter__(self):
        if self.active:
            if self.synchronize:
                device.synchronize()
            ScopedTimer.indent += 1
            self.start = time.perf_counter_ns()
        return self

    def __exit__(self, kind, error, trace):
        if not self.active:
            return
        if self.synchronize:
            device.synchronize()
        self.elapsed = (time.perf_counter_ns() - self.start) / 1.0e6
        if self.dict is not None:
            self.dict.setdefault(self.name, []).append(self.elapsed)
        if self.report_func is not None:
            self.report_func([], "\t" * ScopedTimer.indent)
        elif self.print:
            sys.stdout.write(f"{chr(9) * ScopedTimer.indent}{self.name} took {self.elapsed:.2f} ms\n")
        ScopedTimer.indent -= 1


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
    if in_array.size:
        _weft.array_scan(in_array, out_array, inclusive)


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
    """The sum of an array. Returns the number, or nothing if it is given an array of one element for it.

    Errors: RuntimeError for types that have no sums, and for arrays that do not fit.
    """
    refuse_axis("array_sum", axis)
    count = values.size if value_count is None else value_count
    total = one_number(out, values.dtype, values)
    refuse_type(values)
    if count:
        _weft.array_sum(values[:count], total)
    else:
        total.zero_()
    return total.list()[0] if out is None else None


def array_inner(a, b, out=None, count=None, axis=None):
    """The sum of the products of two arrays. Returns the number, or nothing if it is given an array for it.

    Errors: RuntimeError for types that have no products, and for arrays that do not fit.
    """
    refuse_axis("array_inner", axis)
    if a.size != b.size:
        raise RuntimeError(f"A and b array storage sizes do not match ({a.size} vs {b.size})")
    if a.native_device != b.native_device:
        raise RuntimeError(f"A and b array storage devices do not match ({a.device} vs {b.device})")
    if a.element_dtype is not b.element_dtype:
        raise RuntimeError(f"A and b array data types do not match ({a.dtype.__name__} vs {b.dtype.__name__})")
    refuse_type(a)
    total = one_number(out, a.dtype, a)
    count = a.size if count is None else count
    if count:
        _weft.array_inner(a[:count], b[:count], total)
    else:
        total.zero_()
    return total.list()[0] if out is None else None


def refuse_axis(name, axis):
    """Refuses sums along one dimension."""
    if axis is not None:
        raise RuntimeError(f"{name}() along an axis is not supported yet")


def refuse_type(values):
    """Refuses element types of which there are no sums. Errors: RuntimeError."""
    if values.dtype not in (float32, float64):
        raise RuntimeError(f"Unsupported data type: {values.dtype.__name__}")


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
    if keys.size < 2 * count or values.size < 2 * count:
        raise RuntimeError("Keys and values array storage must be large enough to contain 2*count elements")
    _weft.sort_pairs(keys[:count], values[:count], begin_bit, end_bit or 0)


def runlength_encode(values, run_values, run_lengths, run_count=None, value_count=None):
    """The runs of equal values and their lengths. Returns the number of runs, or `run_count` if it is given.

    Errors: RuntimeError for arrays that are too small, of other types, or on different devices.
    """
    count = values.size if value_count is None else value_count
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


def warn(message, category=None, stacklevel=1):
    """Warns, once for each place."""
    warnings.warn(message, category or UserWarning, stacklevel + 1)
