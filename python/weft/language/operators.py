"""Operators of kernels by the types of their operands. They promote nothing: only bare literals adapt."""

import ast
import math

from .. import _weft
from ..types import matrices, scalars, vectors
from ..types.annotations import same_type
from .errors import CodegenError, CodegenTypeError
from .values import ArrayValue, Static, StructValue, TupleValue, Value, adapted, literal, name_of_type

OPS = _weft.OPS
BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "bit_and",
    ast.BitOr: "bit_or",
    ast.BitXor: "bit_xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}
COMPARE = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
BITWISE = {"bit_and": OPS["bit_and"], "bit_or": OPS["bit_or"], "bit_xor": OPS["bit_xor"]}
SHIFTS = {"lshift": OPS["shl"], "rshift": OPS["shr"]}
SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "bit_and": "&",
    "bit_or": "|", "bit_xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=",
}  # fmt: skip


def refuse(name, a, b):
    """Throws the error of an operator whose operands do not fit."""
    message = (
        f"Couldn't find function overload for '{name}' that matched inputs with types: "
        f"[{name_of_type(a)}, {name_of_type(b)}]"
    )
    if isinstance(a, Value) and isinstance(b, Value) and a.kind == b.kind == "scalar":
        message += f"; kernels convert nothing by themselves: write {name_of_type(a)}(...) around the right operand"
    raise CodegenError(message)


def of_one_type(a, b, name):
    """The operands with literals adapted to the other's scalar type. Errors: CodegenError if a literal cannot adapt."""
    if a.literal is not None and b.literal is None:
        made = adapted(a, b.scalar)
        if made is None:
            refuse(name, a, b)
        return made, b
    if b.literal is not None and a.literal is None:
        made = adapted(b, a.scalar)
        if made is None:
            refuse(name, a, b)
        return a, made
    return a, b


def binary(name, a, b):
    """The result of one of the operators of SIGNS. Errors: CodegenError for operands that do not fit."""
    if not isinstance(a, Value) or not isinstance(b, Value):
        return of_others(name, a, b)
    if a.literal is not None and b.literal is not None:
        return folded(name, a, b)
    if name in COMPARISONS:
        return compare(name, *comparable(name, a, b))
    a, b = of_one_type(a, b, name)
    if a.scalar is scalars.bool and name not in BITWISE:
        refuse(name, a, b)
    return ARITHMETIC[name](name, a, b)


def of_others(name, a, b):
    """Comparisons of things of Python, and of structs and tuples; all else is refused."""
    if name in ("eq", "ne"):
        if isinstance(a, Static) and isinstance(b, Static):
            return literal((a.object == b.object) == (name == "eq"))
        for one, other in ((a, b), (b, a)):
            if isinstance(one, ArrayValue) and isinstance(other, Static) and other.object is None:
                return literal(one.ref.is_null == (name == "eq"))
        if isinstance(a, StructValue) and isinstance(b, StructValue) and same_type(a.type, b.type):
            return all_of(name, list(zip(a.fields.values(), b.fields.values())))
        if isinstance(a, TupleValue) and isinstance(b, TupleValue) and len(a.items) == len(b.items):
            return all_of(name, list(zip(a.items, b.items)))
    refuse(name, a, b)


def all_of(name, pairs):
    """Whether all pairs are equal, or, for "ne", whether one is not."""
    result = literal(True)
    for x, y in pairs:
        equal = binary("eq", x, y)
        result = Value(scalars.bool, _weft.binary(OPS["bit_and"], result.ids, equal.ids))
    return result if name == "eq" else logical_not(result)


def folded(name, a, b):
    """An operator of two literals, as a literal, by the rules of kernels: the integer quotient is cut."""
    x, y = a.literal, b.literal
    real = isinstance(x, float) or isinstance(y, float)
    try:
        if name == "div":
            number = x / y if real else cut_quotient(x, y)
        elif name == "floordiv":
            number = x // y
        elif name == "mod":
            number = math.fmod(x, y) if real else x - y * cut_quotient(x, y)
        elif name == "pow":
            number = float(x) ** float(y) if real or y < 0 else x**y
        else:
            number = FOLDS[name](x, y)
    except ZeroDivisionError:
        if real and name == "div":
            return literal(math.copysign(math.inf, x) * math.copysign(1.0, y) if x and x == x else math.nan)
        raise CodegenError(f"{x} {SIGNS[name]} {y} divides by zero") from None
    return literal(number)


def cut_quotient(x, y):
    """The quotient of two integers, rounded toward zero."""
    quotient = abs(x) // abs(y)
    return -quotient if (x < 0) != (y < 0) else quotient


