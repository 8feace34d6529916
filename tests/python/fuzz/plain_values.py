"""Vectors, matrices and arrays of kernels for plain Python, and what makes Python copy where kernels do."""

from plain_numbers import BITS, Number


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
