"""Rules: what an operator does with operands of two types.

A rule is a function of two operands. What finds one looks at the operands' types alone, and refuses those that do not fit.
It is found once for all operations on operands of these types, because to find it takes longer than to follow it.
"""

from .. import _weft
from ..types import matrices, scalars, vectors
from ..types.annotations import same_type
from .errors import CodegenError
from .values import Value, literal, name_of_type

OPS = _weft.OPS
BITWISE = {"bit_and": OPS["bit_and"], "bit_or": OPS["bit_or"], "bit_xor": OPS["bit_xor"]}
SHIFTS = {"lshift": OPS["shl"], "rshift": OPS["shr"]}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def refuse(name, a, b):
    """Throws the error of an operator whose operands do not fit."""
    message = (
        f"Couldn't find function overload for '{name}' that matched inputs with types: "
        f"[{name_of_type(a)}, {name_of_type(b)}]"
    )
    if isinstance(a, Value) and isinstance(b, Value) and a.kind == b.kind == "scalar":
        message += hint(name, a, b)
    raise CodegenError(message)


def hint(name, a, b):
    """What to do where an operator has no rule for two numbers, as the end of a sentence."""
    if a.scalar is not b.scalar:
        return f"; kernels convert nothing by themselves: write a conversion, such as {widest(a.scalar, b.scalar)}(...), around one"
    return {
        "pow": "; `**` is of real numbers",
        "lshift": "; shifts are of integers",
        "rshift": "; shifts are of integers",
        "bit_and": "; `&` is of integers and booleans",
        "bit_or": "; `|` is of integers and booleans",
        "bit_xor": "; `^` is of integers and booleans",
    }.get(name, "; booleans are no numbers: write int(...) around them" if a.scalar is scalars.bool else "")


def widest(one, other):
    """The name of the one of two scalar types that holds more: a real one, or else the larger one."""
    return max(one, other, key=lambda kind: (issubclass(kind, scalars.FloatScalar), size_of(kind))).__name__


def find_rule(name, a, b):
    """The rule of an operator for the types of two operands. Errors: CodegenError for operands that do not fit."""
    if name in COMPARISONS:
        return comparison(name, a, b)
    if a.scalar is scalars.bool and name not in BITWISE:
        refuse(name, a, b)
    return ARITHMETIC[name](name, a, b)


def elementwise(op, kind, nonneg=None):
    """The rule of an operation of numbers, component by component. `nonneg` tells of two operands whether the result
    cannot be negative; without it nothing is known.
    """

    def compute(a, b):
        return Value(kind, _weft.binary(op, a.ids, b.ids), nonneg is not None and nonneg(a, b))

    return compute


def growing(op, kind):
    """The rule of sums and products, which are negative only if an operand is, or if they are too large for their type."""

    def compute(a, b):
        nonneg = a.nonneg and b.nonneg
        return Value(kind, _weft.binary(op, a.ids, b.ids), nonneg, nonneg)

    return compute


def by_library(name, a, b, nonneg=None):
    """The rule of an operator that the library has as a function."""
    natives = (a.type.native, b.type.native)

    def compute(a, b):
        dtype, ids = _weft.call(name, natives, (a.ids, b.ids))
        return Value(dtype.python, ids, nonneg is not None and nonneg(a, b))

    return compute


def neither_negative(a, b):
    """Whether no operand is negative, and none has wrapped."""
    return a.never_negative and b.never_negative


def one_not_negative(a, b):
    """Whether an operand is not negative, and has not wrapped."""
    return a.never_negative or b.never_negative


def first_not_negative(a, b):
    """Whether the first operand is not negative, and has not wrapped."""
    return a.never_negative


def type_of_many(a, b):
    """The type of the operand with several components, if one has them."""
    return b.type if a.kind == "scalar" else a.type


def additive(name, a, b):
    """+ and - of equal types."""
    if not same_type(a.type, b.type):
        refuse(name, a, b)
    return growing(OPS["add"], a.type) if name == "add" else elementwise(OPS["sub"], a.type)


def multiply(name, a, b):
    """* of numbers, of a number with all components, and the products of linear algebra."""
    if a.scalar is not b.scalar:
        refuse(name, a, b)
    kinds = (a.kind, b.kind)
    if kinds == ("scalar", "scalar"):
        return growing(OPS["mul"], a.type)
    if "scalar" in kinds:
        return elementwise(OPS["mul"], type_of_many(a, b))
    if kinds == ("quaternion", "quaternion"):
        return by_library("mul", a, b)
    if kinds == ("transform", "transform"):
        return by_library("transform_multiply", a, b)
    if kinds == ("transform", "vector") and len(b.ids) == 3:
        return by_library("transform_point", a, b)
    if kinds == ("quaternion", "vector") and len(b.ids) == 3:
        return by_library("quat_rotate", a, b)
    return matrix_product(name, a, b)


def matrix_product(name, a, b):
    """Products of matrices, and of matrices with vectors, which stand as columns on the right and as rows on the left."""
    kinds = (a.kind, b.kind)
    if kinds not in (("matrix", "matrix"), ("matrix", "vector"), ("vector", "matrix")):
        refuse(name, a, b)
    rows, inner = (1, len(a.ids)) if a.kind == "vector" else a.type._shape_
    height, columns = (len(b.ids), 1) if b.kind == "vector" else b.type._shape_
    if inner != height:
        refuse(name, a, b)
    if kinds == ("matrix", "matrix"):
        kind = matrices.matrix((rows, columns), a.scalar)
    else:
        kind = vectors.vector(rows * columns, a.scalar)
    return lambda a, b: Value(kind, _weft.matmul(a.ids, b.ids, rows, inner, columns))


