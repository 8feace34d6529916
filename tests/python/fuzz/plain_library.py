"""The names that a random kernel finds when plain Python runs it: the package's, as plain_numbers.py and plain_values.py have their values."""

import ast
import builtins
import functools

import numpy as np

from plain_numbers import FLOATS, KINDS, Number, literal, to_bool
from plain_source import Changed
from plain_values import Matrix, Vector, fixed


def beside(a, b):
    """Two arguments in one type."""
    return a.beside(b)


def componentwise(function):
    """The function of two numbers, on vectors too."""

    def of_two(a, b):
        if isinstance(a, Vector):
            return a.each(b, function)
        return function(a, b)

    return of_two


@componentwise
def minimum(a, b):
    a, b = beside(a, b)
    pick = np.fmin if a.kind in FLOATS else builtins.min
    return Number(a.kind, pick(a.value, b.value))


@componentwise
def maximum(a, b):
    a, b = beside(a, b)
    pick = np.fmax if a.kind in FLOATS else builtins.max
    return Number(a.kind, pick(a.value, b.value))


def absolute(a):
    return Vector(map(absolute, a.numbers)) if isinstance(a, Vector) else Number(a.kind, builtins.abs(a.value))


def real(function):
    """A function of one real number that is exact, such as floor."""
    return lambda a: Number(a.kind, function(a.value))


def nearest(function):
    """A function of real numbers of which only the neighbourhood of the result is said: computed in float64."""
    return lambda *a: Number("float32", function(*(np.float64(x.value) for x in a)))


def round_away(x):
    """Half away from zero."""
    cut = np.trunc(x)
    return cut + np.copysign(1.0, x).astype(x.dtype) if builtins.abs(x - cut) >= 0.5 else cut


def clamp(x, low, high):
    return minimum(maximum(x, low), high)


def where(c, a, b):
    return fixed(a if c else b)


def sign(x):
    """1 for 0 and above, else -1."""
    return Number(x.kind, -1 if x.value < 0 else 1)


def dot(a, b):
    total = a.numbers[0] * b.numbers[0]
    for x, y in zip(a.numbers[1:], b.numbers[1:]):
        total = total + x * y
    return total


def cross(a, b):
    return Vector(a[i] * b[j] - a[j] * b[i] for i, j in ((Int(1), Int(2)), (Int(2), Int(0)), (Int(0), Int(1))))


class Int(int):
    """An index of Python's, as vectors take it."""


def length(a):
    return Number("float32", np.sqrt(np.sum(np.square([np.float64(x.value) for x in a.numbers]))))


def vector_type(kind, size):
    """``wp.vec3`` and kin."""

    def make(*parts):
        if not parts:
            return Vector(Number(kind, 0) for _ in range(size))
        parts = parts * size if len(parts) == 1 else parts
        assert len(parts) == size
        return Vector(fixed(p, kind) for p in parts)

    return make


def matrix_type(kind, size):
    """``wp.mat33`` and kin."""

    def make(*parts):
        assert len(parts) == size * size
        return Matrix([fixed(p, kind) for p in parts[r * size : (r + 1) * size]] for r in range(size))

    return make


def struct(cls):
    """``@wp.struct``: fields that are zero at first, and take values of their types."""
    kinds = cls.__annotations__

    class Instance:
        def __init__(self):
            for name, kind in kinds.items():
                zero = literal("int32", 0)
                object.__setattr__(self, name, kind(zero) if hasattr(kind, "name") else kind())

        def __setattr__(self, name, value):
            object.__setattr__(self, name, fixed(value, getattr(kinds[name], "name", None)))

        def copied(self):
            made = Instance()
            for name in kinds:
                setattr(made, name, getattr(self, name))
            return made

    return Instance


def ranged(*bounds):
    """``range()``, whose values are integers of the bounds' type."""
    kind = next((b.kind for b in bounds if not b.literal), "int32")
    return [Number(kind, k) for k in range(*(b.value for b in bounds))]


def function(f):
    """``@wp.func``: literals take the parameters' types, vectors are copied."""
    kinds = [getattr(k, "name", None) for n, k in f.__annotations__.items() if n != "return"]
    names = [n for n in f.__annotations__ if n != "return"]

    @functools.wraps(f)
    def call(*values, **keywords):
        values = [fixed(v, kind) for v, kind in zip(values, kinds)]
        keywords = {n: fixed(v, kinds[names.index(n)]) for n, v in keywords.items()}
        return f(*values, **keywords)

    return call


class Reference:
    """``wp.ref[...]``, which Python has not: see moved."""

    def __class_getitem__(cls, kind):
        return kind


def moved(i, f, k):
    """The function `moved` of the sources, which gives what it assigns to its parameters before its result."""
    i, two, zero = i + k, literal("int32", 2), literal("int32", 0)
    if i % two == zero:
        return i, f * literal("float32", 0.5), i - k
    return i * literal("int32", 3), f, k


class Package:
    """``wp``."""

    def __init__(self):
        self.thread = 0
        self.columns = None
        vars(self).update(KINDS)
        for size in (2, 3, 4):
            setattr(self, f"vec{size}", vector_type("float32", size))
            setattr(self, f"vec{size}i", vector_type("int32", size))
        self.func, self.kernel, self.struct = function, lambda f: f, struct
        self.mat33, self.transpose = matrix_type("float32", 3), lambda m: Matrix(zip(*m.rows))
        self.min, self.max, self.abs, self.clamp, self.where, self.sign = minimum, maximum, absolute, clamp, where, sign
        self.floor, self.ceil, self.trunc, self.rint = map(real, (np.floor, np.ceil, np.trunc, np.rint))
        self.round, self.sqrt = real(round_away), real(np.sqrt)
        for name in ("sin", "cos", "exp", "tanh", "log"):
            setattr(self, name, nearest(getattr(np, name)))
        self.atan2 = nearest(np.arctan2)
        self.dot, self.cross, self.length, self.bool = dot, cross, length, to_bool
        self.static, self.ref = fixed, Reference
        self.array = self.array2d = lambda **_: None

    def tid(self):
        """The thread's number, or its two."""
        if self.columns is None:
            return Number("int32", self.thread)
        return Number("int32", self.thread // self.columns), Number("int32", self.thread % self.columns)

    def atomic_add(self, array, key, value):
        before = array[key]
        array[key] = before + value
        return before

    def atomic_max(self, array, key, value):
        before = array[key]
        array[key] = maximum(before, value)
        return before


def run(text, arrays, threads, columns=None, more=None, wp=None):
    """Runs the kernel `k` of a source thread by thread on arrays and numbers."""
    tree = Changed().visit(ast.parse(text))
    wp = wp or Package()
    wp.columns = columns
    names = {
        "wp": wp, "int": KINDS["int32"], "float": KINDS["float32"], "bool": to_bool, "range": ranged, "min": wp.min,
        "max": wp.max, "abs": absolute, "round": wp.round, "reversed": lambda items: items[::-1],
        "len": lambda a: Number("int32", len(a)), "literal_": literal, "fixed_": fixed,
        "__builtins__": {"__build_class__": builtins.__build_class__}, "__name__": "plain",
    }  # fmt: skip
    names.update({name: literal("int32", value) for name, value in (more or {}).items()})
    exec(compile(tree, "<plain>", "exec"), names)
    names["moved"] = moved
    with np.errstate(all="ignore"):
        for thread in range(threads):
            wp.thread = thread
            names["k"](*arrays)

