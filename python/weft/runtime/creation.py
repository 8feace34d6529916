"""Functions that make arrays: zeros, ones, full, empty, and kin; conversions from NumPy and pointers."""

import numpy as np

from .. import _weft
from ..types import matrices, numpy_types, scalars, vectors
from ..types.annotations import element_type, is_concrete
from .array import array, element_of, from_data
from .device import device_from, get_device


def shape_from(shape, keywords):
    """The shape that is given as such, or by the early documents' ``n`` or ``length``. Errors: TypeError for none."""
    if shape is None:
        shape = keywords.pop("n", None) if "n" in keywords else keywords.pop("length", None)
    if shape is None:
        raise TypeError("a shape is needed")
    keywords.pop("retain_grad", None)  # gradients of computed arrays are always kept by the tape
    if keywords:
        raise TypeError(f"unexpected keyword argument {next(iter(keywords))!r}")
    return shape


def zeros(shape=None, dtype=float, device=None, requires_grad=False, pinned=False, **keywords):
    r"""An array of zeros.

    \param shape  an int or up to four ints
    \param dtype  the type of an element
    """
    if shape is None or keywords:
        shape = shape_from(shape, keywords)
    if device.__class__ is str:
        device = get_device(device)
    return _weft.zeros(shape, dtype, device, requires_grad)


zeros._wp_key_ = "zeros"  # in kernels: an array of the thread's own


def empty(shape=None, dtype=float, device=None, requires_grad=False, pinned=False, **keywords):
    """An array whose elements are not set."""
    if shape is None or keywords:
        shape = shape_from(shape, keywords)
    if device.__class__ is str:
        device = get_device(device)
    return _weft.empty(shape, dtype, device, requires_grad)


def full(shape=None, value=0, dtype=None, device=None, requires_grad=False, pinned=False, **keywords):
    """An array whose elements are all `value`. Without a dtype it is the value's type."""
    shape = shape_from(shape, keywords)
    dtype = type_of_fill(value) if dtype is None else element_type(dtype)
    value = element_of(dtype, value)
    return _weft.full(shape, value, dtype.native, device_from(device), requires_grad)


def type_of_fill(value):
    """The element type for a value without a dtype."""
    if isinstance(value, bool):
        return scalars.bool
    if isinstance(value, int):
        return scalars.int32
    if isinstance(value, float):
        return scalars.float32
    if is_concrete(type(value)):
        return type(value)
    made = np.asarray(value)
    if made.ndim == 0:
        return numpy_types.dtype_from_numpy(made.dtype)
    from ..types import matrices, vectors

    if made.dtype == np.float64 and not isinstance(value, np.ndarray):
        scalar = scalars.float32
    elif made.dtype == np.int64 and not isinstance(value, np.ndarray):
        scalar = scalars.int32
    else:
        scalar = numpy_types.dtype_from_numpy(made.dtype)
    if made.ndim == 1:
        return vectors.vector(made.shape[0], scalar)
    if made.ndim == 2:
        return matrices.matrix(made.shape, scalar)
    raise TypeError(f"an array cannot be filled with data of shape {made.shape}")


def ones(shape=None, dtype=float, device=None, requires_grad=False, pinned=False, **keywords):
    """An array of ones."""
    return full(shape, 1, dtype, device, requires_grad, **keywords)


def zeros_like(src, device=None, requires_grad=None, pinned=None, retain_grad=False):
    """An array of zeros with the shape, type and device of another."""
    made = empty_like(src, device, requires_grad)
    made.zero_()
    return made


def ones_like(src, device=None, requires_grad=None, pinned=None, retain_grad=False):
    """An array of ones with the shape, type and device of another."""
    return full_like(src, 1, device, requires_grad)


def full_like(src, value, device=None, requires_grad=None, pinned=None, retain_grad=False):
    """An array of one value with the shape, type and device of another."""
    made = empty_like(src, device, requires_grad)
    made.fill_(value)
    return made


def empty_like(src, device=None, requires_grad=None, pinned=None, retain_grad=False):
    """An array with the shape, type and device of another, whose elements are not set."""
    native = src.native_device if device is None else device_from(device)
    gradient = src.requires_grad if requires_grad is None else requires_grad
    return _weft.empty(src.shape, src.element_dtype, native, bool(gradient))


def element_of_rows(arr):
    """The element type for NumPy's array: of two dimensions vectors, of three matrices, else numbers."""
    scalar = numpy_types.dtype_from_numpy(arr.dtype)
    if arr.ndim == 2:
        return vectors.vector(arr.shape[1], scalar)
    return matrices.matrix(arr.shape[1:], scalar) if arr.ndim == 3 else scalar


def from_numpy(arr, dtype=None, shape=None, device=None, requires_grad=False, retain_grad=False):
    """A copy of NumPy's array. Without a dtype the rows of two dimensions are vectors, and those of three matrices.

    Errors: RuntimeError for numbers that make no whole elements.
    """
    dtype = element_of_rows(arr) if dtype is None else element_type(dtype)
    made = from_data(arr, dtype, shape, None, device, True)
    if requires_grad:
        made.requires_grad = True
    return made


def from_ptr(ptr, length, dtype=None, shape=None, device=None):
    """The array around memory that the caller keeps."""
    return array(ptr=ptr, dtype=float if dtype is None else dtype, shape=length if shape is None else shape, device=device)
