"""Functions and operators of kernels on the host: the language's own code, traced with constants and evaluated."""

from .. import _weft
from ..types import composites
from . import builtins, calls, operators
from .errors import CODEGEN_ERRORS
from .statics import of_python
from .values import TupleValue, Value, ids_of

ONLY_IN_KERNELS = {"tid", "block_dim", "print", "printf", "expect_eq", "expect_neq", "expect_near", "load", "store"}
SHOWN = {int: "int", float: "float", bool: "bool"}


def evaluated(emit):
    """The Python values of what a function emits."""
    held = []

    def body():
        value = emit()
        held[:] = [value]
        return ids_of(value)

    numbers = iter(_weft.evaluate(body))
    return python_value(held[0], numbers)


def python_value(value, numbers):
    """A value of the trace with the numbers that its scalars have: Python numbers, values of the package, tuples."""
    if value is None:
        return None
    if isinstance(value, TupleValue):
        return tuple(python_value(item, numbers) for item in value.items)
    if not isinstance(value, Value):
        raise RuntimeError("the function gives something that has no value on the host")
    parts = [next(numbers) for _ in value.ids]
    return parts[0] if value.kind == "scalar" else value.type._make(parts)


def not_compatible(name, args):
    """The error of arguments for which there is no function."""
    types = ", ".join(SHOWN.get(type(a), type(a).__name__) for a in args)
    return RuntimeError(f"Couldn't find a function '{name}' compatible with the arguments '{types}'")


def operate(name, a, b):
    """The result of a binary operator on values of the host. Errors: RuntimeError for operands that do not fit."""
    a, b = plain(a), plain(b)
    try:
        return evaluated(lambda: operators.binary(name, of_python(a), of_python(b)))
    except CODEGEN_ERRORS:
        raise not_compatible(name, (a, b)) from None


def plain(value):
    """A sequence of numbers as a vector would be ambiguous: only numbers and values of the package are operands."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def call(key, args, keywords):
    """The result of a function of the language. Errors: RuntimeError for arguments that do not fit, and for functions
    that exist in kernels alone.
    """
    if key in ONLY_IN_KERNELS or key.startswith("atomic_"):
        raise RuntimeError(f"{key}() may only be called from a Warp kernel")
    args = [plain(a) for a in args]

    def emit():
        values = [of_python(sequence_value(a)) for a in args]
        named = {name: of_python(value) for name, value in keywords.items()}
        return calls.run(key, builtins.Arguments(None, HostCall(), values, named, 1))

    try:
        result = evaluated(emit)
    except CODEGEN_ERRORS as error:
        raise not_compatible(key, [*args, *keywords.values()]) from error
    return result


class HostCall:
    """Stands for the node of a call: on the host no argument is a variable that could be assigned to."""

    args = [None] * 16


def sequence_value(value):
    """A tuple or list of numbers as a vector, of nested ones as a matrix."""
    if isinstance(value, (tuple, list)) and value:
        from ..types import matrices, scalars, vectors

        rows = isinstance(value[0], (tuple, list))
        numbers = composites.flatten(value)
        kind = scalars.int32 if all(isinstance(n, int) for n in numbers) else scalars.float32
        if rows:
            return matrices.matrix((len(value), len(value[0])), kind)._make(numbers)
        return vectors.vector(len(numbers), kind)._make(numbers)
    return value
