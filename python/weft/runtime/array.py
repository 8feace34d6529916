"""Arrays: memory on a device, with a shape and an element type."""

from typing import Any

import numpy as np

from .. import _weft
from ..absent import tells_what_is_missing
from ..types import composites, numpy_types, structs
from ..types.annotations import ArrayType, dimensions_of, element_type, is_concrete, type_name
from . import showing
from .device import device_from, get_device, of_native


@tells_what_is_missing
class array(_weft.Array):
    """An array of up to four dimensions on a device.

    ``wp.array(data, dtype=..., device=...)`` copies host data (lists, NumPy arrays, other arrays); with ``copy=False`` an
    array on the processor shares memory with NumPy. ``wp.array(ptr=..., shape=..., dtype=...)`` is a view of memory that
    the caller keeps. Without data, pointer and shape it is an annotation: ``wp.array(dtype=float)``, ``wp.array[float]``.

    Elements are read and assigned by index, which waits for the work that writes them. Slices are views.
    Errors: RuntimeError for data that do not fit the element type or the shape.
    """

    _wp_is_array_ = True
    retain_grad = False
    """Kept for programs that set it: gradients stay anyway."""

    def __new__(cls, data=None, dtype=Any, shape=None, strides=None, length=None, ptr=None, *args, **keywords):
        made = data is not None or shape is not None or ptr is not None or length is not None
        if made or keywords.get("capacity") is not None:
            return super().__new__(cls)
        return ArrayType(dtype, keywords.get("ndim", 1) if keywords.get("ndim") is not None else 1)

    def __init__(
        self,
        data=None,
        dtype=Any,
        shape=None,
        strides=None,
        length=None,
        ptr=None,
        capacity=None,
        device=None,
        pinned=False,
        copy=True,
        owner=False,
        deleter=None,
        ndim=None,
        grad=None,
        requires_grad=False,
        retain_grad=False,
        **_,
    ):
        dtype = element_type(dtype)
        if shape is None and length is not None:
            shape = length
        if data is not None:
            made = from_data(data, dtype, shape, ndim, device, copy)
        elif ptr is not None:
            made = from_pointer(ptr, dtype, shape, strides, device, deleter)
        else:
            if not is_concrete(dtype):
                raise RuntimeError("a dtype is needed to make an array of a shape")
            made = _weft.empty(shape, dtype.native, device_from(device))
        if ndim is not None and made.ndim != ndim and made.size == 0 and is_index(ndim) and 1 <= ndim <= 4:
            made = _weft.empty((0,) * ndim, made.element_dtype, made.native_device)  # of an empty list
        if ndim is not None and made.ndim != ndim:
            raise RuntimeError(f"the array has {made.ndim} dimensions, not {ndim}")
        _weft.init(self, made)
        if grad is not None:
            self.grad = grad
        elif requires_grad:
            self.requires_grad = True

    def __class_getitem__(cls, item):
        dtype, *rest = item if isinstance(item, tuple) else (item,)
        if rest and getattr(cls, "_wp_ndim_", None):
            raise TypeError(f"{cls.__name__} takes a single type parameter, the type of an element")
        return ArrayType(dtype, getattr(cls, "_wp_ndim_", None) or (dimensions_of(rest[0]) if rest else 1))

    @property
    def device(self):
        """The device on which the elements lie."""
        return of_native(self.native_device)

    @property
    def requires_grad(self):
        """Whether the array has a gradient. Setting it gives one, of zeros, or takes it away: ``grad`` is None then."""
        return self.has_grad

    @requires_grad.setter
    def requires_grad(self, value):
        if value and not self.has_grad:
            if self.element_dtype.has_reals:  # whole numbers carry no gradients
                self.require_gradient()
        elif not value and self.has_grad:
            self.grad = None

    @property
    def capacity(self):
        """The bytes from the first to the end of the last element."""
        return self.nbytes

    @property
    def pinned(self):
        """False: memory of devices needs no pinned copies."""
        return False

    @property
    def is_transposed(self):
        """Whether the dimensions lie in memory in reverse order."""
        return self.ndim > 1 and not self.is_contiguous and self.transpose().is_contiguous

    @property
    def T(self):
        """The array with its dimensions in reverse order, a view."""
        return self.transpose()

    @property
    def __array_interface__(self):
        """NumPy's description of the memory. There is none where numpy() is a copy, whose memory nobody would keep."""
        described = self.numpy().__array_interface__
        if self.size and described["data"][0] != self.ptr:
            raise AttributeError("the array's memory is not the host's: numpy() copies it")
        return described

    def __array__(self, dtype=None, copy=None):
        made = self.numpy()
        if dtype is not None and made.dtype != dtype:
            return made.astype(dtype)
        return made.copy() if copy else made

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        if self.ndim == 1:
            return iter(self.list())
        return (self.row(k) for k in range(self.shape[0]))

    def __bool__(self):
        return True

    def __str__(self):
        return str(self.numpy()) if not self.is_freed else "array(freed)"

    def __repr__(self):
        return showing.array_text(self)

    def _repr_html_(self):
        """What notebooks show."""
        return showing.array_html(self)

    def list(self):
        """The elements as a list of numbers, of values of the package, or of structs, in row-major order."""
        dtype = self.dtype
        flat = self.contiguous().numpy()
        if dtype.native.kind == "scalar":
            return flat.reshape(-1).tolist()
        if dtype.native.kind == "struct":
            return [struct_from_numpy(dtype, element) for element in flat.reshape(-1)]
        return [dtype._make(numbers) for numbers in flat.reshape(-1, dtype._length_).tolist()]

    def numpy(self):
        """The elements as a NumPy array: shared memory on the processor, a copy elsewhere."""
        return shaped_numpy(self)

    def __ctype__(self):
        """The array itself, for programs that give recorded launches their arguments so."""
        return self

    def cptr(self):
        """The address of the elements on the device; 0 of an array without elements."""
        return self.ptr or 0

    def zero_(self):
        """Sets all elements to zero."""
        self.zero()

    def fill_(self, value):
        """Sets all elements to a value: a number, a value of the element type, or a sequence of its components.

        Errors: TypeError and RuntimeError for a value that is no element.
        """
        self.fill(element_of(self.dtype, value))

    def assign(self, src):
        """Copies an array, or host data, of the same shape.

        Errors: RuntimeError for another shape.
        """
        if isinstance(src, (_weft.Array, indexedarray)):
            copy(self, src)
            return self
        made = from_data(src, self.dtype, None, None, self.native_device, True)
        copy(self, made if made.shape == self.shape else made.reshape(self.shape))
        return self

    def to(self, device, requires_grad=None):
        """The array on a device: itself if it is there, else a copy."""
        device = get_device(device)
        if device.native == self.native_device:
            return self
        return clone(self, device=device, requires_grad=requires_grad)

    def flatten(self):
        """All elements in one dimension, a view."""
        if self.ndim == 1:
            return self
        if not self.is_contiguous:
            raise RuntimeError("flattening a non-contiguous array is unsupported")
        return self.viewed_with_grad(lambda a: a.reshape(a.size))

    def reshape(self, shape):
        """The same elements with another shape, a view. One extent may be -1, which the others decide.

        Errors: RuntimeError for a shape of another size, and for an array that is not contiguous.
        """
        if not self.is_contiguous:
            raise RuntimeError("Reshaping non-contiguous arrays is unsupported.")
        shape = complete_shape(shape, self)
        return self.viewed_with_grad(lambda a: _weft.Array.reshape(a, shape))

    def view(self, dtype):
        """The same bytes as elements of another type: of the same size; or, with further or fewer dimensions, vectors and
        matrices as their scalars, and scalars as vectors and matrices.

        Errors: TypeError for types whose sizes do not fit; ValueError where the last dimensions make no whole elements.
        """
        dtype = element_type(dtype)
        if dtype.native.size == self.itemsize:
            return self.viewed_with_grad(lambda a: _weft.Array.view(a, dtype.native))
        check_view(self.dtype, dtype)
        return self.viewed_with_grad(lambda a: viewed_apart(a, dtype))

    def transpose(self, axes=None):
        """The dimensions in another order, reversed if none is given, a view. Errors: RuntimeError for wrong axes."""
        axes = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        if sorted(axes) != list(range(self.ndim)):
            raise RuntimeError(f"Length of parameter axes must be equal in length to array.ndim: {axes}")
        return self.viewed_with_grad(lambda a: a.permute(axes))

    def contiguous(self):
        """The array itself if its elements lie in order, else a copy."""
        return self if self.is_contiguous else clone(self)

    def viewed_with_grad(self, view):
        """A view of the elements whose gradient is the same view of the gradient."""
        made = view(self)
        if self.gradient_source is not None:
            made.gradient_source = ViewedGradient(self.gradient_source, view)
        elif self.has_given_gradient:
            made.grad = view(self.grad)
        elif made.has_grad and not self.has_grad:
            made.grad = None  # it was taken away from this array
        return made

    def present_gradient(self):
        """The gradient, but None where another library has not made it yet."""
        return self.grad if self.gradient_source is None else self.gradient_source.present()

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > self.ndim:
            raise IndexError(f"the array has {self.ndim} dimensions, not {len(keys)}")
        if any(isinstance(k, _weft.Array) for k in keys):
            return choose(self, keys)
        if len(keys) == self.ndim and all(is_index(k) for k in keys):
            return self.element(tuple(place(k, n) for k, n in zip(keys, self.shape)))
        return self.viewed_with_grad(lambda a: part(a, keys))

    def __setitem__(self, key, value):
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > self.ndim:
            raise IndexError(f"the array has {self.ndim} dimensions, not {len(keys)}")
        places = (place(k, n) if is_index(k) else k for k, n in zip(keys, self.shape))
        keys = tuple(slice(k, k + 1) if is_index(k) else k for k in places)
        target = part(self, tuple(normalised(k, n) for k, n in zip(keys, self.shape)))
        if isinstance(value, _weft.Array):
            copy(target, value if value.ndim == target.ndim else value.reshape(target.shape))
        elif is_element(self.dtype, value):
            target.fill_(value)
        else:
            made = from_data(value, self.dtype, None, None, self.native_device, True)
            copy(target, made if made.shape == target.shape else made.reshape(target.shape))

    def element(self, indices):
        """One element, by indices from the start."""
        numbers = self.read(indices)
        dtype = self.dtype
        if dtype.native.kind == "scalar":
            return dtype(numbers[0])
        if dtype.native.kind == "struct":
            return struct_from_numbers(dtype, iter(numbers))
        return dtype._make(numbers)

    def __matmul__(self, other):
        raise RuntimeError("products of arrays are not supported yet")


