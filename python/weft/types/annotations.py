"""What a parameter's annotation says: a value type, an array of a type, a struct, or an open type."""

import collections.abc
import types
import typing
from typing import Any

import numpy as np

from . import composites, patterns, scalars


class ArrayType:
    """The annotation of an array parameter: ``wp.array(dtype=float)``, ``wp.array2d[wp.vec3]``, ...

    `dtype` is an element type of the package, ``Any`` or an open type; `ndim` is 1 to 4, or ``Any``.
    Errors: ValueError for another number of dimensions. A type that no array has is refused where a kernel uses it.
    """

    __slots__ = ("dtype", "indexed", "ndim")

    def __init__(self, dtype=Any, ndim=1, indexed=False):
        self.dtype = annotated_element(dtype)
        self.ndim = Any if ndim is None else ndim
        self.indexed = indexed
        if ndim is not None and ndim is not Any and ndim not in (1, 2, 3, 4):
            raise ValueError(f"ndim must be between 1 and 4, not {ndim}")

    @property
    def is_open(self):
        """Whether arguments decide the element type or the number of dimensions."""
        return self.ndim is Any or not is_concrete(self.dtype)

    def __eq__(self, other):
        return isinstance(other, ArrayType) and (self.dtype, self.ndim, self.indexed) == (
            other.dtype,
            other.ndim,
            other.indexed,
        )

    def __hash__(self):
        return hash((self.dtype, self.ndim, self.indexed))

    def __or__(self, other):
        return typing.Union[self, other]

    def __ror__(self, other):
        return typing.Union[other, self]

    def described(self):
        """The type as messages of launches show it."""
        name = "indexedarray" if self.indexed else "array"
        return f"{name}(ndim={self.ndim}, dtype={type_name(self.dtype)})"

    def __repr__(self):
        """The type as annotations write it."""
        dtype = written(self.dtype)
        if self.ndim is Any:
            return f"wp.{'indexedarray' if self.indexed else 'array'}[{dtype}, Any]"
        if self.indexed:
            return f"wp.indexedarray[{dtype}]" if self.ndim == 1 else f"wp.indexedarray[{dtype}, Literal[{self.ndim}]]"
        return f"wp.array{'' if self.ndim == 1 else str(self.ndim) + 'd'}[{dtype}]"


class fixedarray:
    """``wp.fixedarray(shape=(2, 3), dtype=int)`` annotates what a function takes or returns: an array that a kernel makes
    for a thread with ``zeros(shape, dtype)``. Functions take and return it as any array of as many dimensions.
    """

    _wp_is_array_ = True

    def __new__(cls, dtype=Any, shape=None, ndim=None):
        extents = (shape,) if isinstance(shape, int) else tuple(shape or ())
        return ArrayType(dtype, len(extents) or ndim or 1)


def written(dtype):
    """An element type as a program would write it."""
    from .named import NAMED

    if dtype is Any:
        return "Any"
    name = type_name(dtype)
    if NAMED.get(name) is dtype or getattr(scalars, name, None) is dtype:
        return f"wp.{name}"
    kind = dtype.native.kind if is_concrete(dtype) else None
    if kind == "vector":
        return f"vector(length={dtype._length_}, dtype={dtype._wp_scalar_type_.__name__})"
    if kind == "matrix":
        return f"matrix(shape={dtype._shape_}, dtype={dtype._wp_scalar_type_.__name__})"
    return name


def dimensions_of(item):
    """The number of dimensions in an annotation's brackets: a number, or Literal of one, or Any.

    Errors: TypeError for a Literal of several.
    """
    return patterns.single_literal(item)


class RefType:
    """The annotation of a parameter that stands for a variable of the caller: ``wp.ref[float]``."""

    def __init__(self, dtype):
        self.dtype = value_type(dtype)
        if not is_concrete(self.dtype):
            raise TypeError(f"wp.ref takes a type of values, such as wp.ref[float], not {dtype!r}")

    @property
    def value_type(self):
        """The type of the variable."""
        return self.dtype

    def __eq__(self, other):
        return isinstance(other, RefType) and self.dtype is other.dtype

    def __hash__(self):
        return hash((RefType, self.dtype))

    def __repr__(self):
        return f"wp.ref[{type_name(self.dtype)}]"


class ref:
    """``wp.ref[T]`` annotates a parameter of a function, through which it assigns to a variable, a field or an element of
    its caller.
    """

    def __class_getitem__(cls, item):
        return RefType(item)


def element_type(dtype):
    """The package's class for what a program names as an element type. Errors: TypeError for what is none."""
    if dtype is Any or dtype is None:
        return Any
    if isinstance(dtype, (patterns.Pattern, patterns._ScalarSet, typing.TypeVar)):
        return dtype
    if getattr(dtype, "native", None) is not None and isinstance(dtype, type):
        return dtype
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        from .numpy_types import dtype_from_numpy

        return dtype_from_numpy(dtype)
    return composites.scalar_of(dtype)


def annotated_element(dtype):
    """The same for an annotation, which may name a class that is no element type until a kernel uses it."""
    is_class = isinstance(dtype, type) and dtype.__module__ not in ("builtins", "numpy")
    if is_class and not hasattr(dtype, "native"):
        return dtype
    return element_type(dtype)


