"""What vectors, matrices, quaternions and transforms have in common: components of one scalar type in one value."""

import builtins
import struct

import numpy as np

from .. import _weft
from . import scalars


def scalar_of(dtype):
    """The scalar class that a program names: ``float``, ``wp.float32``, ``bool``, ...

    Errors: TypeError for anything else.
    """
    if dtype is float:
        return scalars.float32
    if dtype is int:
        return scalars.int32
    if dtype is builtins.bool:
        return scalars.bool
    if isinstance(dtype, type) and issubclass(dtype, scalars.Scalar) and dtype.native is not None:
        return dtype
    raise TypeError(f"a scalar type is expected (int32, float32, ...), not {dtype!r}")


def number_of(value):
    """The Python number of a scalar on the host, which may be one of the package's or of NumPy's."""
    return getattr(value, "value", value)


UFUNC_OPERATORS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
}
"""The operators of values for NumPy's functions, with the value first and with it second."""


def is_number_of_numpy(value):
    """Whether an operand of NumPy's has no dimensions."""
    return not isinstance(value, Composite) and getattr(value, "ndim", None) == 0


def array_of(value):
    """The components of a value as NumPy's array."""
    kind = "bool" if value._wp_scalar_type_ is scalars.bool else value._wp_scalar_type_.__name__
    return np.array(value.tolist(), dtype=kind).reshape(value._shape_)


class Composite(_weft.Value):
    """A value of several numbers of one type. Subclasses are made by ``vector``, ``matrix``, ``quaternion`` and
    ``transformation``; each has its description in ``native``.

    Operators follow those of kernels; two values of different types do not mix.
    """

    native = None
    _wp_scalar_type_ = None
    _type_ = None  # of a component, as ctypes has it
    _length_ = 0
    _shape_ = ()

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        """What NumPy computes with the value: an operator beside a number of NumPy's is the value's own, and so are
        comparisons for equality; other functions get the components as an array.
        """
        names = UFUNC_OPERATORS.get(ufunc.__name__) if method == "__call__" and not keywords else None
        if names is not None:
            reflected = inputs[1] is self
            other = inputs[0] if reflected else inputs[1]
            if names[0] in ("__eq__", "__ne__"):
                made = getattr(self, names[0])(other)
                return names[0] == "__ne__" if made is NotImplemented else made
            if is_number_of_numpy(other):
                operator = getattr(self, names[reflected], None)
                return NotImplemented if operator is None else operator(other)
        return getattr(ufunc, method)(*(array_of(x) if isinstance(x, Composite) else x for x in inputs), **keywords)

    def _numbers(self):
        return self.tolist()

    @classmethod
    def from_ptr(cls, ptr):
        """The value of the numbers at an address in the host's memory. Errors: RuntimeError for the address 0."""
        kind = cls._wp_scalar_type_
        words = (kind._type_ * cls._length_).from_address(address_of(ptr))
        if kind is scalars.float16:
            return cls._make(struct.unpack(f"{cls._length_}e", bytes(words)))
        return cls._make(list(words))

    @classmethod
    def _make(cls, numbers):
        """A value from its numbers in row-major order."""
        made = cls.__new__(cls)
        _weft.Value.__init__(made, cls.native, [scalars_clean(cls, n) for n in numbers])
        return made

    def _same(self, other):
        return isinstance(other, Composite) and other.native is self.native

    def _number(self, other):
        """The number of a scalar operand, None if it is none."""
        scalar = type(self)._wp_scalar_type_
        if isinstance(other, scalars.Scalar):
            return other.value if type(other) is scalar else None
        if isinstance(other, (int, float)):
            return other
        if hasattr(other, "dtype") and getattr(other, "ndim", 1) == 0:
            return other.item()
        return None

    def __len__(self):
        return type(self)._shape_[0]

    def __eq__(self, other):
        if self._same(other):
            return self._numbers() == other._numbers()
        try:
            return len(other) == len(self) and all(a == b for a, b in zip(self, other))
        except TypeError:
            return NotImplemented

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self):
        return hash((type(self).__name__, tuple(self._numbers())))

    def __neg__(self):
        return self._make([-n for n in self._numbers()])

    def __pos__(self):
        return self

    def __add__(self, other):
        if not self._same(other):
            return NotImplemented
        return self._make([a + b for a, b in zip(self._numbers(), other._numbers())])

    def __sub__(self, other):
        if not self._same(other):
            return NotImplemented
        return self._make([a - b for a, b in zip(self._numbers(), other._numbers())])

    def __mul__(self, other):
        number = self._number(other)
        if number is not None:
            return self._make([a * number for a in self._numbers()])
        return host_operator("mul", self, other)

    def __rmul__(self, other):
        number = self._number(other)
        if number is not None:
            return self._make([number * a for a in self._numbers()])
        return host_operator("mul", other, self)

    def __matmul__(self, other):
        return host_operator("mul", self, other)

    def __rmatmul__(self, other):
        return host_operator("mul", other, self)

    def __truediv__(self, other):
        return host_operator("div", self, other)

    def __rtruediv__(self, other):
        return host_operator("div", other, self)

    def __mod__(self, other):
        return host_operator("mod", self, other)

    def __rmod__(self, other):
        return host_operator("mod", other, self)

    def __floordiv__(self, other):
        return host_operator("floordiv", self, other)

    def __copy__(self):
        return self._make(self._numbers())

    def __deepcopy__(self, memo):
        return self._make(self._numbers())

    def __reduce__(self):
        return rebuild, (self.native.kind, type(self)._wp_scalar_type_, type(self)._shape_, self._numbers())