FOLDS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "bit_and": lambda x, y: x & y,
    "bit_or": lambda x, y: x | y,
    "bit_xor": lambda x, y: x ^ y,
    "lshift": lambda x, y: x << y,
    "rshift": lambda x, y: x >> y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
}


def additive(name, a, b):
    """+ and - of equal types."""
    if not same_type(a.type, b.type):
        refuse(name, a, b)
    nonneg = name == "add" and a.nonneg and b.nonneg
    return Value(a.type, _weft.binary(OPS[name], a.ids, b.ids), nonneg=nonneg, wraps=nonneg)


def multiply(name, a, b):
    """* of numbers, of a number with all components, and the products of linear algebra."""
    if a.scalar is not b.scalar:
        refuse(name, a, b)
    kinds = (a.kind, b.kind)
    if "scalar" in kinds:
        many = b if a.kind == "scalar" else a
        nonneg = a.nonneg and b.nonneg and a.kind == b.kind
        return Value(many.type, _weft.binary(OPS["mul"], a.ids, b.ids), nonneg=nonneg, wraps=nonneg)
    if kinds == ("quaternion", "quaternion"):
        return library_product("mul", a, b)
    if kinds == ("transform", "transform"):
        return library_product("transform_multiply", a, b)
    if kinds == ("transform", "vector") and len(b.ids) == 3:
        return library_product("transform_point", a, b)
    if kinds == ("quaternion", "vector") and len(b.ids) == 3:
        return library_product("quat_rotate", a, b)
    return matrix_product(name, a, b)


def library_product(name, a, b):
    """A product that the library has as a function."""
    dtype, ids = _weft.call(name, (a.type.native, b.type.native), (a.ids, b.ids))
    return Value(dtype.python, ids)


def matrix_product(name, a, b):
    """Products of matrices, and of matrices with vectors, which stand as columns on the right and as rows on the left."""
    kinds = (a.kind, b.kind)
    rows, inner = (1, len(a.ids)) if a.kind == "vector" else a.type._shape_
    height, columns = (len(b.ids), 1) if b.kind == "vector" else b.type._shape_
    if kinds not in (("matrix", "matrix"), ("matrix", "vector"), ("vector", "matrix")) or inner != height:
        refuse(name, a, b)
    ids = _weft.matmul(a.ids, b.ids, rows, inner, columns)
    if kinds == ("matrix", "matrix"):
        return Value(matrices.matrix((rows, columns), a.scalar), ids)
    return Value(vectors.vector(len(ids), a.scalar), ids)


def divide(name, a, b):
    """/, which cuts the quotients of integers."""
    if a.scalar is not b.scalar:
        refuse(name, a, b)
    if a.kind == "scalar" or b.kind == "scalar":
        many = b if a.kind == "scalar" else a
        return Value(many.type, _weft.binary(OPS["div"], a.ids, b.ids), nonneg=a.never_negative and b.never_negative)
    refuse(name, a, b)


def floor_divide(name, a, b):
    """//, the quotient rounded down."""
    if not same_type(a.type, b.type) or a.kind != "scalar":
        refuse(name, a, b)
    dtype, ids = _weft.call("floor_div", (a.type.native, b.type.native), (a.ids, b.ids))
    return Value(dtype.python, ids, nonneg=a.never_negative and b.never_negative)


def remainder(name, a, b):
    """%, with the sign of the dividend."""
    if a.scalar is not b.scalar or not (same_type(a.type, b.type) or "scalar" in (a.kind, b.kind)):
        refuse(name, a, b)
    if a.kind not in ("scalar", "vector") or b.kind not in ("scalar", "vector"):
        refuse(name, a, b)
    many = b if a.kind == "scalar" else a
    return Value(many.type, _weft.binary(OPS["rem"], a.ids, b.ids), nonneg=a.never_negative)


def power(name, a, b):
    """** of real numbers."""
    if not same_type(a.type, b.type) or a.kind != "scalar" or not issubclass(a.scalar, scalars.FloatScalar):
        refuse(name, a, b)
    return Value(a.type, _weft.binary(OPS["pow"], a.ids, b.ids))


def bitwise(name, a, b):
    """&, |, ^ of integers and booleans, component by component."""
    if a.scalar is not b.scalar or issubclass(a.scalar, scalars.FloatScalar):
        refuse(name, a, b)
    if not same_type(a.type, b.type) and "scalar" not in (a.kind, b.kind):
        refuse(name, a, b)
    many = b if a.kind == "scalar" else a
    a_is, b_is = a.never_negative, b.never_negative
    nonneg = a_is and b_is or name == "bit_and" and (a_is or b_is)
    return Value(many.type, _weft.binary(BITWISE[name], a.ids, b.ids), nonneg=nonneg)


