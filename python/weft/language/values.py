"""What expressions of a kernel are while it is traced: typed values, arrays, structs, tuples, and things of Python."""

from .. import _weft
from ..types import scalars
from ..types.annotations import ArrayType, type_name
from .errors import CodegenError, CodegenValueError


class Value:
    """A number, vector, matrix, quaternion or transform of the trace.

    `ids` are its components in the trace; `nonneg` says that the value cannot be negative, or with `wraps` only if an
    integer on the way was too large for its type: such an index is wrong in any case, but a remainder of it may be
    meant; `coordinate` that it is coordinate k of n of the thread.
    """

    __slots__ = ("coordinate", "ids", "nonneg", "type", "wraps")

    literal = None
    """The Python number of a Literal."""

    def __init__(self, type, ids, nonneg=False, wraps=False, coordinate=None):
        self.type = type
        self.ids = ids
        self.nonneg = nonneg
        self.wraps = wraps
        self.coordinate = coordinate

    @property
    def id(self):
        """The id of a scalar."""
        return self.ids[0]

    @property
    def never_negative(self):
        """Whether the value cannot be negative even if integers on the way wrapped."""
        return self.nonneg and not self.wraps

    @property
    def kind(self):
        """"scalar", "vector", "matrix", "quaternion" or "transform"."""
        return self.type.native.kind

    @property
    def scalar(self):
        """The scalar type of the components."""
        return scalars.OF_CODE[self.type.native.code]


class Literal(Value):
    """A bare number of the source, or of Python's, whose type adapts to its surroundings. It becomes a constant of the
    trace when its id is asked for.
    """

    __slots__ = ("constant", "literal")

    def __init__(self, type, number):
        self.type = type
        self.literal = number
        self.constant = None
        self.nonneg = number >= 0
        self.wraps = False
        self.coordinate = None

    @property
    def ids(self):
        """The id of the constant."""
        if self.constant is None:
            self.constant = (_weft.constant(self.type.native.code, self.literal),)
        return self.constant


class ArrayValue:
    """An array, or a part of it, that the kernel was given."""

    __slots__ = ("dtype", "name", "ref")

    def __init__(self, ref, dtype, name=None):
        self.ref = ref
        self.dtype = dtype
        self.name = name

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.ref.ndim

    @property
    def type(self):
        """The array's type, as annotations name it."""
        return ArrayType(self.dtype, self.ref.ndim, getattr(self.ref, "indexed", False))


class NoArray:
    """Stands for the array of a struct that a kernel made and has not assigned: it has no elements."""

    is_null = True

    def __init__(self, kind):
        self.ndim = kind.ndim
        self.indexed = kind.indexed

    def shape(self, k, code=_weft.INT32):
        """0."""
        return _weft.constant(code, 0)

    def refuse(self, *args):
        """Throws the error of a use of its elements."""
        raise CodegenError("the array of the struct is not assigned: it has no elements")

    element = load = store = row = slice = transpose = gradient = refuse


class StructValue:
    """A struct, field by field: Value, ArrayValue or StructValue each."""

    __slots__ = ("fields", "type")

    def __init__(self, type, fields):
        self.type = type
        self.fields = fields


class TupleValue:
    """Several values, as a function returns them."""

    __slots__ = ("items",)

    def __init__(self, items):
        self.items = list(items)

    @property
    def type(self):
        """The types of the values."""
        return tuple(type_of(item) for item in self.items)


class Shape(TupleValue):
    """The extents of an array."""

    __slots__ = ()


class Static:
    """A thing of Python that is known while the kernel is traced: a function, a type, a module, a string, ..."""

    __slots__ = ("object",)

    def __init__(self, object):
        self.object = object

    @property
    def type(self):
        """The thing itself, as which it is a part of what decides a function's code."""
        return self.object


