"""Vectors of any length and scalar type."""

import operator
from typing import Any

from .. import _weft
from . import composites, empty, patterns, scalars

# The letters after the length in a vector's name: vec3d, vec2ub, ...
LETTERS = {
    scalars.int8: "b",
    scalars.uint8: "ub",
    scalars.int16: "s",
    scalars.uint16: "us",
    scalars.int32: "i",
    scalars.uint32: "ui",
    scalars.int64: "l",
    scalars.uint64: "ul",
    scalars.float16: "h",
    scalars.float32: "f",
    scalars.float64: "d",
    scalars.bool: "bool",
}

made_ = {}


class Vector(composites.Composite):
    """A vector of numbers:

    Built from no argument (zeros), one number (all components), as many numbers as it has components, or another
    vector or sequence of that length.
    Errors: ValueError for another number of components.
    """

    _wp_generic_type_str_ = "vec_t"

    def __init__(self, *args):
        length = type(self)._length_
        if not args:
            numbers = [0] * length
        else:
            numbers = composites.flatten(args)
            if len(numbers) == 1 and len(args) == 1 and length != 1 and not hasattr(args[0], "__len__"):
                numbers = numbers * length
        if len(numbers) != length:
            raise ValueError(
                f"Invalid number of arguments in vector constructor, expected {length} elements, got {len(numbers)}"
            )
        super().__init__(self.native, [composites.scalars_clean(type(self), n) for n in numbers])

    def __class_getitem__(cls, item):
        dtype, length = patterns.type_arguments(item, 2)
        return vector(length, dtype)

    def _place(self, key):
        try:
            k = operator.index(key)
        except TypeError:
            raise KeyError(f"Invalid key {key}, expected int or slice") from None
        n = type(self)._length_
        if not -n <= k < n:
            raise IndexError(f"index {k} is out of range for a vector of {n} components")
        return k + n if k < 0 else k

    def __getitem__(self, key):
        if isinstance(key, slice):
            numbers = self.tolist()[key]
            kind = vector(len(numbers), type(self)._wp_scalar_type_)
            return kind._make(numbers) if numbers else kind()
        return self.get(self._place(key))

    def __setitem__(self, key, value):
        if isinstance(key, slice):
            places = range(*key.indices(type(self)._length_))
            for k, number in zip(places, composites.part_numbers(type(self), value, len(places))):
                self.set(k, number)
            return
        if hasattr(value, "__len__"):
            wanted = type(self)._wp_scalar_type_.__name__
            raise TypeError(f"Expected to assign a `{wanted}` value but got `{type(value).__name__}` instead")
        self.set(self._place(key), composites.scalars_clean(type(self), value))

    def __getattr__(self, name):
        k = "xyzw".find(name) if len(name) == 1 else -1
        if not 0 <= k < type(self)._length_:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.get(k)

    def __setattr__(self, name, value):
        k = "xyzw".find(name) if len(name) == 1 else -1
        if 0 <= k < type(self)._length_:
            self[k] = value
        else:
            object.__setattr__(self, name, value)

    def __iter__(self):
        return iter(self.tolist())

    def __repr__(self):
        scalar = type(self)._wp_scalar_type_
        plain = scalar in (scalars.float32, scalars.int32, scalars.bool)
        numbers = self.tolist()
        return f"{type(self).__name__}({numbers if plain else [scalar(n) for n in numbers]!r})"

    def __str__(self):
        return f"[{', '.join(map(str, self.tolist()))}]"


def vector(length: Any, dtype: Any) -> Any:
    """The type of vectors of `length` components of a scalar type; the same class each time.

    Errors: TypeError for what is no scalar type, ValueError for a length below 1.
    """
    scalar = patterns.scalar_or_none(dtype)
    if scalar is None or not isinstance(length, int):
        return patterns.Pattern("vector", (length,), dtype)
    if length < 0:
        raise ValueError(f"a vector has no negative number of components: {length}")
    if length == 0:
        return empty.empty_type("vector", (0,), scalar)
    cls = made_.get((length, scalar))
    if cls is None:
        name = f"vec{length}{LETTERS[scalar]}"
        native = _weft.vector_dtype(scalar.native.code, length)
        members = {"_wp_type_params_": [length, scalar], "_wp_generic_type_hint_": Vector}
        cls = composites.type_named(name, Vector, native, scalar, (length,), **members)
        made_[length, scalar] = cls
    return cls
