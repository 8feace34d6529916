"""Structs: classes whose annotated attributes a kernel sees as fields."""

import sys
import typing

from .. import _weft
from . import annotations, composites, scalars


class StructInstance:
    """The instances of all structs: attributes in the order of the declaration."""

    native = None
    _wp_fields_ = {}
    _wp_layout_ = {}
    """The fields as memory has them: of a struct without fields a byte without a name."""

    def __init__(self, *args, **kwargs):
        fields = type(self)._wp_fields_
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} has {len(fields)} fields, not {len(args)}")
        defaults = type(self)._wp_defaults_
        given = dict(zip(fields, args))
        for name, value in kwargs.items():
            if name not in fields:
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
            if name in given:
                raise TypeError(f"field {name!r} of {type(self).__name__} is given twice")
            given[name] = value
        for name, annotation in fields.items():
            if name in given:
                setattr(self, name, given[name])
            elif name in defaults:
                setattr(self, name, defaults[name])
            else:
                object.__setattr__(self, name, zero_of(annotation))
        if not fields:
            self.__dict__[""] = 0  # the byte of a struct without fields

    def __setattr__(self, name, value):
        annotation = type(self)._wp_fields_.get(name)
        if annotation is None:
            raise AttributeError(f"struct {type(self).__name__} has no field {name!r}")
        object.__setattr__(self, name, taken(type(self).__name__, name, annotation, value))

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self)._wp_fields_)

    __hash__ = None

    def __repr__(self):
        from ..runtime.showing import array_brief  # which knows arrays

        fields = ", ".join(f"{name}={array_brief(getattr(self, name))}" for name in type(self)._wp_fields_)
        return f"{type(self).__name__}({fields})"

    def _repr_html_(self):
        """What notebooks show."""
        from ..runtime.showing import struct_html

        return struct_html(self)

    def assign(self, other):
        """Copies all fields of another instance of the same struct."""
        for name in type(self)._wp_fields_:
            setattr(self, name, getattr(other, name))

    def to(self, device):
        """A copy whose arrays are on `device`."""
        made = type(self)()
        for name, annotation in type(self)._wp_fields_.items():
            value = getattr(self, name)
            if isinstance(annotation, annotations.ArrayType):
                value = None if value is None else value.to(device)
            elif isinstance(value, StructInstance):
                value = value.to(device)
            setattr(made, name, value)
        return made

    def __ctype__(self):
        """The struct itself, for programs that give recorded launches their arguments so."""
        return self

    @classmethod
    def numpy_dtype(cls):
        """NumPy's structured type with the same layout."""
        from .numpy_types import struct_dtype  # which knows structs

        return struct_dtype(cls)

    def numpy_value(self):
        """The fields as a tuple of numbers and tuples, as NumPy's structured arrays take them."""
        parts = []
        for name, annotation in type(self)._wp_fields_.items():
            value = getattr(self, name)
            if isinstance(annotation, annotations.ArrayType):
                raise TypeError(f"field {name!r} is an array, which NumPy's structured arrays cannot hold")
            if isinstance(value, StructInstance):
                parts.append(value.numpy_value())
            elif annotation.native.kind == "scalar":
                parts.append(composites.number_of(value))
            elif annotation.native.kind == "matrix":
                parts.append([list(row) for row in value])
            else:
                parts.append(tuple(value.tolist()))
        return tuple(parts)


def held_array(value):
    """The path of a field that holds an array, in a struct or in structs inside it; None if no array is set."""
    for name in type(value)._wp_fields_:
        field = getattr(value, name)
        if isinstance(field, StructInstance):
            inner = held_array(field)
            if inner:
                return f"{name}.{inner}"
        elif field is not None and hasattr(field, "element_dtype"):
            return name
    return None


def zero_of(annotation):
    """The value of a field that was not set."""
    if isinstance(annotation, annotations.ArrayType):
        return None
    if annotation.native.kind == "scalar":
        return annotation.clean(0)
    return annotation() if annotation.native.kind == "struct" else annotation._make([0] * annotation._length_)


