"""Matrices of any shape and scalar type, row-major."""

import operator
from typing import Any

from .. import _weft
from . import composites, empty, patterns, scalars, vectors

made_ = {}


class Matrix(composites.Composite):
    """A matrix of numbers:

    Built from no argument (zeros), one number (all elements), its elements row by row, its rows as vectors, or nested
    sequences.
    Errors: ValueError for another number of elements.
    """

    _wp_generic_type_str_ = "mat_t"

    def __init__(self, *args):
        rows, cols = type(self)._shape_
        if not args:
            numbers = [0] * (rows * cols)
        else:
            for row in args:
                if len(args) == rows and isinstance(row, (tuple, list)) and len(row) != cols and len(args) > 1:
                    raise TypeError(
                        f"Invalid argument in matrix constructor, expected row of length {cols}, got {row}"
                    )
            numbers = composites.flatten(args)
            if len(numbers) == 1 and rows * cols != 1 and not hasattr(args[0], "__len__"):
                numbers = numbers * (rows * cols)
        if len(numbers) != rows * cols:
            raise ValueError(
                f"Invalid number of arguments in matrix constructor, expected {rows * cols} elements, got {len(numbers)}"
            )
        super().__init__(self.native, [composites.scalars_clean(type(self), n) for n in numbers])

    def __class_getitem__(cls, item):
        dtype, rows, cols = patterns.type_arguments(item, 3)
        return matrix((rows, cols), dtype)

    def _rows(self):
        rows, cols = type(self)._shape_
        numbers = self.tolist()
        return [numbers[r * cols : (r + 1) * cols] for r in range(rows)]

    def _place(self, key, extent):
        k = operator.index(key)
        if not -extent <= k < extent:
            raise IndexError(f"index {k} is out of range for a matrix of shape {type(self)._shape_}")
        return k + extent if k < 0 else k

    def _part(self, key):
        """The rows and columns that a key names; None for a direction that a single number names."""
        rows, cols = type(self)._shape_
        given = key
        if not isinstance(key, tuple):
            key = (key, slice(None))
        if len(key) != 2:
            raise KeyError(f"Invalid key, expected one or two indices, got {len(key)}")
        named = []
        for part, extent in zip(key, (rows, cols)):
            if isinstance(part, slice):
                named.append((list(range(*part.indices(extent))), True))
            else:
                try:
                    named.append(([self._place(part, extent)], False))
                except TypeError:
                    raise KeyError(f"Invalid key {given}, expected int or pair of ints, or slices") from None
        return named

    def __getitem__(self, key):
        (rows, many_rows), (cols, many_cols) = self._part(key)
        width = type(self)._shape_[1]
        numbers = [self.get(r * width + c) for r in rows for c in cols]
        scalar = type(self)._wp_scalar_type_
        if many_rows or many_cols:
            many = many_rows and many_cols
            kind = matrix((len(rows), len(cols)), scalar) if many else vectors.vector(len(numbers), scalar)
            return kind._make(numbers) if numbers else kind()
        return numbers[0]

    def __setitem__(self, key, value):
        (rows, many_rows), (cols, many_cols) = self._part(key)
        width = type(self)._shape_[1]
        places = [r * width + c for r in rows for c in cols]
        if not (many_rows or many_cols) and hasattr(value, "__len__"):
            wanted = type(self)._wp_scalar_type_.__name__
            raise TypeError(f"Expected to assign a `{wanted}` value but got `{type(value).__name__}` instead")
        for k, number in zip(places, composites.part_numbers(type(self), value, len(places))):
            self.set(k, number)

    def __iter__(self):
        for r in range(type(self)._shape_[0]):
            yield self[r]

    def get_row(self, r):
        """Row r as a vector."""
        return self[r]

    def set_row(self, r, value):
        """Replaces row r."""
        if not -type(self)._shape_[0] <= r < type(self)._shape_[0]:
            raise IndexError("Invalid row index")
        self[r] = value

    def get_col(self, c):
        """Column c as a vector."""
        return self[:, c]

    def set_col(self, c, value):
        """Replaces column c."""
        self[:, c] = value

    def __eq__(self, other):
        if isinstance(other, Matrix):
            return self._shape_ == other._shape_ and self._numbers() == other._numbers()
        try:
            return composites.flatten(other) == self._numbers()
        except TypeError:
            return NotImplemented

    __hash__ = composites.Composite.__hash__

    def __repr__(self):
        rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in self._rows())
        return f"{type(self).__name__}({rows})"

    def __str__(self):
        rows = ",\n ".join(f"[{', '.join(map(str, row))}]" for row in self._rows())
        return f"[{rows}]"


def matrix(shape: Any, dtype: Any) -> Any:
    """The type of matrices of `shape` (rows, columns) of a scalar type; the same class each time.

    Errors: TypeError for what is no scalar type, ValueError for a shape that is not of two extents of at least 1.
    """
    try:
        rows, cols = shape
    except TypeError:
        raise ValueError(f"the shape of a matrix is (rows, columns), not {shape!r}") from None
    scalar = patterns.scalar_or_none(dtype)
    if scalar is None or not isinstance(rows, int) or not isinstance(cols, int):
        return patterns.Pattern("matrix", (rows, cols), dtype)
    if rows >= 0 and cols >= 0 and rows * cols == 0:
        return empty.empty_type("matrix", (rows, cols), scalar)
    if rows < 1 or cols < 1:
        raise ValueError(f"a matrix has at least one row and one column, not {shape}")
    cls = made_.get((rows, cols, scalar))
    if cls is None:
        letter = vectors.LETTERS[scalar]
        name = f"mat{rows}{cols}{letter}" if rows < 10 and cols < 10 else f"mat{rows}x{cols}{letter}"
        native = _weft.matrix_dtype(scalar.native.code, rows, cols)
        members = {"_wp_type_params_": [rows, cols, scalar], "_wp_generic_type_hint_": Matrix}
        members["_wp_row_type_"] = vectors.vector(cols, scalar)
        cls = composites.type_named(name, Matrix, native, scalar, (rows, cols), **members)
        made_[rows, cols, scalar] = cls
    return cls


def matrix_from_cols(*columns: Any) -> Any:
    """The matrix whose columns are the given vectors of one type."""
    rows = [[column[r] for column in columns] for r in range(len(columns[0]))]
    return matrix((len(rows), len(columns)), _scalar(columns))._make([n for row in rows for n in row])


def matrix_from_rows(*rows: Any) -> Any:
    """The matrix whose rows are the given vectors of one type."""
    return matrix((len(rows), len(rows[0])), _scalar(rows))._make(composites.flatten(rows))


def _scalar(given):
    if not given:
        raise TypeError("at least one vector is needed")
    types = {type(v) for v in given}
    if len(types) != 1 or not isinstance(given[0], vectors.Vector):
        raise TypeError("the vectors must be of one type")
    return getattr(given[0], "_wp_scalar_type_", scalars.float32)