def divide(name, a, b):
    """/, which cuts the quotients of integers."""
    if a.scalar is not b.scalar or "scalar" not in (a.kind, b.kind):
        refuse(name, a, b)
    return elementwise(OPS["div"], type_of_many(a, b), neither_negative)


def floor_divide(name, a, b):
    """//, the quotient rounded down."""
    if not same_type(a.type, b.type) or a.kind != "scalar":
        refuse(name, a, b)
    return by_library("floor_div", a, b, neither_negative)


def remainder(name, a, b):
    """%, with the sign of the dividend."""
    if a.scalar is not b.scalar or not (same_type(a.type, b.type) or "scalar" in (a.kind, b.kind)):
        refuse(name, a, b)
    if a.kind not in ("scalar", "vector") or b.kind not in ("scalar", "vector"):
        refuse(name, a, b)
    return elementwise(OPS["rem"], type_of_many(a, b), first_not_negative)


def power(name, a, b):
    """** of real numbers."""
    if not same_type(a.type, b.type) or a.kind != "scalar" or not issubclass(a.scalar, scalars.FloatScalar):
        refuse(name, a, b)
    return elementwise(OPS["pow"], a.type)


def bitwise(name, a, b):
    """&, |, ^ of integers and booleans, component by component."""
    if a.scalar is not b.scalar or issubclass(a.scalar, scalars.FloatScalar):
        refuse(name, a, b)
    if not same_type(a.type, b.type) and "scalar" not in (a.kind, b.kind):
        refuse(name, a, b)
    return elementwise(
        BITWISE[name], type_of_many(a, b), one_not_negative if name == "bit_and" else neither_negative
    )


def shift(name, a, b):
    """<< and >> of integers, component by component."""
    if a.scalar is not b.scalar or not issubclass(a.scalar, scalars.IntegerScalar):
        refuse(name, a, b)
    if not same_type(a.type, b.type) and "scalar" not in (a.kind, b.kind):
        refuse(name, a, b)
    return elementwise(SHIFTS[name], type_of_many(a, b), first_not_negative if name == "rshift" else None)


ARITHMETIC = {
    "add": additive,
    "sub": additive,
    "mul": multiply,
    "div": divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "pow": power,
    "lshift": shift,
    "rshift": shift,
    "bit_and": bitwise,
    "bit_or": bitwise,
    "bit_xor": bitwise,
}
def comparison(name, a, b):
    """The rule of a comparison. Numbers of different types, unlike in sums and products, are compared in a type that holds
    both; values with several components only by == and !=, and of one type.

    Errors: CodegenError for integers of which no type holds the values of both.
    """
    if a.kind == b.kind == "scalar":
        kind = a.scalar if a.scalar is b.scalar else wider(a.scalar, b.scalar)
        if kind is scalars.bool and name not in ("eq", "ne"):
            kind = scalars.int32
        if kind is None:
            refuse(name, a, b)
        return compared_as(kind, name)
    if not same_type(a.type, b.type) or name not in ("eq", "ne"):
        refuse(name, a, b)
    if name == "eq":
        return lambda a, b: Value(scalars.bool, (_weft.all_equal(a.ids, b.ids),))
    return lambda a, b: logical_not(Value(scalars.bool, (_weft.all_equal(a.ids, b.ids),)))


def compared_as(kind, name):
    """The rule of a comparison of numbers in a type: > and >= are < and <= of the exchanged operands."""
    exchanged = name in ("gt", "ge")
    op = OPS[{"gt": "lt", "ge": "le"}.get(name, name)]

    def compute(a, b):
        a, b = converted(a, kind), converted(b, kind)
        return Value(scalars.bool, _weft.binary(op, b.ids, a.ids) if exchanged else _weft.binary(op, a.ids, b.ids))

    return compute


def wider(one, other):
    """The scalar type in which numbers of two types are compared: a real one if one is real, else one with room for the
    values of both; None for a signed integer and an unsigned one of 64 bits.
    """
    reals = [kind for kind in (one, other) if issubclass(kind, scalars.FloatScalar)]
    if reals == [scalars.float16]:
        return scalars.float32  # which holds the integers that float16 does not
    if reals:
        return max(reals, key=size_of)
    if scalars.bool in (one, other):
        return one if other is scalars.bool else other
    if one.signed == other.signed:
        return max(one, other, key=size_of)
    unsigned = other if one.signed else one
    return None if unsigned is scalars.uint64 else scalars.int64


def size_of(kind):
    """The bytes of a scalar type."""
    return kind.native.size


def logical_not(value):
    """The negation of a boolean."""
    if value.literal is not None:
        return literal(not value.literal)
    return Value(scalars.bool, (_weft.logical_not(value.id),))


NUMBERS = (*scalars.SCALARS, scalars.bool)
CONVERSIONS = {
    (of, to): (to.native.code, issubclass(to, scalars.IntegerScalar), issubclass(of, scalars.IntegerScalar))
    for of in NUMBERS
    for to in NUMBERS
}
"""Of two types: the module's number of the second, whether it is an integer, and whether the first is."""


def converted(value, scalar):
    """A number or all components as another scalar type, by value."""
    if value.literal is not None:
        number = value.literal
        if issubclass(scalar, scalars.IntegerScalar):
            number = int(number)
        elif scalar is scalars.bool:
            number = bool(number)
        else:
            number = float(number)
        return Value(scalar, (_weft.constant(scalar.native.code, number),), number >= 0)
    of = value.type if (value.type, scalar) in CONVERSIONS else value.scalar
    if of is scalar:
        return value
    code, to_integer, of_integer = CONVERSIONS[of, scalar]
    nonneg = to_integer and value.nonneg
    wraps = value.wraps or nonneg and of_integer  # the lower bits of a wide one
    return Value(scalar, _weft.convert(code, value.ids), nonneg, wraps)