class ViewedGradient:
    """A view of a gradient that another library may not have made yet."""

    def __init__(self, source, view):
        self.source = source
        self.view = view

    def __call__(self):
        return self.view(self.source())

    def present(self):
        """The view if there is a gradient, else None."""
        made = self.source.present()
        return None if made is None else self.view(made)


def array_of_ndim(n):
    """The class of annotations and arrays of n dimensions: ``wp.array2d``."""

    class made(array):
        _wp_ndim_ = n

        def __new__(cls, *args, **keywords):
            keywords["ndim"] = n
            return array(*args, **keywords)

    made.__name__ = made.__qualname__ = f"array{n}d"
    made.__doc__ = f"Arrays of {n} dimension{'s' if n > 1 else ''}; otherwise as array."
    return made


array1d, array2d, array3d, array4d = (array_of_ndim(n) for n in (1, 2, 3, 4))


def check_view(source, target):
    """Refuses a view between types of which neither is the scalar of the other. Errors: TypeError."""

    def described(what, cls):
        scalar = getattr(cls, "_wp_scalar_type_", None)
        if cls.native.kind in ("scalar", "struct") or scalar is None:
            return cls.native.size, f"{what} dtype has size {cls.native.size} bytes"
        return scalar.native.size, f"{what} scalar dtype {scalar.__name__} has size {scalar.native.size} bytes"

    source_size, source_text = described("source", source)
    target_size, target_text = described("target", target)
    one_is_scalar = "scalar" in (source.native.kind, target.native.kind)
    if source_size != target_size or not one_is_scalar or "struct" in (source.native.kind, target.native.kind):
        raise TypeError(
            f"cannot create an array view with dtype {type_name(target)} from source dtype {type_name(source)}: "
            f"{source_text}, but {target_text}"
        )


