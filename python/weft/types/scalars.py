"""Scalar types: classes that name an element type, convert in kernels, and hold one number on the host."""

import builtins
import ctypes
import math
import operator

from .. import _weft


def cut_remainder(a, b):
    """The remainder of integers, with the sign of the dividend."""
    return a - b * (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


class Scalar:
    """A number of one fixed type.

    Used as a type (``dtype=wp.float32``), as a conversion in kernels (``wp.float64(x)``), and on the host as one number
    whose type a kernel then knows. Integers wrap to the type's range, as they do on a device.
    """

    __slots__ = ("value",)

    native = None
    """The module's description of the type (``DType``)."""
    numpy_name = None
    """The name of NumPy's type with the same bytes."""

    def __init__(self, value=0):
        self.value = self.clean(getattr(value, "value", value))

    @classmethod
    def clean(cls, value):
        """The Python number that a value of this type is. Errors: TypeError for what is no number."""
        raise TypeError(f"{cls.__name__} is abstract: take int32, float32, ...")

    def __float__(self):
        return float(self.value)

    def __int__(self):
        return int(self.value)

    def __bool__(self):
        return builtins.bool(self.value)

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return f"{type(self).__name__}({self.value})"

    def __str__(self):
        return str(self.value)

    def __format__(self, spec):
        return format(self.value, spec)

    def _other(self, other):
        """The number of an operand; None if it is of another scalar type or no number."""
        if type(other) is type(self):
            return other.value
        if isinstance(other, (int, float)):
            return other
        return None  # Python then asks the other operand, as of an array

    def _compute(self, function, other, swapped=False):
        number = self._other(other)
        if number is None:
            return NotImplemented
        a, b = (number, self.value) if swapped else (self.value, number)
        return type(self)(function(a, b))

    def _compare(self, function, other):
        """A comparison with any number: it is exact, whatever the types."""
        number = other.value if isinstance(other, Scalar) else self._other(other)
        if number is None and hasattr(other, "item") and getattr(other, "ndim", 1) == 0:
            number = other.item()
        if number is None:
            return NotImplemented
        if isinstance(self, FloatScalar) and isinstance(number, int):
            number = float(number)
        return function(self.value, number)

    def __add__(self, other):
        return self._compute(operator.add, other)

    def __radd__(self, other):
        return self._compute(operator.add, other, True)

    def __sub__(self, other):
        return self._compute(operator.sub, other)

    def __rsub__(self, other):
        return self._compute(operator.sub, other, True)

    def __mul__(self, other):
        return self._compute(operator.mul, other)

    def __rmul__(self, other):
        return self._compute(operator.mul, other, True)

    def __truediv__(self, other):
        return self._compute(operator.truediv, other)

    def __rtruediv__(self, other):
        return self._compute(operator.truediv, other, True)

    def __floordiv__(self, other):
        return self._compute(operator.floordiv, other)

    def __rfloordiv__(self, other):
        return self._compute(operator.floordiv, other, True)

    def __mod__(self, other):
        return self._compute(math.fmod if isinstance(self, FloatScalar) else cut_remainder, other)

    def __rmod__(self, other):
        return self._compute(math.fmod if isinstance(self, FloatScalar) else cut_remainder, other, True)

    def __neg__(self):
        return type(self)(-self.value)

    def __pos__(self):
        return self

    def __abs__(self):
        return type(self)(abs(self.value))

    def __eq__(self, other):
        return self._compare(operator.eq, other)

    def __ne__(self, other):
        return self._compare(operator.ne, other)

    def __lt__(self, other):
        return self._compare(operator.lt, other)

    def __le__(self, other):
        return self._compare(operator.le, other)

    def __gt__(self, other):
        return self._compare(operator.gt, other)

    def __ge__(self, other):
        return self._compare(operator.ge, other)


class IntegerScalar(Scalar):
    """The integers of one width."""

    __slots__ = ()
    bits = 32
    signed = True

    @classmethod
    def clean(cls, value):
        number = int(value) & ((1 << cls.bits) - 1)
        return number - (1 << cls.bits) if cls.signed and number >> (cls.bits - 1) else number

    def __index__(self):
        return self.value


class FloatScalar(Scalar):
    """The floating-point numbers of one width."""

    __slots__ = ()

    @classmethod
    def clean(cls, value):
        return float(value)

    def __pow__(self, other):
        return self._compute(operator.pow, other)

    def __rpow__(self, other):
        return self._compute(operator.pow, other, True)

    def __round__(self, digits=None):
        return round(self.value, digits)

    def __trunc__(self):
        return math.trunc(self.value)


class bool(Scalar):  # noqa: A001
    """True or False."""

    __slots__ = ()
    native = _weft.scalar_dtype(_weft.BOOL)
    numpy_name = "bool"

    @classmethod
    def clean(cls, value):
        return builtins.bool(value)


class int8(IntegerScalar):
    """Integers of 8 bits with a sign."""

    __slots__ = ()
    bits = 8
    native = _weft.scalar_dtype(_weft.INT8)
    numpy_name = "int8"


class uint8(IntegerScalar):
    """Integers of 8 bits without a sign."""

    __slots__ = ()
    bits = 8
    signed = False
    native = _weft.scalar_dtype(_weft.UINT8)
    numpy_name = "uint8"


class int16(IntegerScalar):
    """Integers of 16 bits with a sign."""

    __slots__ = ()
    bits = 16
    native = _weft.scalar_dtype(_weft.INT16)
    numpy_name = "int16"


class uint16(IntegerScalar):
    """Integers of 16 bits without a sign."""

    __slots__ = ()
    bits = 16
    signed = False
    native = _weft.scalar_dtype(_weft.UINT16)
    numpy_name = "uint16"


class int32(IntegerScalar):
    """Integers of 32 bits with a sign; ``int`` in annotations."""

    __slots__ = ()
    native = _weft.scalar_dtype(_weft.INT32)
    numpy_name = "int32"


class uint32(IntegerScalar):
    """Integers of 32 bits without a sign."""

    __slots__ = ()
    signed = False
    native = _weft.scalar_dtype(_weft.UINT32)
    numpy_name = "uint32"


class int64(IntegerScalar):
    """Integers of 64 bits with a sign."""

    __slots__ = ()
    bits = 64
    native = _weft.scalar_dtype(_weft.INT64)
    numpy_name = "int64"


class uint64(IntegerScalar):
    """Integers of 64 bits without a sign; also the type of handles of meshes, trees and grids."""

    __slots__ = ()
    bits = 64
    signed = False
    native = _weft.scalar_dtype(_weft.UINT64)
    numpy_name = "uint64"


class float16(FloatScalar):
    """Floating-point numbers of 16 bits."""

    __slots__ = ()
    native = _weft.scalar_dtype(_weft.FLOAT16)
    numpy_name = "float16"


class float32(FloatScalar):
    """Floating-point numbers of 32 bits; ``float`` in annotations."""

    __slots__ = ()
    native = _weft.scalar_dtype(_weft.FLOAT32)
    numpy_name = "float32"


class float64(FloatScalar):
    """Floating-point numbers of 64 bits."""

    __slots__ = ()
    native = _weft.scalar_dtype(_weft.FLOAT64)
    numpy_name = "float64"


SIGNED_INTEGERS = (int8, int16, int32, int64)
INTEGERS = (int8, uint8, int16, uint16, int32, uint32, int64, uint64)
FLOATS = (float16, float32, float64)
SCALARS = INTEGERS + FLOATS
OF_CODE = {s.native.code: s for s in (*SCALARS, bool)}
"""The scalar class of each of the module's scalar codes."""

for _scalar in (*SCALARS, bool):
    _scalar.native.python = _scalar
    _scalar._type_ = {  # the C type of the same width, for programs that fill memory themselves
        "bool": ctypes.c_bool,
        "int8": ctypes.c_int8,
        "uint8": ctypes.c_uint8,
        "int16": ctypes.c_int16,
        "uint16": ctypes.c_uint16,
        "int32": ctypes.c_int32,
        "uint32": ctypes.c_uint32,
        "int64": ctypes.c_int64,
        "uint64": ctypes.c_uint64,
        "float16": ctypes.c_uint16,
        "float32": ctypes.c_float,
        "float64": ctypes.c_double,
    }[_scalar.numpy_name]