def literal(number):
    """The value of a bare number of the source, or of Python's."""
    if isinstance(number, bool):
        return Literal(scalars.bool, number)
    if isinstance(number, int):
        if not -(1 << 63) <= number < 1 << 64:
            shown = str(number) if number.bit_length() < 200 else "here"
            raise CodegenValueError(f"the integer {shown} needs more than 64 bits, which no type of kernels has")
        wide = not -(1 << 31) <= number < 1 << 32
        kind = scalars.int64 if wide and number < 1 << 63 else scalars.uint64 if wide else scalars.int32
        if kind is scalars.int32 and number >= 1 << 31:
            kind = scalars.uint32
        return Literal(kind, number)
    return Literal(scalars.float32, number)


def type_of(value):
    """The type of an expression, as overloads are chosen by it."""
    return value.type


def name_of_type(value):
    """The type of an expression as messages show it; of a call that returns nothing: nothing."""
    if value is None:
        return "nothing"
    if isinstance(value, Static):
        thing = value.object
        return type_name(thing) if isinstance(thing, type) else type(thing).__name__
    return type_name(value.type)


def adapted(value, scalar):
    """A literal as a value of a scalar type; None if the type cannot hold it, or if the value is no literal."""
    number = value.literal
    kind = type(number)
    if isinstance(number, float):
        return Literal(scalar, number) if scalar in scalars.FLOATS else None
    if number is None or kind is bool:
        return value if scalar is scalars.bool and kind is bool else None
    if scalar in scalars.FLOATS:
        return Literal(scalar, float(number))
    if scalar is scalars.bool or scalar.clean(number) != number and (number >= 0 or scalar.signed):
        return None  # too large: to wrap it silently would change it
    return Literal(scalar, number)


def fixed(value):
    """The value without the freedom of a literal: what a name then holds."""
    if isinstance(value, Literal):
        return Value(value.type, value.ids, value.nonneg)
    return value


def flatten(value):
    """The arguments as which a value crosses a call: pairs of a description and ids, and arrays."""
    if isinstance(value, Value):
        return [(value.type.native, value.ids)]
    if isinstance(value, ArrayValue):
        return [value.ref]
    if isinstance(value, StructValue):
        return [part for field in value.fields.values() for part in flatten(field)]
    if isinstance(value, TupleValue):
        return [part for item in value.items for part in flatten(item)]
    return []


def rebuild(kind, parts):
    """A value of a type from an iterator over what crossed a call (see flatten)."""
    if isinstance(kind, ArrayType):
        return ArrayValue(next(parts), kind.dtype)
    if isinstance(kind, tuple):
        return TupleValue([rebuild(k, parts) for k in kind])
    if not isinstance(kind, type) or getattr(kind, "native", None) is None:
        return Static(kind)
    if kind.native.kind == "struct":
        return StructValue(kind, {name: rebuild(field, parts) for name, field in kind._wp_layout_.items()})
    return Value(kind, tuple(next(parts)))


def ids_of(value):
    """All scalars of a value without arrays, in the order of its layout."""
    if isinstance(value, Value):
        return tuple(value.ids)
    if isinstance(value, StructValue):
        return tuple(i for field in value.fields.values() for i in ids_of(field))
    if isinstance(value, TupleValue):
        return tuple(i for item in value.items for i in ids_of(item))
    return ()


def from_ids(kind, ids):
    """The value of a type without arrays whose scalars are given."""
    ids = iter(ids)
    return _from_ids(kind, ids)


def _from_ids(kind, ids):
    if isinstance(kind, tuple):
        return TupleValue([_from_ids(k, ids) for k in kind])
    if kind.native.kind == "struct":
        return StructValue(kind, {name: _from_ids(field, ids) for name, field in kind._wp_layout_.items()})
    return Value(kind, tuple(next(ids) for _ in range(kind.native.count)))


def zero(kind):
    """The zero of a type. A field that is an array is nothing until it is assigned."""
    if kind.native.kind == "struct":
        fields = {}
        for name, field in kind._wp_layout_.items():
            fields[name] = ArrayValue(NoArray(field), field.dtype, name) if isinstance(field, ArrayType) else zero(field)
        return StructValue(kind, fields)
    return Value(kind, _weft.zeros_of(kind.native))