def scalars_clean(cls, number):
    """The number as the scalar type of `cls` holds it. Errors: TypeError for what is no number."""
    number = number_of(number)
    if isinstance(number, str):
        wanted = cls._wp_scalar_type_.__name__
        raise TypeError(f"Expected to assign a `{wanted}` value but got `{type(number).__name__}` instead")
    return cls._wp_scalar_type_.clean(number)


def part_numbers(cls, value, count):
    """The numbers for `count` components of a value: one for all, or a sequence of as many.

    Errors: TypeError for what is no sequence of numbers; ValueError for another count.
    """
    if not hasattr(value, "__len__") or isinstance(value, str):
        return [scalars_clean(cls, value)] * count
    for item in value if not isinstance(value, Composite) else ():
        if hasattr(item, "__len__") and len(value) == 1 and isinstance(item, Composite):
            raise TypeError(
                f"Expected to assign a slice from a sequence of `{cls._wp_scalar_type_.__name__}` values "
                f"but got `{type(item).__name__}` instead"
            )
    numbers = flatten(value)
    if len(numbers) != count:
        raise ValueError(f"Can only assign sequence of same size: {count}, not {len(numbers)}")
    return [scalars_clean(cls, number) for number in numbers]


def address_of(address):
    """The address of numbers in memory. Errors: RuntimeError for none."""
    if not address:
        raise RuntimeError("NULL pointer exception")
    return address

def host_operator(name, a, b):
    """Computes an operator of kernels on the host. The language's own code does it, so that both agree."""
    from ..language.host import operate  # the language needs the types first

    return operate(name, a, b)


def rebuild(kind, scalar, shape, numbers):
    """Makes a value again that was pickled."""
    from . import matrices, quaternions, vectors

    if kind == "vector":
        cls = vectors.vector(shape[0], scalar)
    elif kind == "matrix":
        cls = matrices.matrix(shape, scalar)
    elif kind == "quaternion":
        cls = quaternions.quaternion(scalar)
    else:
        cls = quaternions.transformation(scalar)
    return cls._make(numbers)


def flatten(values):
    """The numbers of nested sequences, values and arrays of NumPy, in order."""
    numbers = []
    for value in values:
        if isinstance(value, Composite):
            numbers.extend(value._numbers())
        elif isinstance(value, (int, float, scalars.Scalar)):
            numbers.append(number_of(value))
        elif hasattr(value, "item") and getattr(value, "ndim", None) == 0:
            numbers.append(value.item())
        elif isinstance(value, (str, bytes)):
            raise TypeError(f"{value!r} is no number")
        elif hasattr(value, "__len__") or (hasattr(value, "__iter__") and not hasattr(value, "item")):
            numbers.extend(flatten(value))
        elif hasattr(value, "item"):
            numbers.append(value.item())
        else:
            raise TypeError(f"a number is expected, not {value!r}")
    return numbers


def type_named(name, base, native, scalar, shape, **members):
    """Makes the class of one type and lets the module's description name it."""
    count = 1
    for extent in shape:
        count *= extent
    members.update(
        native=native,
        _wp_scalar_type_=scalar,
        _type_=getattr(scalar, "_type_", None),
        _length_=count,
        _shape_=tuple(shape),
        dtype=scalar,
        __doc__=f"{base.__doc__.splitlines()[0]} {name}.",
        __module__="weft",
    )
    cls = type(name, (base,), members)
    native.python = cls
    return cls
