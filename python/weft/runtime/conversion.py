"""Arguments of launches that are not the package's own: NumPy and torch arrays, and refusals with the argument's name."""

import types

import numpy as np

from .. import _weft
from ..types import composites, numpy_types, scalars
from ..types.annotations import ArrayType, type_name
from ..types.structs import StructInstance
from .array import array, wrap_numpy


def convert(kernel, position, param, value):
    """The argument as the module takes it. The launch calls it for what it does not know.

    Errors: RuntimeError, TypeError and ValueError that name kernel and argument.
    """
    name, kind = kernel.parameters[position] if not kernel.is_generic else open_parameter(kernel, position, param)
    if isinstance(kind, ArrayType):
        return convert_array(kernel, name, kind, value)
    return convert_value(kernel, name, kind, value)


def open_parameter(kernel, position, param):
    """The name and type of a generic kernel's parameter, of which the launch knows the native type."""
    name = kernel.parameters[position][0]
    if isinstance(param, tuple):
        return name, ArrayType(param[0].python, param[1])
    return name, param.python  # of an indexed array its type


def convert_array(kernel, name, kind, value):
    """An array argument."""
    where = f"Error launching kernel '{kernel.key}', argument '{name}' expects an array of type {kind.described()}"
    if isinstance(value, _weft.Array) and kind.indexed:
        raise RuntimeError(f"{where}, but passed value is no indexed array.")
    if isinstance(value, _weft.Array):
        if value.element_dtype is not kind.dtype.native:
            raise RuntimeError(f"{where}, but passed value has dtype={type_name(value.dtype)}.")
        if value.size == 0:  # of an empty list, whose dimensions nobody knows
            return _weft.empty((0,) * kind.ndim, kind.dtype.native, value.native_device)
        raise RuntimeError(f"{where}, but passed value has {value.ndim} dimension(s).")
    if isinstance(value, np.ndarray) or hasattr(value, "__array_interface__"):
        return convert_numpy(where, kind, np.asarray(value))
    if hasattr(value, "__dlpack__"):
        return convert_shared(where, kind, value, lambda: _weft.from_dlpack(value, kind.dtype.native))
    if hasattr(value, "__cuda_array_interface__"):
        return convert_shared(where, kind, value, lambda: _weft.from_cuda_interface(value, kind.dtype.native))
    raise RuntimeError(f"{where}, but passed value has type {type(value).__name__}.")


def convert_numpy(where, kind, value):
    """NumPy's array, shared."""
    base, inner = numpy_types.element_layout(kind.dtype)
    if value.dtype != base:
        raise RuntimeError(f"{where}, but passed value has dtype={value.dtype}.")
    if not value.flags.writeable:
        raise RuntimeError(f"{where}, but passed value is read-only.")
    outer = value.shape[: value.ndim - len(inner)]
    if value.shape[len(outer) :] != inner or len(outer) != kind.ndim:
        raise RuntimeError(f"{where}, but passed value has shape {value.shape}.")
    if value.size == 0:
        return array(value, dtype=kind.dtype)
    shared = wrap_numpy(value, kind.dtype, inner, outer, None)
    if shared is None:  # a copy would not get what the kernel writes
        raise RuntimeError(f"{where}, but passed value has strides {value.strides}, which no array has.")
    return shared


def convert_shared(where, kind, value, share):
    """An array of another library, shared by a function."""
    try:
        made = share()
    except (RuntimeError, TypeError, BufferError) as error:
        described = f"dtype={getattr(value, 'dtype', None)} and shape {tuple(getattr(value, 'shape', ()))}"
        raise RuntimeError(f"{where}, but passed value has {described}: {error}") from None
    if made.ndim != kind.ndim:
        raise RuntimeError(f"{where}, but passed value has {made.ndim} dimension(s).")
    return made


def convert_value(kernel, name, kind, value):
    """An argument that is a value."""
    where = f"Error launching kernel '{kernel.key}', argument '{name}'"
    if kind.native.kind == "struct" and isinstance(value, kind) and lacks_indexed(value):
        return completed(value)
    if kind.native.kind == "struct":
        raise RuntimeError(f"{where} expects a {kind.__name__}, but passed value has type {type(value).__name__}.")
    if isinstance(value, composites.Composite):
        raise RuntimeError(f"{where} expects {kind.__name__}, but passed value has type {type(value).__name__}.")
    if kind.native.kind == "scalar":
        number = composites.number_of(value)
        if hasattr(number, "item") and np.ndim(number) == 0:
            number = number.item()
        fits = isinstance(number, int) or isinstance(number, float) and not issubclass(kind, scalars.IntegerScalar)
        if not fits:
            raise RuntimeError(f"{where} expects {kind.__name__}, but passed value has type {type(value).__name__}.")
        if issubclass(kind, scalars.IntegerScalar) and kind.clean(number) != number:
            raise OverflowError(f"{where}: {number} is out of the range of {kind.__name__}.")
        return kind.clean(number)
    if value is None:
        raise ValueError(f"{where}: Failed to convert argument for param {name} to {kind.__name__}: nothing is given.")
    if not hasattr(value, "__len__"):
        raise RuntimeError(f"{where} expects {kind.__name__} but got a single value of type {type(value).__name__}.")
    try:
        numbers = composites.flatten(value)
        if len(numbers) == kind._length_:
            return kind._make(numbers)
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(f"{where} expects {kind.__name__}: {error}") from None
    raise RuntimeError(f"{where} expects {kind.__name__}, but passed value has {len(numbers)} components.")


class NoIndexedArray:
    """Stands for an indexed array that a struct was not given: its array and its lists are left out."""

    data = list0 = list1 = list2 = list3 = None


def lacks_indexed(value):
    """Whether a struct, or one inside it, was not given an indexed array."""
    fields = type(value)._wp_fields_
    held = {name: getattr(value, name) for name in fields}
    return any(f is None and fields[n].indexed for n, f in held.items() if isinstance(fields[n], ArrayType)) or any(
        lacks_indexed(f) for f in held.values() if isinstance(f, StructInstance)
    )


def completed(value):
    """The fields of a struct, by name, with stand-ins for the indexed arrays that it was not given."""
    made = types.SimpleNamespace()
    for name, kind in type(value)._wp_fields_.items():
        field = getattr(value, name)
        if isinstance(field, StructInstance):
            field = completed(field)
        elif field is None and kind.indexed:
            field = NoIndexedArray
        setattr(made, name, field)
    return made


_weft.set_converter(convert)
_weft.know_numpy(np.zeros((2, 3), dtype=np.float32)[:, ::2])