def is_concrete(cls):
    """Whether a value type leaves nothing open."""
    return isinstance(cls, type) and getattr(cls, "native", None) is not None


def value_type(annotation):
    """The class or pattern that an annotation of a parameter means, or its ArrayType.

    Errors: TypeError for an annotation that means no type of kernels.
    """
    if isinstance(annotation, (ArrayType, RefType)):
        return annotation
    made = getattr(annotation, "_wp_annotation_", None)
    if made is not None:
        return made
    if annotation is Any or isinstance(annotation, (patterns.Pattern, patterns._ScalarSet, typing.TypeVar)):
        return annotation
    if annotation in (int, float, bool):
        return composites.scalar_of(annotation)
    if is_concrete(annotation):
        return annotation
    if typing.get_origin(annotation) is tuple and Ellipsis in typing.get_args(annotation):
        return Any
    if typing.get_origin(annotation) is tuple:
        return tuple(value_type(a) for a in typing.get_args(annotation))
    if isinstance(annotation, type) and annotation.__module__ != "builtins" and issubclass(annotation, int):
        return scalars.int32  # enumerations of integers
    if is_callable_type(annotation):
        return typing.Callable
    raise TypeError(f"{annotation!r} is no type of kernels: use int, float, wp.vec3, wp.array(dtype=...), a struct, ...")


def is_callable_type(annotation):
    """Whether an annotation means functions: ``Callable``, with or without types, or the package's Function."""
    origin = typing.get_origin(annotation) or annotation
    return origin in (typing.Callable, collections.abc.Callable) or getattr(annotation, "_wp_is_function_", False)


def is_union(annotation):
    """Whether an annotation is a union of types, which functions of the host may have."""
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def is_open(annotation):
    """Whether a parameter's type is decided by its argument."""
    if isinstance(annotation, ArrayType):
        return annotation.is_open
    if isinstance(annotation, RefType):
        return False
    if isinstance(annotation, tuple):
        return any(is_open(a) for a in annotation)
    return not is_concrete(annotation)


def matches(annotation, given):
    """Whether an argument's type is one that a parameter takes, exactly: literals are adapted before."""
    if annotation is Any:
        return True
    if isinstance(annotation, RefType):
        return is_concrete(given) and same_type(annotation.dtype, given)
    if annotation is typing.Callable:
        return callable(given) and not isinstance(given, type)
    if isinstance(annotation, ArrayType):
        if not isinstance(given, ArrayType) or annotation.indexed != given.indexed:
            return False
        if annotation.ndim is not Any and given.ndim != annotation.ndim:
            return False
        return matches(annotation.dtype, given.dtype)
    if isinstance(annotation, tuple):
        return (
            isinstance(given, tuple)
            and len(given) == len(annotation)
            and all(matches(a, g) for a, g in zip(annotation, given))
        )
    if isinstance(given, (ArrayType, tuple)):
        return False
    if isinstance(annotation, patterns.Pattern):
        return annotation.matches(given)
    if isinstance(annotation, (patterns._ScalarSet, typing.TypeVar)):
        return is_concrete(given) and given.native.kind == "scalar" and patterns.allows(annotation, given)
    return is_concrete(given) and same_type(annotation, given)


def same_type(a, b):
    """Whether two concrete types are one: the module has one description for each."""
    return a.native is b.native


def type_name(cls):
    """A type as messages show it."""
    if isinstance(cls, tuple):
        return f"({', '.join(type_name(c) for c in cls)})"
    if isinstance(cls, RefType):
        return repr(cls)
    if isinstance(cls, ArrayType):
        return f"array{'' if cls.ndim == 1 else str(cls.ndim) + 'd'}[{type_name(cls.dtype)}]"
    return getattr(cls, "__name__", str(cls))


def layout_of(kind):
    """A type of parameters with the fields of its structs, for hashes: types of one name may differ in them."""
    if isinstance(kind, ArrayType):
        return (kind.ndim, kind.indexed, layout_of(kind.dtype))
    fields = getattr(kind, "_wp_fields_", None)
    if fields is None:
        return type_name(kind)
    return (kind.__name__, *((name, layout_of(field)) for name, field in fields.items()))


def specificity(annotation):
    """How much a parameter's annotation says, to choose between overloads that all take the arguments."""
    if annotation is Any:
        return 0
    if isinstance(annotation, ArrayType):
        return 2 + specificity(annotation.dtype)
    if isinstance(annotation, (patterns._ScalarSet, typing.TypeVar)):
        return 1
    if isinstance(annotation, patterns.Pattern):
        return 1 + sum(isinstance(n, int) for n in annotation.shape) + (annotation.dtype is not Any)
    return 8


def names_of(function):
    """The names that a Python function sees where it stands: those of its module, and of the functions around it."""
    names = dict(getattr(function, "__globals__", {}))
    closure = getattr(function, "__closure__", None) or ()
    for name, cell in zip(function.__code__.co_freevars, closure):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            pass  # assigned later
    return names


def resolve_annotations(function, extra=None):
    """The annotations of a Python function as objects, with strings evaluated where the function stands.

    Errors: NameError and others of the evaluation.
    """
    names = {**names_of(function), **(extra or {})}
    resolved = {}
    for name, annotation in function.__annotations__.items():
        resolved[name] = eval(annotation, names) if isinstance(annotation, str) else annotation
    return resolved