def taken(struct, name, annotation, value):
    """The value as a field keeps it. Errors: TypeError for a value that the field's type cannot hold."""
    if isinstance(annotation, annotations.ArrayType):
        if value is None:
            return None
        where, kind = f"{struct}: Struct field '{name}'", "indexed array" if annotation.indexed else "array"
        element = getattr(value, "dtype", None)
        if getattr(value, "element_dtype", None) is None:
            raise TypeError(f"{where} expects a Warp {kind}, got {type(value).__name__}")
        if not annotations.same_type(annotation.dtype, element):
            wanted, given = annotations.type_name(annotation.dtype), annotations.type_name(element)
            raise TypeError(f"{where} expects dtype {wanted}, got {given}")
        if annotation.indexed != getattr(value, "_wp_is_indexed_", False):
            raise TypeError(f"{where} expects a Warp {kind}, got {'an' if annotation.indexed else 'an indexed'} array")
        if annotation.ndim is not typing.Any and value.ndim != annotation.ndim:
            raise TypeError(
                f"{where} expects an array with {annotation.ndim} dimension(s), got {value.ndim} dimension(s)"
            )
        return value
    if type(value) is annotation and issubclass(annotation, scalars.Scalar):
        return value  # which keeps its type
    if annotation.native.kind == "scalar":
        number = composites.number_of(value)
        if hasattr(number, "item"):
            number = number.item()
        if not isinstance(number, (int, float)):
            raise TypeError(f"field {struct}.{name} is of type {annotation.__name__}, not {type(value).__name__}")
        return annotation.clean(number)
    if isinstance(value, StructInstance) or annotation.native.kind == "struct":
        if getattr(type(value), "native", None) is not annotation.native:
            raise TypeError(f"field {struct}.{name} is a {annotation.__name__}, not {type(value).__name__}")
        return value
    if value is None:
        return zero_of(annotation)
    if isinstance(value, composites.Composite) and annotations.same_type(annotation, type(value)):
        return annotation._make(value.tolist())
    if isinstance(value, scalars.Scalar) or not hasattr(value, "__len__"):
        raise TypeError(f"Struct field '{name}' expects {annotation.__name__} but got a single value")
    return annotation._make(_exactly(struct, name, annotation, composites.flatten(value)))


def _exactly(struct, name, annotation, numbers):
    if len(numbers) != annotation._length_:
        raise ValueError(f"field {struct}.{name} has {annotation._length_} components, not {len(numbers)}")
    return numbers


def struct(cls=None, *, module=None):
    """Makes a struct type of a class with annotated attributes (decorator).

    Fields are scalars, vectors, matrices, quaternions, transforms, structs and arrays, laid out as C does. A class
    attribute of a field's name is its default. `module` is kept for programs that say it: a struct is of its Python module.
    Errors: TypeError for a field whose type no kernel knows; RuntimeError for a class with bases.
    """
    if cls is None:
        return lambda cls: struct(cls, module=module)
    if cls.__bases__ != (object,):
        raise RuntimeError(f"struct {cls.__name__} has bases: Warp structs must be defined as base classes")
    module = sys.modules.get(cls.__module__)
    names = dict(vars(module)) if module else {}
    frame = sys._getframe(1)
    fields, native_fields, defaults = {}, [], {}
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():
        if isinstance(annotation, str):
            annotation = eval(annotation, {**names, **frame.f_globals, **frame.f_locals})
        try:
            kind = annotations.value_type(annotation)
        except TypeError as error:
            raise TypeError(f"field {name!r} of struct {cls.__name__}: {error}") from None
        if annotations.is_open(kind) or isinstance(kind, tuple) or kind is typing.Callable:
            raise TypeError(f"field {name!r} of struct {cls.__name__} leaves its type open")
        fields[name] = kind
        if isinstance(kind, annotations.ArrayType) and kind.indexed:
            from ..language.arrays.indexed import native_type

            native_fields.append((name, native_type(kind)))
        elif isinstance(kind, annotations.ArrayType):
            native_fields.append((name, (kind.dtype.native, kind.ndim)))
        else:
            native_fields.append((name, kind.native))
        if name in cls.__dict__:
            defaults[name] = cls.__dict__[name]
    members = {k: v for k, v in cls.__dict__.items() if k not in fields and k not in ("__dict__", "__weakref__")}
    # A struct without fields still takes a byte, as in C++.
    native = _weft.struct_dtype(cls.__name__, native_fields or [("", scalars.uint8.native)])
    members.update(
        native=native,
        _wp_fields_=fields,
        _wp_layout_=fields or {"": scalars.uint8},
        _wp_defaults_=defaults,
        _wp_scalar_type_=None,
        _shape_=(),
        _length_=native.count,
        __module__=cls.__module__,
        __qualname__=cls.__qualname__,
        __doc__=cls.__doc__,
        key=cls.__name__,
    )
    made = type(cls.__name__, (StructInstance,), members)
    made.cls = made
    native.python = made
    return made