def viewed_apart(array, dtype):
    """The scalars of an array of composite elements with a dimension for each of theirs; or the reverse."""
    if dtype.native.kind == "scalar":
        shape = (*array.shape, *array.dtype._shape_)
        scalars = array.scalars()
        scalars = scalars if scalars.dtype is dtype else _weft.Array.view(scalars, dtype.native)
        return scalars if scalars.ndim == len(shape) else _weft.Array.reshape(scalars, shape)
    inner = len(dtype._shape_)
    if tuple(array.shape[array.ndim - inner :]) != tuple(dtype._shape_):
        raise ValueError(f"an array of shape {tuple(array.shape)} holds no whole elements of type {type_name(dtype)}")
    numbers = array
    if inner > 1:
        numbers = _weft.Array.reshape(array, (*array.shape[: array.ndim - inner], dtype._length_))
    scalar = dtype._wp_scalar_type_
    return (numbers if numbers.dtype is scalar else _weft.Array.view(numbers, scalar.native)).elements(dtype.native)


def is_index(key):
    """Whether a part of a subscript is a single number."""
    return not isinstance(key, slice) and hasattr(key, "__index__")


def place(key, extent):
    """An index counted from the start. Errors: IndexError out of range."""
    k = key.__index__()
    if not -extent <= k < extent:
        raise IndexError(f"index {k} is out of bounds for an extent of {extent}")
    return k + extent if k < 0 else k


