"""Numbers of kernels for plain Python: integers that wrap and reals that round as docs/semantics.md says, step by step."""

import numpy as np

BITS = {"int32": 32, "uint32": 32, "int64": 64, "uint64": 64, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16}
FLOATS = {"float32": np.float32, "float64": np.float64}


class Ambiguous(Exception):
    """Two bare literals meet: which types they have is not this module's to say."""


def wrapped(number, kind):
    """The low bits of an integer."""
    bits = BITS[kind]
    number &= (1 << bits) - 1
    return number - (1 << bits) if kind[0] == "i" and number >> (bits - 1) else number


def cut_quotient(x, y):
    """The quotient of integers, rounded toward zero; x where y is 0."""
    if y == 0:
        return x
    return -(abs(x) // abs(y)) if (x < 0) != (y < 0) else abs(x) // abs(y)


def floor_quotient(x, y):
    """The quotient of integers, rounded down; x where y is 0."""
    return x if y == 0 else x // y


def integer_remainder(x, y):
    """The remainder with the sign of x; 0 where y is 0."""
    return 0 if y == 0 else x - y * cut_quotient(x, y)


INTEGER = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truediv": cut_quotient,
    "floordiv": floor_quotient,
    "mod": integer_remainder,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}
REAL = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truediv": lambda x, y: x / y,
    "floordiv": lambda x, y: np.floor(x / y),
    "mod": lambda x, y: x - y * np.trunc(x / y),
}


class Number:
    """A number of one type; `literal` says that it is a bare one, which takes the type of what it meets."""

    __slots__ = ("kind", "literal", "value")

    def __init__(self, kind, value, literal=False):
        self.kind = kind
        self.value = FLOATS[kind](value) if kind in FLOATS else wrapped(int(value), kind)
        self.literal = literal

    def like(self, other):
        """This literal as the type of another number."""
        if other.kind in FLOATS or self.kind not in FLOATS:
            return Number(other.kind, self.value)
        raise TypeError(f"{self.kind} beside {other.kind}")

    def beside(self, other):
        """Both numbers in one type."""
        if isinstance(other, bool) or not isinstance(other, Number):
            raise TypeError(f"{self.kind} beside {type(other)}")
        if self.literal and other.literal:
            raise Ambiguous
        if self.literal:
            return self.like(other), other
        other = other.like(self) if other.literal else other
        if self.kind != other.kind:
            raise TypeError(f"{self.kind} beside {other.kind}")
        return self, other

    def operate(self, other, name, swap=False):
        """The result of an operator."""
        if not isinstance(other, (Number, bool)):
            return NotImplemented  # vectors know
        a, b = self.beside(other)
        a, b = (b, a) if swap else (a, b)
        table = REAL if a.kind in FLOATS else INTEGER
        return Number(a.kind, table[name](a.value, b.value))

    def shift(self, other, right):
        a, b = self.beside(other)
        amount = b.value % BITS[a.kind]
        return Number(a.kind, a.value >> amount if right else a.value << amount)

    def __lshift__(self, other):
        return self.shift(other, False)

    def __rshift__(self, other):
        return self.shift(other, True)

    def __neg__(self):
        return literal(self.kind, -self.value) if self.literal else Number(self.kind, -self.value)

    def __pos__(self):
        return self

    def __invert__(self):
        return Number(self.kind, ~self.value, self.literal)

    def __bool__(self):
        return bool(self.value != 0)

    def __index__(self):
        if self.kind in FLOATS:
            raise TypeError("an index is an integer")
        return self.value

    def __hash__(self):
        raise TypeError("numbers of kernels are no keys")

    def __repr__(self):
        return f"{self.kind}({self.value})"


def comparable(a, b):
    """Two numbers as Python compares them: in the wider real type if one is real, else as they are."""
    if a.literal != b.literal:
        a, b = (a.like(b), b) if a.literal and literal_fits(a, b) else (a, b.like(a)) if literal_fits(b, a) else (a, b)
    reals = [x.kind for x in (a, b) if x.kind in FLOATS]
    if not reals:
        return a.value, b.value
    kind = "float64" if "float64" in reals else "float32"
    return tuple(np.float64(KINDS[kind](x).value) for x in (a, b))


def literal_fits(number, other):
    """Whether a literal takes the type of another number."""
    return number.literal and (other.kind in FLOATS or number.kind not in FLOATS)


def define_operators():
    """Gives Number the operators that only pass on to `operate`, and the comparisons."""
    for name in INTEGER:
        setattr(Number, f"__{name}__", lambda a, b, name=name: a.operate(b, name))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):

        def compare(a, b, name=name):
            a, b = comparable(a, b)
            return bool(getattr(a, f"__{name}__")(b))

        setattr(Number, f"__{name}__", compare)


define_operators()


class Kind:
    """A scalar type, which converts what it is called with."""

    def __init__(self, name):
        self.name = name

    def __call__(self, x):
        if isinstance(x, bool):
            return Number(self.name, int(x))
        if self.name in FLOATS:
            value = x.value if x.kind in FLOATS else np.int64(x.value) if x.kind != "uint64" else np.uint64(x.value)
            return Number(self.name, FLOATS[self.name](value))
        if x.kind in FLOATS:
            return Number(self.name, saturated(float(x.value), self.name))
        return Number(self.name, x.value)


def saturated(x, kind):
    """A float as an integer: cut, the nearest end where it is out of range, 0 for a NaN."""
    bits = BITS[kind]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "i" else (0, (1 << bits) - 1)
    if x != x:
        return 0
    return low if x <= low else high if x >= high else int(x)


KINDS = {name: Kind(name) for name in (*BITS, *FLOATS)}


def to_bool(x):
    """``bool(x)``."""
    return bool(x)


def literal(kind, value):
    """A bare number of the source; its value is rounded once its type is known."""
    made = Number(kind, value, True)
    made.value = value
    return made