def shift(name, a, b):
    """<< and >> of integers, component by component."""
    if a.scalar is not b.scalar or not issubclass(a.scalar, scalars.IntegerScalar):
        refuse(name, a, b)
    if not same_type(a.type, b.type) and "scalar" not in (a.kind, b.kind):
        refuse(name, a, b)
    many = b if a.kind == "scalar" else a
    return Value(many.type, _weft.binary(SHIFTS[name], a.ids, b.ids), nonneg=name == "rshift" and a.never_negative)


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
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def comparable(name, a, b):
    """The operands of a comparison: numbers of different types, unlike in sums and products, in a type that holds both.

    Errors: CodegenError for integers of which no type holds the values of both.
    """
    one, other = (adapted(a, b.scalar) or a, b) if a.literal is not None else (a, adapted(b, a.scalar) or b)
    if one.kind != "scalar" or other.kind != "scalar" or one.scalar is other.scalar:
        return one, other
    kind = wider(one.scalar, other.scalar)
    if kind is None:
        refuse(name, a, b)
    return converted(one, kind), converted(other, kind)


def check_chained(a, b):
    """Refuses numbers of different types in the second comparison of ``x < a < b`` and in those after it, as Warp does."""
    if isinstance(a, Value) and isinstance(b, Value) and a.literal is None and b.literal is None:
        if a.kind == b.kind == "scalar" and a.scalar is not b.scalar:
            raise CodegenTypeError(
                f"Cannot chain comparisons of unequal types: {name_of_type(a)} and {name_of_type(b)}. "
                "Write them with `and`."
            )


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


def compare(name, a, b):
    """Comparisons of numbers, also of two types; of values with several components only == and !=, and of one type."""
    if not same_type(a.type, b.type):
        refuse(name, a, b)
    if a.kind != "scalar":
        if name not in ("eq", "ne"):
            refuse(name, a, b)
        equal = Value(scalars.bool, (_weft.all_equal(a.ids, b.ids),))
        return equal if name == "eq" else logical_not(equal)
    if a.scalar is scalars.bool and name not in ("eq", "ne"):
        a, b = converted(a, scalars.int32), converted(b, scalars.int32)
    if name in ("gt", "ge"):
        a, b, name = b, a, "lt" if name == "gt" else "le"
    return Value(scalars.bool, _weft.binary(OPS[name], a.ids, b.ids))


def logical_not(value):
    """The negation of a boolean."""
    if value.literal is not None:
        return literal(not value.literal)
    return Value(scalars.bool, (_weft.logical_not(value.id),))


def negate(value):
    """The unary -."""
    if isinstance(value, Value) and value.literal is not None:
        return literal(-value.literal)
    if not isinstance(value, Value) or value.scalar is scalars.bool:
        raise CodegenError(
            f"Couldn't find function overload for 'neg' that matched inputs with types: [{name_of_type(value)}]"
        )
    return Value(value.type, _weft.unary(OPS["neg"], value.ids))


def invert(value):
    """The unary ~ of integers."""
    if isinstance(value, Value) and isinstance(value.literal, int):
        return literal(~value.literal)
    if not isinstance(value, Value) or issubclass(value.scalar, scalars.FloatScalar):
        raise CodegenError(
            f"Couldn't find function overload for 'invert' that matched inputs with types: [{name_of_type(value)}]"
        )
    return Value(value.type, _weft.unary(OPS["bit_not"], value.ids))


def truth(value):
    """The value as a condition: numbers are compared with zero, arrays with an array that was left out.

    Errors: CodegenTypeError for values of several components.
    """
    if isinstance(value, ArrayValue):
        return literal(not value.ref.is_null)
    if isinstance(value, Static):
        return literal(bool(value.object))
    if isinstance(value, TupleValue):
        return literal(bool(value.items))
    if not isinstance(value, Value) or value.kind != "scalar":
        raise CodegenTypeError(f"a value of type {name_of_type(value)} is no condition: compare it, as in x != 0")
    if value.literal is not None:
        return literal(bool(value.literal))
    if value.scalar is scalars.bool:
        return value
    return Value(scalars.bool, _weft.convert(_weft.BOOL, value.ids))


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
        return Value(scalar, (_weft.constant(scalar.native.code, number),), nonneg=number >= 0)
    if value.scalar is scalar:
        return value
    nonneg = value.nonneg and issubclass(scalar, scalars.IntegerScalar)
    wraps = value.wraps or nonneg and issubclass(value.scalar, scalars.IntegerScalar)  # the lower bits of a wide one
    return Value(scalar, _weft.convert(scalar.native.code, value.ids), nonneg=nonneg, wraps=wraps)