def normalised(key, extent):
    """A slice of one index as one from the start."""
    return slice(*key.indices(extent)) if isinstance(key, slice) else key


def part(array, keys):
    """The view of an array that indices and slices name. Errors: IndexError and RuntimeError for what is no view."""
    made = array
    dimension = 0
    for key in keys:
        extent = made.shape[dimension]
        if key is Ellipsis or not isinstance(key, slice) and not is_index(key):
            raise RuntimeError(f"an array is indexed by integers and slices, not by {key!r}")
        if is_index(key):
            k = place(key, extent)
            made = made.slice(dimension, k, k + 1, 1)
            if made.ndim > 1:
                made = dropped(made, dimension)
            continue
        low, high, step = key.indices(extent)
        if step < 1:
            raise RuntimeError("the step of a slice of an array is positive")
        made = made.slice(dimension, low, max(low, high), step)
        dimension += 1
    return made


def dropped(array, dimension):
    """The view without a dimension of extent 1."""
    axes = (dimension, *(k for k in range(array.ndim) if k != dimension))
    return (array.permute(axes) if dimension else array).row(0)


def complete_shape(shape, array):
    """The shape with -1 replaced. Errors: RuntimeError for a shape of another size."""
    shape = (shape,) if is_index(shape) else tuple(int(n) for n in shape)
    if len(shape) > 4 or not shape:
        raise RuntimeError(f"an array has 1 to 4 dimensions, not {len(shape)}")
    if shape.count(-1) > 1:
        raise RuntimeError(f"Cannot infer shape if more than one index is -1: {shape}")
    if -1 in shape:
        others = int(np.prod([n for n in shape if n != -1]))
        missing = array.size // others if others else 0
        shape = tuple(missing if n == -1 else n for n in shape)
    if int(np.prod(shape)) != array.size:
        raise RuntimeError(
            f"cannot reshape array of shape {array.shape} (size {array.size}) into shape {shape} "
            f"(size {int(np.prod(shape))})"
        )
    return shape


def shaped_numpy(array):
    """NumPy's array of the elements, with a further dimension for components, structured for structs."""
    dtype = array.dtype
    if dtype.native.kind == "struct":
        return structured_numpy(array, numpy_types.struct_dtype(dtype))
    raw = _weft.Array.numpy(array)
    inner = numpy_types.element_layout(dtype)[1]
    return raw if raw.shape == tuple(array.shape) + inner else raw.reshape(tuple(array.shape) + inner)


