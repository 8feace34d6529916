"""Questions about types and values: is_vector, type_size_in_bytes, types_equal, ..."""

import typing

from . import composites, matrices, patterns, quaternions, scalars, structs, vectors
from .annotations import ArrayType, is_concrete, type_name


def _is_type(value):
    """Whether a value is a type itself."""
    return isinstance(value, (type, ArrayType, patterns.Pattern))


def type_is_int(cls: object) -> bool:
    """Whether a type is one of the integers."""
    return cls is int or cls in scalars.INTEGERS


def type_is_float(cls: object) -> bool:
    """Whether a type is one of the floating-point numbers."""
    return cls is float or cls in scalars.FLOATS


def type_is_scalar(cls: object) -> bool:
    """Whether a type is one of the numbers."""
    return type_is_int(cls) or type_is_float(cls)


def type_is_vector(cls: object) -> bool:
    """Whether a type is one of the vectors."""
    return _kind(cls) == "vector"


def type_is_matrix(cls: object) -> bool:
    """Whether a type is one of the matrices."""
    return _kind(cls) == "matrix"


def type_is_quaternion(cls: object) -> bool:
    """Whether a type is one of the quaternions."""
    return _kind(cls) == "quaternion"


def type_is_transformation(cls: object) -> bool:
    """Whether a type is one of the transforms."""
    return _kind(cls) == "transform"


def type_is_composite(cls: object) -> bool:
    """Whether a type is a vector, matrix, quaternion or transform."""
    return _kind(cls) in ("vector", "matrix", "quaternion", "transform")


def type_is_struct(cls: object) -> bool:
    """Whether a type is a struct."""
    return isinstance(cls, type) and issubclass(cls, structs.StructInstance)


def type_is_value(cls: object) -> bool:
    """Whether a type is a scalar or a composite."""
    return type_is_scalar(cls) or type_is_composite(cls)


def type_is_array(cls: object) -> bool:
    """Whether a type is one of arrays."""
    return isinstance(cls, type) and getattr(cls, "_wp_is_array_", False)


def type_is_tile(cls: object) -> bool:
    """Whether a type is a tile's: there are none yet."""
    return False


def _kind(cls):
    if isinstance(cls, patterns.Pattern):
        return cls.kind
    if isinstance(cls, type) and issubclass(cls, composites.Composite):
        if cls.native is not None:
            return cls.native.kind
        for kind, base in (
            ("quaternion", quaternions.Quaternion),
            ("transform", quaternions.Transform),
            ("vector", vectors.Vector),
            ("matrix", matrices.Matrix),
        ):
            if issubclass(cls, base):
                return kind
    return None


def is_int(value: object) -> bool:
    """Whether a value is an integer."""
    return not _is_type(value) and type_is_int(type(value))


def is_float(value: object) -> bool:
    """Whether a value is a floating-point number."""
    return not _is_type(value) and type_is_float(type(value))


def is_scalar(value: object) -> bool:
    """Whether a value is a number."""
    return not _is_type(value) and type_is_scalar(type(value))


def is_vector(value: object) -> bool:
    """Whether a value is a vector."""
    return not _is_type(value) and type_is_vector(type(value))


def is_matrix(value: object) -> bool:
    """Whether a value is a matrix."""
    return not _is_type(value) and type_is_matrix(type(value))


def is_quaternion(value: object) -> bool:
    """Whether a value is a quaternion."""
    return not _is_type(value) and type_is_quaternion(type(value))


def is_transformation(value: object) -> bool:
    """Whether a value is a transform."""
    return not _is_type(value) and type_is_transformation(type(value))


def is_composite(value: object) -> bool:
    """Whether a value is a vector, matrix, quaternion or transform."""
    return not _is_type(value) and type_is_composite(type(value))


def is_struct(value: object) -> bool:
    """Whether a value is an instance of a struct."""
    return not _is_type(value) and type_is_struct(type(value))


def is_value(value: object) -> bool:
    """Whether a value is a scalar or a composite."""
    return not _is_type(value) and type_is_value(type(value))


def is_array(value: object) -> bool:
    """Whether a value is an array, or an annotation of one."""
    return isinstance(value, ArrayType) or not _is_type(value) and type_is_array(type(value))


def is_tile(value: object) -> bool:
    """Whether a value is a tile: there are none yet."""
    return False


def type_scalar_type(cls: typing.Any) -> typing.Any:
    """The scalar type of a type's components."""
    return getattr(cls, "_wp_scalar_type_", None) or composites.scalar_of(cls)


def type_size(cls: typing.Any) -> int:
    """The number of scalars in a value. Errors: TypeError for what is no value type."""
    if type_is_scalar(cls) or cls in (bool, scalars.bool):
        return 1
    if type_is_composite(cls) and is_concrete(cls):
        return cls._length_
    raise TypeError(f"{cls!r} is no type of values")


def type_size_in_bytes(cls: typing.Any) -> int:
    """The bytes of an element in memory. Errors: TypeError for what is no value type."""
    if not is_concrete(cls):
        cls = composites.scalar_of(cls)
    return cls.native.size


def types_equal(a: typing.Any, b: typing.Any, match_generic: bool = False) -> bool:
    """Whether two types are one; with `match_generic` also where one is open and allows the other."""
    a, b = (composites.scalar_of(t) if t in (int, float, bool) else t for t in (a, b))
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        return (
            isinstance(a, (tuple, list))
            and isinstance(b, (tuple, list))
            and len(a) == len(b)
            and all(types_equal(x, y, match_generic) for x, y in zip(a, b))
        )
    if match_generic and (a is typing.Any or b is typing.Any):
        return True
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        return a.ndim == b.ndim and types_equal(a.dtype, b.dtype, match_generic)
    if is_concrete(a) and is_concrete(b):
        return a.native is b.native
    if match_generic:
        for pattern, other in ((a, b), (b, a)):
            if isinstance(pattern, patterns.Pattern) and is_concrete(other):
                return pattern.matches(other)
            if isinstance(pattern, patterns._ScalarSet):
                return other in pattern.members
    return a == b


def type_repr(cls: typing.Any) -> str:
    """A type as text."""
    return type_name(cls)
