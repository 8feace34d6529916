"""Indexed arrays on the host: ``wp.indexedarray``, arrays seen through lists of indices."""

import math
from typing import Any

from .. import _weft
from ..types.annotations import ArrayType, dimensions_of, type_name
from . import showing
from .array import element_of, from_data
from .device import get_device, of_native


class indexedarray:
    """An array seen through a list of indices for each dimension: element (i, j) is element (rows[i], columns[j]).

    ``wp.indexedarray(data, [rows, None])`` takes all indices where a list is None or missing; ``data[rows]`` is the same.
    It shares the elements, and the lists, which are arrays of int32. Without data it is an annotation.
    Errors: RuntimeError for lists of other types, on other devices, or more than there are dimensions; indices out of
    range are faults of the kernels that use them.
    """

    _wp_is_array_ = True
    _wp_is_indexed_ = True

    def __new__(cls, data=None, indices=None, dtype=Any, ndim=None, **_):
        if data is None:
            return ArrayType(dtype, 1 if ndim is None else ndim, indexed=True)
        return super().__new__(cls)

    def __init__(self, data=None, indices=None, dtype=None, ndim=None, **_):
        if not isinstance(data, _weft.Array):
            raise RuntimeError("an indexed array is made of an array and lists of indices")
        indices = [] if indices is None else [indices] if isinstance(indices, _weft.Array) else list(indices)
        if len(indices) > data.ndim:
            raise RuntimeError(f"Number of indices provided ({len(indices)}) exceeds number of dimensions ({data.ndim})")
        if ndim is not None and data.ndim != ndim:
            raise RuntimeError(f"the array has {data.ndim} dimensions, not {ndim}")
        self.data = data
        self.indices = [check_list(data, one) for one in indices] + [None] * (data.ndim - len(indices))

    def __class_getitem__(cls, item):
        dtype, *rest = item if isinstance(item, tuple) else (item,)
        return ArrayType(dtype, dimensions_of(rest[0]) if rest else 1, indexed=True)

    list0 = property(lambda self: self.indices[0])
    list1 = property(lambda self: self.indices[1])
    list2 = property(lambda self: self.indices[2])
    list3 = property(lambda self: self.indices[3])

    dtype = property(lambda self: self.data.dtype)
    element_dtype = property(lambda self: self.data.element_dtype)
    ndim = property(lambda self: self.data.ndim)
    device = property(lambda self: of_native(self.data.native_device))
    native_device = property(lambda self: self.data.native_device)
    requires_grad = property(lambda self: self.data.requires_grad)
    has_grad = property(lambda self: self.data.has_grad)
    is_contiguous = False

    @property
    def shape(self):
        """The number of indices that each dimension takes."""
        return tuple(n if one is None else one.shape[0] for n, one in zip(self.data.shape, self.indices))

    @property
    def size(self):
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def grad(self):
        """The gradients of the elements, seen through the same lists; None if there are none."""
        return indexedarray(self.data.grad, self.indices) if self.data.has_grad else None

    def contiguous(self):
        """The chosen elements as an array of their own, gathered on the device."""
        made = _weft.empty(self.shape, self.element_dtype, self.native_device, False)
        if made.size:
            _weft.indexed_copy(made, self.data, self.indices, False)
        return made

    def numpy(self):
        """The chosen elements as NumPy's array, a copy."""
        return self.contiguous().numpy()

    def list(self):
        """The chosen elements as a list, as array.list()."""
        return self.contiguous().list()

    def to(self, device, requires_grad=None):
        """The indexed array on a device: itself if it is there, else a copy of the chosen elements, all in their order."""
        device = get_device(device)
        if device.native == self.native_device:
            return self
        return indexedarray(self.contiguous().to(device, requires_grad), [])

    def scatter(self, values):
        """Replaces the chosen elements by those of an array of the same shape. One that is chosen twice gets one of its
        values.
        """
        if values.native_device != self.native_device:
            values = values.to(self.native_device)
        if self.size:
            _weft.indexed_copy(values, self.data, self.indices, True)

    def zero_(self):
        """Sets the chosen elements to zero."""
        self.scatter(_weft.zeros(self.shape, self.element_dtype, self.native_device))

    def fill_(self, value):
        """Sets the chosen elements to a value, as array.fill_()."""
        value = element_of(self.dtype, value)
        self.scatter(_weft.full(self.shape, value, self.element_dtype, self.native_device))

    def assign(self, src):
        """Copies an array, or host data, of the same shape."""
        from .array import copy

        made = src if isinstance(src, (_weft.Array, indexedarray)) else None
        made = from_data(src, self.dtype, None, None, self.native_device, True) if made is None else made
        copy(self, made)
        return self

    def __getitem__(self, key):
        return self.contiguous()[key]

    def __len__(self):
        return self.shape[0]

    def __str__(self):
        return str(self.numpy())

    def __repr__(self):
        return f"indexed{showing.array_text(self)}"

    def _repr_html_(self):
        """What notebooks show."""
        return showing.array_html(self)


def check_list(data, one):
    """A list of indices as the array can have it. Errors: RuntimeError for another type or device."""
    if one is None:
        return None
    if not isinstance(one, _weft.Array) or one.ndim != 1 or one.dtype.__name__ != "int32":
        raise RuntimeError("the indices of an indexed array are arrays of int32 with one dimension, or None")
    if one.native_device != data.native_device:
        raise RuntimeError(f"Index arrays must be on device {data.device}, not {one.device}")
    return one


def choose(data, keys):
    """``data[rows, :, 2]``, of which some keys are arrays of indices."""
    from .array import part

    lists, plain = [], []
    for key in (*keys, *[slice(None)] * (data.ndim - len(keys))):
        is_list = isinstance(key, _weft.Array)
        plain.append(slice(None) if is_list else key)
        if is_list or isinstance(key, slice):
            lists.append(key if is_list else None)
    return indexedarray(data.viewed_with_grad(lambda a: part(a, tuple(plain))), lists)


def copy_indexed(dest, src):
    """copy() where one of the two is indexed. Errors: RuntimeError for other types or shapes."""
    if tuple(dest.shape) != tuple(src.shape):
        raise RuntimeError(
            f"Incompatible array shapes: destination shape={tuple(dest.shape)}, source shape={tuple(src.shape)}"
        )
    if dest.element_dtype is not src.element_dtype:
        raise RuntimeError(
            f"Incompatible array data types: destination dtype={type_name(dest.dtype)}, source dtype={type_name(src.dtype)}"
        )
    values = src.contiguous() if isinstance(src, indexedarray) else src
    if isinstance(dest, indexedarray):
        dest.scatter(values)
    else:
        dest.copy_from(values)


def indexed_of_ndim(n):
    """The class of annotations and indexed arrays of n dimensions: ``wp.indexedarray2d``."""

    class made(indexedarray):
        def __new__(cls, data=None, indices=None, dtype=Any, **keywords):
            return indexedarray(data, indices, dtype=dtype, ndim=n)

        def __class_getitem__(cls, item):
            return ArrayType(item, n, indexed=True)

    made.__name__ = made.__qualname__ = f"indexedarray{n}d"
    made.__doc__ = f"Indexed arrays of {n} dimension{'s' if n > 1 else ''}; otherwise as indexedarray."
    return made


indexedarray1d, indexedarray2d, indexedarray3d, indexedarray4d = (indexed_of_ndim(n) for n in (1, 2, 3, 4))
