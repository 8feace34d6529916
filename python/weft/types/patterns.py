"""Open types: what an annotation of a generic kernel or function leaves to its arguments."""

import typing

from . import composites, scalars


class _ScalarSet:
    """A set of scalar types in an annotation, such as ``wp.Float``."""

    def __init__(self, name, members):
        self.name = name
        self.members = members

    def __repr__(self):
        return self.name

    def __or__(self, other):
        return typing.Any


Float = _ScalarSet("Float", scalars.FLOATS)
"""Any floating-point type."""
Int = _ScalarSet("Int", scalars.INTEGERS)
"""Any integer type."""
Scalar = _ScalarSet("Scalar", scalars.SCALARS)
"""Any number type."""


def is_scalar_pattern(dtype):
    """Whether a scalar type is left open."""
    return dtype is typing.Any or dtype is None or isinstance(dtype, (_ScalarSet, typing.TypeVar))


def scalar_or_none(dtype):
    """The scalar class; None where it is left open. Errors: TypeError for what is no scalar type."""
    return None if is_scalar_pattern(dtype) else composites.scalar_of(dtype)


def allows(pattern, scalar):
    """Whether a scalar type is one of those that `pattern` allows."""
    if pattern is typing.Any or pattern is None:
        return True
    if isinstance(pattern, _ScalarSet):
        return scalar in pattern.members
    if isinstance(pattern, typing.TypeVar):
        allowed = pattern.__constraints__
        return not allowed or any(allows(a, scalar) for a in allowed)
    return composites.scalar_of(pattern) is scalar


def type_arguments(item, count):
    """What stands in the brackets of ``Vector[float, Literal[3]]``. Errors: TypeError for another number of parts."""
    items = item if isinstance(item, tuple) else (item,)
    if len(items) != count:
        raise TypeError(f"the type requires {count} parameters, got {len(items)}")
    made = [single_literal(part) for part in items]
    for extent in made[1:]:
        if isinstance(extent, int) and extent < 1:
            raise TypeError(f"an extent is a positive integer, not {extent}")
    return made


def single_literal(part):
    """What ``Literal[3]`` says; anything else as it is. Errors: TypeError for a Literal of several things."""
    if typing.get_origin(part) is not typing.Literal:
        return part
    if len(typing.get_args(part)) != 1:
        raise TypeError("Expected a single Literal value")
    return typing.get_args(part)[0]


class Pattern:
    """The vectors, matrices, quaternions or transforms whose shape or scalar type is open."""

    def __init__(self, kind, shape, dtype):
        self.kind = kind
        self.shape = tuple(shape)
        self.dtype = dtype

    def matches(self, cls):
        """Whether a type of the package is one of these."""
        native = getattr(cls, "native", None)
        if native is None or native.kind != self.kind:
            return False
        for want, has in zip(self.shape, cls._shape_):
            if isinstance(want, int) and want != has:
                return False
        return allows(self.dtype, cls._wp_scalar_type_)

    def __eq__(self, other):
        return isinstance(other, Pattern) and (self.kind, self.shape, self.dtype) == (
            other.kind,
            other.shape,
            other.dtype,
        )

    def __hash__(self):
        return hash((self.kind, self.shape, str(self.dtype)))

    def __call__(self, *args, **kwargs):
        raise TypeError(f"{self!r} leaves its type open: name a type to make a value")

    def __repr__(self):
        shape = ", ".join("Any" if not isinstance(n, int) else str(n) for n in self.shape)
        dtype = getattr(self.dtype, "__name__", self.dtype)
        return f"{self.kind}({shape + ', ' if shape else ''}{dtype})"
