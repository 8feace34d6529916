"""Quaternions (x, y, z, w) and transforms (a position and a quaternion)."""

from typing import Any

from .. import _weft
from . import composites, patterns, scalars, vectors

quaternions_ = {}
transforms_ = {}


class Quaternion(vectors.Vector):
    """A quaternion x, y, z, w, of which w is the real part:

    Built from no argument (zeros), four numbers, a vector and the real part, or another quaternion or sequence.
    Errors: ValueError for another number of components.
    """

    _wp_generic_type_str_ = "quat_t"

    def __class_getitem__(cls, item):
        return quaternion(*patterns.type_arguments(item, 1))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(str, self.tolist()))})"


class Transform(vectors.Vector):
    """A transform of a rigid body, a position p and a rotation q:

    Built from no argument (no rotation, at the origin), a position and a quaternion, seven numbers, or keywords ``p`` and
    ``q``. In kernels no argument means zeros.
    Errors: ValueError for another number of components; TypeError for what are no components.
    """

    _wp_generic_type_str_ = "transform_t"

    def __init__(self, *args, p=None, q=None, **others):
        for name in others:
            raise TypeError(f"got an unexpected keyword argument '{name}'")
        check_parts(args, p, q)
        if p is not None or q is not None:
            args = (*args, *(() if p is None else (p,)))
            args = args if args else ((0.0, 0.0, 0.0),)
            args = (*args, (0.0, 0.0, 0.0, 1.0) if q is None else q)
        elif not args:
            args = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        elif len(args) == 1 and not isinstance(args[0], Transform) and _holds(args[0], 3):
            args = (args[0], (0.0, 0.0, 0.0, 1.0))
        super().__init__(*args)

    def __class_getitem__(cls, item):
        return transformation(*patterns.type_arguments(item, 1))

    @property
    def p(self):
        """The position, a vector."""
        return vectors.vector(3, type(self)._wp_scalar_type_)._make(self.tolist()[:3])

    @property
    def q(self):
        """The rotation, a quaternion."""
        return quaternion(type(self)._wp_scalar_type_)._make(self.tolist()[3:])

    def __getattr__(self, name):
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __setattr__(self, name, value):
        if name == "p":
            self[0:3] = value
        elif name == "q":
            self[3:7] = value
        else:
            object.__setattr__(self, name, value)

    def __repr__(self):
        numbers = self.tolist()
        return f"{type(self).__name__}(p={tuple(numbers[:3])}, q={tuple(numbers[3:])})"


def check_parts(args, p, q):
    """Refuses arguments of a transform that say a part twice, or are no parts. Errors: TypeError."""
    if args and (len(args) > 1 or p is not None) and (p is not None or q is not None):
        raise TypeError(f"multiple values for argument '{'q' if p is None else 'p'}'")
    named = {"p": p, "q": q} if p is not None or q is not None else {}
    if len(args) == 2 or q is not None and args:
        named.update(zip("pq", args))
    for name, value in named.items():
        if value is not None and not hasattr(value, "__len__"):
            kind = type(value).__name__
            raise TypeError(f"Invalid argument '{name}' in transformation constructor: expected a sequence, got {kind}")
    if len(args) == 1 and not hasattr(args[0], "__len__") and not hasattr(composites.number_of(args[0]), "__float__"):
        kind = type(args[0]).__name__
        raise TypeError(f"Invalid argument in transformation constructor: expected a scalar value, got {kind}")


def _holds(value, count):
    return hasattr(value, "__len__") and len(value) == count


def _class_of(dtype, kind, base, shape, known):
    """The class of quaternions or transforms of a type of numbers: made once. `kind` is the name of both in patterns."""
    scalar = patterns.scalar_or_none(dtype)
    if scalar is None:
        return patterns.Pattern(kind, (), dtype)
    cls = known.get(scalar)
    if cls is None:
        if scalar not in scalars.FLOATS:
            raise TypeError(f"a {kind} is of float16, float32 or float64, not {scalar.__name__}")
        native = getattr(_weft, f"{kind}_dtype")(scalar.native.code)
        name = {"quaternion": "quat", "transform": "transform"}[kind] + vectors.LETTERS[scalar]
        cls = composites.type_named(name, base, native, scalar, shape, _wp_type_params_=[scalar])
        known[scalar] = cls
    return cls


def quaternion(dtype: Any = scalars.float32) -> Any:
    """The type of quaternions of a floating-point type; the same class each time.

    Errors: TypeError for another type.
    """
    return _class_of(dtype, "quaternion", Quaternion, (4,), quaternions_)


def transformation(dtype: Any = scalars.float32) -> Any:
    """The type of transforms of a floating-point type; the same class each time.

    Errors: TypeError for another type.
    """
    return _class_of(dtype, "transform", Transform, (7,), transforms_)
