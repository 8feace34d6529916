"""The derivative of a kernel, computed by plain Python: its source runs with dual numbers, a value and a tangent each.

One run gives the derivative of all outputs along one direction of all inputs, which a gradient agrees with or not.
"""

import contextlib
import math

import numpy as np

import plain_library
import plain_numbers
from plain_numbers import Number
from plain_values import Array, Vector


class Dual:
    """A real number and its derivative along the direction."""

    __slots__ = ("tangent", "value")

    def __init__(self, value, tangent=0.0):
        self.value = value
        self.tangent = tangent

    @classmethod
    def of(cls, x):
        """A number of Python, NumPy or this class."""
        return x if isinstance(x, Dual) else cls(float(x))

    def __float__(self):
        return self.value

    def __neg__(self):
        return Dual(-self.value, -self.tangent)

    def __add__(self, other):
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __sub__(self, other):
        return Dual(self.value - other.value, self.tangent - other.tangent)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

    def __truediv__(self, other):
        quotient = np.float64(self.value) / other.value
        return Dual(float(quotient), float((self.tangent - quotient * other.tangent) / np.float64(other.value)))

    def __abs__(self):
        return -self if self.value < 0 else self

    def __ne__(self, other):
        return self.value != other

    __hash__ = None


def chain(function, slope):
    """A function of one real number with its derivative."""

    def of_number(a):
        x = a.value.value
        return Number("float64", Dual(function(x), slope(x) * a.value.tangent))

    return of_number


def atan2(a, b):
    y, x = a.value, b.value
    square = x.value * x.value + y.value * y.value
    return Number(
        "float64", Dual(math.atan2(y.value, x.value), (x.value * y.tangent - y.value * x.tangent) / square)
    )


def root(x):
    return math.sqrt(x) if x >= 0 else math.nan


def slope_of_root(x):
    return 0.5 / math.sqrt(x) if x > 0 else math.nan


def exponential(x):
    return math.exp(x) if x < 700 else math.inf


def length(v):
    """The length; where it is 0 its gradient is 0."""
    square = plain_library.dot(v, v)
    if square.value.value == 0:
        return Number("float64", Dual(0.0))
    return chain(root, slope_of_root)(square)


def smaller(a, b):
    if isinstance(a, Vector):
        return a.each(b, smaller)
    a, b = a.beside(b)
    return a if key(a) < key(b) else b


def larger(a, b):
    if isinstance(a, Vector):
        return a.each(b, larger)
    a, b = a.beside(b)
    return a if key(a) > key(b) else b


def key(number):
    """What numbers are compared by."""
    return float(number.value) if isinstance(number.value, Dual) else number.value


class Package(plain_library.Package):
    """``wp`` for dual numbers."""

    def __init__(self):
        super().__init__()
        self.vec3d = plain_library.vector_type("float64", 3)
        self.mat33d = plain_library.matrix_type("float64", 3)
        self.sin, self.cos = chain(math.sin, math.cos), chain(math.cos, lambda x: -math.sin(x))
        self.exp, self.sqrt = chain(exponential, exponential), chain(root, slope_of_root)
        self.tanh = chain(math.tanh, lambda x: 1.0 - math.tanh(x) ** 2)
        self.atan2, self.length = atan2, length
        self.min, self.max = smaller, larger
        self.clamp = lambda x, low, high: smaller(larger(x, low), high)


@contextlib.contextmanager
def duals():
    """A block in which real numbers are dual ones."""
    before = plain_numbers.FLOATS["float64"]
    plain_numbers.FLOATS["float64"] = Dual.of
    try:
        yield
    finally:
        plain_numbers.FLOATS["float64"] = before


class DualArray(Array):
    """An array of dual numbers."""

    def __init__(self, data, size=0):
        super().__init__(data, size)
        self.kind = "float64"

    def of_view(self, data):
        return DualArray(data, self.vectors)


def paired(values, tangents):
    """NumPy's array of dual numbers."""
    made = np.empty(values.shape, dtype=object)
    for k in np.ndindex(values.shape):
        made[k] = Dual(float(values[k]), float(tangents[k]))
    return made


def run(text, arrays, threads, columns=None, more=None):
    """Runs the kernel `k` of a source on arrays, of which some are DualArray."""
    with duals():
        plain_library.run(text, arrays, threads, columns, more, Package())
