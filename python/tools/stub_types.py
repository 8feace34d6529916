"""The classes of vectors, matrices, quaternions and transforms in the stub, with the results of their operators."""

import stub_functions as functions
from stub_functions import NAME_OF, name_of, widened

from weft.types import scalars
from weft.types.named import NAMED

OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "matmul": "mul", "truediv": "div", "mod": "mod", "and": "bit_and",
    "or": "bit_or", "xor": "bit_xor", "lshift": "lshift", "rshift": "rshift",
}  # fmt: skip
"""Python's operators, and the names of those of kernels."""


def components(cls):
    """The types of a composite type's number, as a value and as a parameter."""
    return name_of(cls._wp_scalar_type_), widened(cls._wp_scalar_type_)


def base_of(cls):
    """The base of a composite type's class."""
    number = components(cls)[0]
    if cls.native.kind == "matrix":
        return f"_Matrix[{number}, {name_of(cls._wp_row_type_)}]"
    return f"_Vector[{number}]"


def constructors(cls):
    """The lines of the constructor."""
    _, number = components(cls)
    anything = f"    def __init__(self, *components: {number} | Iterable[Any]) -> None: ..."
    if cls.native.kind == "transform":
        part, turn = (f"{name}{cls.__name__[-1]} | Iterable[Any]" for name in ("vec3", "quat"))
        named = f"    def __init__(self, p: {part} = ..., q: {turn} = ...) -> None: ..."
    elif cls.native.kind == "matrix" or cls._length_ > 4:
        return [anything]
    else:
        named = f"    def __init__(self, {', '.join(f'{c}: {number}' for c in 'xyzw'[: cls._length_])}, /) -> None: ..."
    return ["    @typing.overload", named, "    @typing.overload", anything]


def method(name, rows):
    """The lines of an operator's method, for pairs of an operand's type and a result."""
    others = {}
    for other, result in rows:
        others.setdefault(result, []).append(other)
    lines = []
    for result, found in others.items():
        lines += ["    @typing.overload"] if len(others) > 1 else []
        lines.append(f"    def __{name}__(self, other: {' | '.join(dict.fromkeys(found))}) -> {result}: ...")
    return lines


def operators(cls):
    """The lines of the operators that a composite type has."""
    scalar = cls._wp_scalar_type_
    others = [c for c in NAME_OF if c._wp_scalar_type_ is scalar]
    lines = []
    for name, operator in OPERATORS.items():
        kinds = others if name == "matmul" else [scalar, *others]
        rows = [(widened(k) if k is scalar else name_of(k), functions.operator_result(operator, cls, k)) for k in kinds]
        lines += method(name, [row for row in rows if row[1] is not None])
        result = None if name == "matmul" else functions.operator_result(operator, scalar, cls)
        if result is not None:
            lines += method("r" + name, [(widened(scalar), result)])
    if scalar in scalars.INTEGERS:
        lines.append(f"    def __invert__(self) -> {name_of(cls)}: ...")
    return lines


def class_lines(name, cls):
    """The lines of one class."""
    lines = [f"class {name}({base_of(cls)}):"]
    number = components(cls)[0]
    if cls.native.kind in ("vector", "quaternion") and cls._length_ <= 4:
        lines += [f"    {c}: {number}" for c in "xyzw"[: cls._length_]]
    if cls.native.kind == "transform":
        lines += [f"    p: vec3{name[-1]}", f"    q: quat{name[-1]}"]
    return [*lines, *constructors(cls), *operators(cls), ""]


def type_lines():
    """The lines of all named types: classes, and other names for them."""
    lines = []
    for cls, name in NAME_OF.items():
        lines += class_lines(name, cls)
    lines += [f"{name} = {NAME_OF[cls]}" for name, cls in NAMED.items() if name != NAME_OF[cls]]
    return [*lines, ""]


