"""What a kernel means, computed by plain Python: its source runs as it stands, with numbers that have the kernel's types.

Python itself decides about names, branches, loops and returns, so that nothing of the package's own reading of a kernel
is used: only numbers, vectors and arrays are classes of this module, which follow docs/semantics.md step by step.
"""

import ast

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
        if isinstance(other, Vector):
            return NotImplemented
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


def define_operators():
    """Gives Number the operators that only pass on to `operate`, and the comparisons."""
    for name in INTEGER:
        setattr(Number, f"__{name}__", lambda a, b, name=name: a.operate(b, name))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):

        def compare(a, b, name=name):
            a, b = (a, b) if a.literal and b.literal else a.beside(b)
            return bool(getattr(np.float64(a.value) if a.kind in FLOATS else a.value, f"__{name}__")(
                np.float64(b.value) if b.kind in FLOATS else b.value
            ))  # fmt: skip

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


class Vector:
    """A vector of numbers. Assignments copy: the source is changed to say so (see Changed)."""

    def __init__(self, numbers):
        self.numbers = list(numbers)

    def each(self, other, function):
        """A vector of what a function gives for the components beside those of another vector, or beside one number."""
        others = other.numbers if isinstance(other, Vector) else [other] * len(self.numbers)
        return Vector(function(a, b) for a, b in zip(self.numbers, others, strict=True))

    def __add__(self, other):
        return self.each(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self.each(other, lambda a, b: a - b)

    def __mul__(self, other):
        if isinstance(other, Vector):
            raise TypeError("vectors have no product")
        return self.each(other, lambda a, b: a * b)

    def __rmul__(self, other):
        return NotImplemented if isinstance(other, Matrix) else self.each(other, lambda a, b: b * a)

    def __truediv__(self, other):
        return self.each(other, lambda a, b: a / b)

    def __neg__(self):
        return Vector(-a for a in self.numbers)

    def __eq__(self, other):
        return all(a == b for a, b in zip(self.numbers, other.numbers, strict=True))

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, key):
        if isinstance(key, slice):
            return Vector(self.numbers[whole(key)])
        return self.numbers[int(key.__index__())]

    def __setitem__(self, key, value):
        self.numbers[key.__index__()] = fixed(value, self.numbers[0].kind)

    def __iter__(self):
        return iter(self.numbers)


class Row(Vector):
    """A row of a matrix: its numbers are assigned there."""

    def __init__(self, numbers):
        self.numbers = numbers


class Matrix:
    """A matrix: lists of numbers, row by row."""

    def __init__(self, rows):
        self.rows = [list(row) for row in rows]

    def each(self, function, *others):
        """A matrix of what a function gives for the elements."""
        return Matrix([function(*parts) for parts in zip(*rows)] for rows in zip(self.rows, *(o.rows for o in others)))

    def __add__(self, other):
        return self.each(lambda a, b: a + b, other)

    def __sub__(self, other):
        return self.each(lambda a, b: a - b, other)

    def __mul__(self, other):
        if isinstance(other, Matrix):
            columns = [Vector(column) for column in zip(*other.rows)]
            return Matrix([summed(row, column) for column in columns] for row in self.rows)
        if isinstance(other, Vector):
            return Vector(summed(row, other) for row in self.rows)
        return self.each(lambda a: a * other)

    def __getitem__(self, key):
        if isinstance(key, tuple):
            return self.rows[key[0].__index__()][key[1].__index__()]
        return Row(self.rows[key.__index__()])

    def __setitem__(self, key, value):
        if isinstance(key, tuple):
            self.rows[key[0].__index__()][key[1].__index__()] = fixed(value, self.rows[0][0].kind)
        else:
            self.rows[key.__index__()] = list(value.numbers)


def summed(row, column):
    """The sum of products, from the first to the last."""
    products = [a * b for a, b in zip(row, column.numbers)]
    total = products[0]
    for product in products[1:]:
        total = total + product
    return total


def whole(key):
    """A slice with the integers of Python as bounds."""
    return slice(*(None if b is None else b.__index__() for b in (key.start, key.stop, key.step)))


def fixed(value, kind=None):
    """A value as a name holds it: no literal any more, and a copy."""
    if isinstance(value, Number):
        if kind is not None and value.literal:
            return Number(kind, value.value)
        if kind is not None and value.kind != kind:
            raise TypeError(f"{value.kind} where {kind} is expected")
        return Number(value.kind, value.value)
    if isinstance(value, Vector):
        return Vector(value.numbers)
    if isinstance(value, tuple):
        return tuple(fixed(v) for v in value)
    if isinstance(value, Matrix):
        return Matrix(value.rows)
    if hasattr(value, "copied"):
        return value.copied()
    return value


class Array:
    """An array in memory, or a view of one, around NumPy's. `size` is that of the vectors which it holds, 0 for numbers."""

    def __init__(self, data, size=0):
        self.data = data
        self.kind = data.dtype.name
        self.vectors = size
        self.ndim = data.ndim - (size > 0)

    @property
    def shape(self):
        return tuple(Number("int32", n) for n in self.data.shape[: self.ndim])

    def key(self, key):
        """A subscript with the integers of Python."""
        parts = key if isinstance(key, tuple) else (key,)
        return tuple(whole(p) if isinstance(p, slice) else p.__index__() for p in parts)

    def __getitem__(self, key):
        key = self.key(key)
        found = self.data[key]
        if len(key) == self.ndim and not any(isinstance(p, slice) for p in key):
            if self.vectors:
                return Element(found, self.kind)
            return Number(self.kind, found.item() if self.kind in BITS else found)
        return self.of_view(found)

    def of_view(self, data):
        """A part of the array."""
        return Array(data, self.vectors)

    def __setitem__(self, key, value):
        if isinstance(value, Vector):
            self.data[self.key(key)] = [v.value for v in value.numbers]
        else:
            self.data[self.key(key)] = fixed(value, self.kind).value

    def __len__(self):
        return self.data.shape[0]


class Element(Vector):
    """A vector in memory: its components are assigned there."""

    def __init__(self, data, kind):
        super().__init__(Number(kind, x) for x in data)
        self.data = data

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.data[key.__index__()] = self.numbers[key.__index__()].value


class Changed(ast.NodeTransformer):
    """The source with literals that are numbers of kernels, and with assignments that copy."""

    PLACE = {"lineno": 1, "col_offset": 0}

    def called(self, function, *arguments):
        function = ast.Name(function, ast.Load(), **self.PLACE) if isinstance(function, str) else function
        return ast.Call(function, list(arguments), [], **self.PLACE)

    def visit_Constant(self, node):
        if type(node.value) in (int, float):
            kind = "int32" if type(node.value) is int else "float32"
            return self.called("literal_", ast.Constant(kind, **self.PLACE), node)
        return node

    def visit_Assign(self, node):
        self.generic_visit(node)
        node.value = self.called("fixed_", node.value)
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        if node.value is not None:
            node.value = self.called("fixed_", node.value)
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return self.called("fixed_", node)

    def visit_AnnAssign(self, node):
        if node.value is not None:  # no field of a struct
            node.value = self.called(node.annotation, self.visit(node.value))
        return node


def literal(kind, value):
    """A bare number of the source; its value is rounded once its type is known."""
    made = Number(kind, value, True)
    made.value = value
    return made