class HostMemory:
    """The bytes of an array on the host, as NumPy takes them; keeps the array."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = {
            "shape": (array.nbytes,),
            "typestr": "|u1",
            "data": (array.host_address(), False),
            "version": 3,
        }


def structured_numpy(array, dtype):
    """NumPy's array of structs: shared memory where that is the host's and in order, else a copy."""
    if array.native_device.wraps_host and array.size and array.is_contiguous:
        return np.asarray(HostMemory(array)).view(dtype).reshape(array.shape)
    return np.frombuffer(array.contiguous().bytes(), dtype=np.uint8).view(dtype).reshape(array.shape)


def is_element(dtype, value):
    """Whether a value of the host is one element, not a sequence of them."""
    if isinstance(value, (composites.Composite, structs.StructInstance)) or not hasattr(value, "__len__"):
        return True
    return dtype.native.kind not in ("scalar", "struct") and np.shape(value) == tuple(dtype._shape_)


def element_of(dtype, value):
    """A value of the host as the module fills arrays with it. Errors: RuntimeError for what is no element."""
    if dtype.native.kind == "scalar":
        number = composites.number_of(value)
        return number.item() if hasattr(number, "item") else number
    if dtype.native.kind == "struct":
        if not isinstance(value, dtype):
            return dtype() if isinstance(value, (int, float)) and value == 0 else refuse_element(dtype, value)
        if dtype.native.holds_arrays and (held := structs.held_array(value)):
            raise RuntimeError(f"{dtype.__name__}.{held} is an array: structs that hold arrays are no elements of arrays")
        return value
    if isinstance(value, dtype):
        return value
    if isinstance(value, composites.Composite) and value._shape_ != dtype._shape_:
        return refuse_element(dtype, value)
    return dtype(value)


def refuse_element(dtype, value):
    """Throws the error of a value that is no element."""
    raise RuntimeError(f"a {type(value).__name__} is no {dtype.__name__}")


def struct_from_numbers(cls, numbers):
    """A struct from the numbers of its fields in order; arrays inside it are left out."""
    made = cls()
    for name, kind in cls._wp_fields_.items():
        if isinstance(kind, ArrayType):
            continue
        if kind.native.kind == "struct":
            setattr(made, name, struct_from_numbers(kind, numbers))
        elif kind.native.kind == "scalar":
            setattr(made, name, next(numbers))
        else:
            setattr(made, name, kind._make([next(numbers) for _ in range(kind._length_)]))
    return made


def struct_from_numpy(cls, element):
    """A struct from an element of a structured array."""
    made = cls()
    for name, kind in cls._wp_fields_.items():
        if isinstance(kind, ArrayType):
            continue
        if kind.native.kind == "struct":
            setattr(made, name, struct_from_numpy(kind, element[name]))
        else:
            value = element[name]
            setattr(made, name, value.item() if kind.native.kind == "scalar" else kind._make(value.reshape(-1).tolist()))
    return made


def from_data(data, dtype, shape, ndim, device, copy):
    """The array of host data or of another array. See array."""
    if isinstance(data, _weft.Array):
        return from_array(data, dtype, shape, device, copy)
    if hasattr(data, "__cuda_array_interface__") and not hasattr(data, "__array_interface__"):
        native = dtype.native if is_concrete(dtype) else None
        return from_array(_weft.from_cuda_interface(data, native, None, copy), dtype, shape, device, False)
    if not is_concrete(dtype):
        dtype = numpy_types.guess_element(data)
    converted = to_numpy(data, dtype)
    base, inner = numpy_types.element_layout(dtype)
    if len(inner) == 1 and converted.ndim > 1 and converted.shape[-2:] == (*inner, 1):
        converted = converted[..., 0]  # columns
    outer = outer_shape(converted, dtype, inner, shape)
    native = device_from(device)
    shares = isinstance(data, np.ndarray) or hasattr(data, "__array_interface__")
    if not copy and shares and converted.dtype == base:
        shared = wrap_numpy(converted, dtype, inner, outer, native)
        if shared is not None:
            return shared
    flat = np.ascontiguousarray(converted, dtype=base)
    return _weft.from_host(flat.reshape(-1).view(np.uint8).data, dtype.native, outer, native)


def from_array(data, dtype, shape, device, copy):
    """The array of another array."""
    made = data
    if is_concrete(dtype) and dtype.native is not data.element_dtype:
        return from_data(data.numpy(), dtype, shape, None, device or data.native_device, True)
    if shape is not None:
        made = made.reshape(shape)
    if device is not None and get_device(device).native != data.native_device:
        return clone(made, device=device)
    return clone(made) if copy else made


def to_numpy(data, dtype):
    """Host data as NumPy's array, whose last dimensions are those of an element."""
    if dtype.native.kind == "struct":
        made = numpy_types.struct_dtype(dtype)
        if isinstance(data, np.ndarray):
            return data
        if dtype.native.holds_arrays:
            raise RuntimeError(f"arrays of {dtype.__name__}, which holds arrays, are made empty, not from data")
        items = [data] if isinstance(data, structs.StructInstance) else list(data)
        return np.array([item.numpy_value() for item in items], dtype=made)
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], composites.Composite):
        inner = tuple(data[0]._shape_)
        return np.array([item.tolist() for item in data]).reshape((len(data), *inner))
    if isinstance(data, (list, tuple)):
        base = numpy_types.element_layout(dtype)[0]
        try:
            return np.array(data, dtype=base)
        except (ValueError, OverflowError, TypeError) as error:
            made = np.array([getattr(n, "value", n) for n in data]) if is_flat(data) else None
            if made is not None and made.dtype != object and np.array_equal(made.astype(base), made):
                return made.astype(base)
            raise RuntimeError(f"the data cannot be an array of {dtype.__name__}: {error}") from None
    return np.asarray(data)


