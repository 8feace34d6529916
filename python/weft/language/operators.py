"""Operators of kernels by the types of their operands. They promote nothing: only bare literals adapt."""

import ast
import math

from .. import _weft
from ..types import scalars
from ..types.annotations import same_type
from .errors import CodegenError, CodegenTypeError, CodegenValueError
from .rules import COMPARISONS, OPS, converted, find_rule, logical_not, refuse
from .values import ArrayValue, Static, StructValue, TupleValue, Value, adapted, literal, name_of_type

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
SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "bit_and": "&",
    "bit_or": "|", "bit_xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=",
}  # fmt: skip


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


RULES = {}
"""The rules that were found, by the operator's name and the types of its operands."""


def binary(name, a, b):
    """The result of one of the operators of SIGNS. Errors: CodegenError for operands that do not fit."""
    if type(a) is not Value or type(b) is not Value:
        if not isinstance(a, Value) or not isinstance(b, Value):
            return of_others(name, a, b)
        if a.literal is not None and b.literal is not None:
            return folded(name, a, b)
        a, b = beside_literal(a, b) if name in COMPARISONS else of_one_type(a, b, name)
    return rule_of(name, a, b)(a, b)


def rule_of(name, a, b):
    """The rule of an operator for two operands. Errors: CodegenError for operands that do not fit."""
    rule = RULES.get((name, a.type, b.type))
    if rule is None:
        rule = RULES[name, a.type, b.type] = find_rule(name, a, b)
    return rule


def of_others(name, a, b):
    """Comparisons of things of Python, and of structs and tuples; all else is refused."""
    if name in ("eq", "ne"):
        if isinstance(a, Static) and isinstance(b, Static):
            return literal((a.object == b.object) == (name == "eq"))
        for one, other in ((a, b), (b, a)):
            if isinstance(other, Static) and other.object is None and not isinstance(one, Static):
                is_none = isinstance(one, ArrayValue) and one.ref.is_null
                return literal(is_none == (name == "eq"))
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
    if real and name in ("bit_and", "bit_or", "bit_xor", "lshift", "rshift"):
        refuse(name, a, b)
    if name in ("lshift", "rshift") and y < 0:
        raise CodegenValueError(f"{x} {SIGNS[name]} {y} shifts by a negative number")
    if (name == "lshift" and x or name == "pow" and not real and abs(x) > 1) and y > 64:
        raise CodegenValueError(f"{x} {SIGNS[name]} {y} needs more than 64 bits, which no type of kernels has")
    try:
        if name == "div":
            number = x / y if real else cut_quotient(x, y)
        elif name == "floordiv":
            number = x // y
        elif name == "mod":
            number = real_remainder(x, y) if real else x - y * cut_quotient(x, y)
        elif name == "pow":
            number = power(x, y) if real or y < 0 else x**y
        else:
            number = FOLDS[name](x, y)
    except ZeroDivisionError:
        if real and name == "div":
            return literal(math.copysign(math.inf, x) * math.copysign(1.0, y) if x and x == x else math.nan)
        raise CodegenError(f"{x} {SIGNS[name]} {y} divides by zero") from None
    except OverflowError:
        raise CodegenValueError(f"{x} {SIGNS[name]} {y} is too large for a number of kernels") from None
    return literal(number)


def real_remainder(x, y):
    """The remainder of two real numbers with the sign of the first; NaN where there is none."""
    return math.fmod(x, y) if y and math.isfinite(x) else math.nan


def power(x, y):
    """x to the power of y, of real numbers; NaN where it is none."""
    made = float(x) ** float(y)
    return math.nan if isinstance(made, complex) else made


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


def beside_literal(a, b):
    """The operands of a comparison, of which one is a literal that takes the other's type if it can."""
    return (adapted(a, b.scalar) or a, b) if a.literal is not None else (a, adapted(b, a.scalar) or b)


def check_chained(a, b):
    """Refuses numbers of different types in the second comparison of ``x < a < b`` and in those after it, as Warp does."""
    if isinstance(a, Value) and isinstance(b, Value) and a.literal is None and b.literal is None:
        if a.kind == b.kind == "scalar" and a.scalar is not b.scalar:
            raise CodegenTypeError(
                f"Cannot chain comparisons of unequal types: {name_of_type(a)} and {name_of_type(b)}. "
                "Write them with `and`."
            )


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