def is_flat(data):
    """Whether a list holds no lists."""
    return not any(hasattr(item, "__len__") for item in data)


def outer_shape(converted, dtype, inner, shape):
    """The shape in elements of NumPy's array. Errors: RuntimeError where its numbers make no whole elements."""
    count = int(np.prod(inner)) if inner else 1
    if shape is not None:
        shape = (int(shape),) if is_index(shape) else tuple(int(n) for n in shape)
        if -1 in shape:
            others = int(np.prod([n for n in shape if n != -1])) * count
            shape = tuple(converted.size // others if n == -1 else n for n in shape)
        if int(np.prod(shape)) * count != converted.size:
            raise RuntimeError(
                f"Failed to reshape the input data to shape {shape} of {dtype.__name__}: it has {converted.size} numbers"
            )
        return shape
    if not inner:
        return converted.shape if converted.ndim else (1,)
    if converted.ndim >= len(inner) and converted.shape[converted.ndim - len(inner) :] == inner:
        return converted.shape[: converted.ndim - len(inner)] or (1,)
    if converted.ndim and converted.shape[-1] == count:
        return converted.shape[:-1] or (1,)
    if len(inner) == 1 and converted.ndim and converted.shape[-1] % count == 0:
        return (*converted.shape[:-1], converted.shape[-1] // count)
    if converted.size % count == 0 and converted.ndim == 1:
        return (converted.size // count,)
    raise RuntimeError(
        f"The input data has shape {converted.shape}, which makes no elements of type {dtype.__name__}"
    )


def wrap_numpy(data, dtype, inner, outer, device):
    """The array around NumPy's memory; None where it has to be copied."""
    native = device if device is not None else _weft.current_device()
    if not native.wraps_host or data.size == 0:
        return None
    outer_strides = data.strides[: len(outer)]
    contiguous = data.flags.c_contiguous
    if not contiguous:
        wanted = tuple(np.zeros(inner, data.dtype).strides) if inner else ()
        if data.shape != tuple(outer) + inner or data.strides[len(outer) :] != wanted or min(outer_strides) < 0:
            return None
    strides = None if contiguous else outer_strides
    address = data.__array_interface__["data"][0]
    if not data.flags.writeable:
        return None  # kernels could write to it
    return _weft.wrap_host(data, address, dtype.native, outer, strides, native)


def from_pointer(ptr, dtype, shape, strides, device, deleter):
    """The array around memory that the caller gives. `deleter` is called with pointer and bytes when it is freed."""
    if not is_concrete(dtype) or shape is None:
        raise RuntimeError("an array around a pointer needs a dtype and a shape")
    owner = object()  # the caller keeps the memory
    if deleter is not None:
        outer = (int(shape),) if is_index(shape) else tuple(shape)
        owner = Deleter(deleter, ptr, int(np.prod(outer)) * dtype.native.size)
    return _weft.wrap_host(owner, int(ptr), dtype.native, shape, strides, device_from(device))


class Deleter:
    """Calls a function when the last array around a piece of memory is gone."""

    def __init__(self, function, ptr, size):
        self.function = function
        self.ptr = ptr
        self.size = size

    def __del__(self):
        self.function(self.ptr, self.size)


def clone(src, device=None, requires_grad=None, pinned=None, retain_grad=False):
    """A copy of an array, on the same device or another; with gradient storage if the original has it.

    Copies on a tape carry gradients.
    """
    target = src.native_device if device is None else get_device(device).native
    made = _weft.empty(src.shape, src.element_dtype, target, False)
    made.requires_grad = src.requires_grad if requires_grad is None else requires_grad
    copy(made, src)
    return made


def copy(dest, src, dest_offset=0, src_offset=0, count=0, stream=None):
    """Copies elements between arrays, of any devices. With offsets or a count: `count` elements of contiguous arrays.

    Errors: RuntimeError for other types or shapes, or for elements beyond an end.
    """
    if not all(hasattr(n, "__index__") for n in (dest_offset, src_offset, count)):
        raise RuntimeError("the offsets and the count of a copy must be integers")
    for name, n in (("Source offset", src_offset), ("Destination offset", dest_offset), ("count", count)):
        if n < 0:
            raise RuntimeError(f"{name} must be non-negative, not {n}")
    if isinstance(dest, indexedarray) or isinstance(src, indexedarray):
        if dest_offset or src_offset or count:
            raise RuntimeError("indexed or Fabric arrays are copied as a whole, without offsets")
        return copy_indexed(dest, src)
    if not isinstance(dest, _weft.Array) or not isinstance(src, _weft.Array):
        raise RuntimeError("Copy source and destination must be arrays")
    if src.element_dtype is not dest.element_dtype:
        src = like_target(dest, src)
    if dest_offset or src_offset or count:
        count = count if count > 0 else src.size - src_offset
        if src_offset + count > src.size:
            raise RuntimeError(
                f"Trying to copy source buffer with size ({count}) from offset ({src_offset}) is too large: "
                f"it exceeds the source size {src.size}"
            )
        if not (src.is_contiguous and dest.is_contiguous):
            refuse_offsets(dest, dest_offset, count)
            if not src.ndim == dest.ndim == 1:
                raise RuntimeError("offsets and counts of arrays that are not contiguous are only supported for 1-D arrays")
            dest.slice(0, dest_offset, dest_offset + count, 1).copy_from(src.slice(0, src_offset, src_offset + count, 1))
            return
        refuse_offsets(dest, dest_offset, count)
        dest.copy_range(src, dest_offset, src_offset, count)
        return
    if src.shape != dest.shape:
        if src.size == dest.size and src.is_contiguous and dest.is_contiguous:
            dest.reshape(src.shape).copy_from(src)
            return
        if src.ndim == dest.ndim == 1 and src.size < dest.size:
            dest.slice(0, 0, src.size, 1).copy_from(src)
            return
        raise RuntimeError(
            f"Incompatible array shapes: destination shape={tuple(dest.shape)}, source shape={tuple(src.shape)}"
        )
    dest.copy_from(src)


def refuse_offsets(dest, offset, count):
    """Refuses a copy beyond the end of its target."""
    if offset < 0 or offset + count > dest.size:
        raise RuntimeError(f"Trying to copy source buffer with size ({count}) to offset ({offset}) is too large")


def like_target(dest, src):
    """The source as elements of the target's type, where both are of one size. Errors: RuntimeError elsewhere."""
    if src.itemsize == dest.itemsize and src.shape == dest.shape:
        return _weft.Array.view(src, dest.element_dtype)
    raise RuntimeError(
        f"Incompatible array data types: destination dtype={type_name(dest.dtype)}, source dtype={type_name(src.dtype)}"
    )


_weft.set_array_class(array)

from .indexed import choose, copy_indexed, indexedarray  # noqa: E402  (which make their elements' arrays here)
