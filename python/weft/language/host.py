"""Functions and operators of kernels on the host: the language's own code, traced with constants and evaluated."""

import numpy as np

from .. import _weft, config
from ..types import composites, scalars
from ..types.numpy_types import FROM_NUMPY
from . import builtins, calls, operators
from .errors import CODEGEN_ERRORS
from .statics import apart, of_python
from .values import TupleValue, Value, ids_of

CHECKS = {"expect_eq", "expect_neq", "expect_near"}
ONLY_IN_KERNELS = {"tid", "block_dim", "print", "printf", "load", "store"}
SHOWN = {int: "int", float: "float", bool: "bool"}


class HostKernel(_weft.KernelHandle):
    """A kernel of one thread that computes what the host asks for, where the trace alone does not know it."""

    def __init__(self, native):
        super().__init__()
        self.native = native


def evaluated(emit):
    """The Python values of what a function emits. The trace computes with constants; what it leaves to a device, such as
    loops, the interpreter runs.
    """
    held = []

    def trace(args):
        value = emit()
        held[:] = [value, [_weft.known(i) for i in ids_of(value)]]

    kernel = _weft.Kernel("host", __file__, 1, [], trace)
    try:
        kernel.ir_hash()
    except _weft.Error as error:
        if "inside another kernel" not in str(error):
            raise
        return apart(lambda: evaluated(emit))  # a kernel is being traced, which asks in a static expression
    value, numbers = held
    if any(n is None for n in numbers):
        numbers = interpreted(emit, len(numbers))
    return python_value(value, iter(numbers))


def interpreted(emit, count):
    """The numbers that a function emits, from a run on the interpreter: each is stored with the type that it has."""
    codes = []

    def body(args):
        ids = ids_of(emit())
        codes[:] = [_weft.code_of(i) for i in ids]
        for k, i in enumerate(ids):
            args[0].store((_weft.constant(_weft.INT32, k),), (bits_of(i),))

    out = _weft.zeros(count, scalars.uint64.native, _weft.Device("reference"))
    native = _weft.Kernel("host", __file__, 1, [(scalars.uint64.native, 1)], body)
    _weft.launch(HostKernel(native), 1, [out], record_tape=False)
    bits = out.numpy()
    return [number_of_bits(code, bits[k : k + 1]) for k, code in enumerate(codes)]


def bits_of(i):
    """The bits of a scalar as a number of 64."""
    kind = scalars.OF_CODE[_weft.code_of(i)]
    if issubclass(kind, scalars.FloatScalar):
        word = {2: _weft.UINT16, 4: _weft.UINT32, 8: _weft.UINT64}[kind.native.size]
        i = _weft.bitcast(word, (i,))[0]
    return _weft.convert(_weft.UINT64, (i,))[0]


def number_of_bits(code, bits):
    """The number of a scalar's bits."""
    kind = scalars.OF_CODE[code]
    word = bits.astype(f"uint{8 * kind.native.size}")
    return word.view(kind.numpy_name)[0].item()


def python_value(value, numbers):
    """A value of the trace with the numbers that its scalars have: Python numbers, values of the package, tuples."""
    if value is None:
        return None
    if isinstance(value, TupleValue):
        return tuple(python_value(item, numbers) for item in value.items)
    if not isinstance(value, Value):
        raise RuntimeError("the function gives something that has no value on the host")
    parts = [value.scalar.clean(next(numbers)) for _ in value.ids]
    if value.kind != "scalar":
        return value.type._make(parts)
    if config.legacy_scalar_return_types:
        return parts[0]
    return parts[0] if value.scalar in (scalars.int32, scalars.float32, scalars.bool) else value.type(parts[0])


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


def typed(value):
    """A number as a function takes it: NumPy's have their own types, and Python's integers 32 bits."""
    if isinstance(value, (np.number, np.bool_)) and np.dtype(type(value)) in FROM_NUMPY:
        return FROM_NUMPY[np.dtype(type(value))](value.item())
    if type(value) is int and not -(1 << 31) <= value < 1 << 31:
        return scalars.int32(value)
    return plain(value)


def call(key, args, keywords):
    """The result of a function of the language. Errors: RuntimeError for arguments that do not fit, and for functions
    that exist in kernels alone.
    """
    if key == "static":
        return args[0]
    if key in CHECKS:
        return check(key, args)
    if key in ONLY_IN_KERNELS or key.startswith("atomic_"):
        raise RuntimeError(f"{key}() may only be called from a Warp kernel")
    given = [typed(a) for a in args]

    node = HostCall()

    def emit():
        values = [of_python(sequence_value(a)) for a in given]
        named = {name: of_python(value) for name, value in keywords.items()}
        node.assigned.clear()
        value = calls.run(key, builtins.Arguments(None, node, values, named, 1))
        if isinstance(value, Value) and type(value.literal) is int:  # of bare integers, which are of 32 bits here
            value = operators.converted(value, scalars.int32)
        return TupleValue([*node.assigned.values(), *([] if value is None else [value])]) if node.assigned else value

    try:
        result = evaluated(emit)
    except CODEGEN_ERRORS as error:
        if any(isinstance(a, (np.number, np.bool_)) for a in args):
            return call(key, [plain(a) for a in args], keywords)  # as bare numbers, which adapt
        raise not_compatible(key, [*args, *keywords.values()]) from error
    if not node.assigned:
        return result
    for k, value in zip(node.assigned, result):
        assign(key, args[k], value)
    return result[len(node.assigned)] if len(result) > len(node.assigned) else None


def assign(key, target, value):
    """Gives a value of the host the components of another. Errors: RuntimeError for a number, which cannot change."""
    if not isinstance(target, composites.Composite):
        raise RuntimeError(f"{key}() assigns to an argument: on the host only values with components can change")
    for k, number in enumerate(value.tolist()):
        target.set(k, number)


def check(key, args):
    """expect_eq() and kin on the host: print a line where the values are not as expected."""
    a, b = args[:2]
    if key == "expect_eq":
        holds = bool(np.all(np.asarray(a == b)))
    elif key == "expect_neq":
        holds = not np.all(np.asarray(a == b))
    else:
        tolerance = args[2] if len(args) > 2 else 1.0e-6
        holds = np.allclose(np.asarray(a), np.asarray(b), rtol=0.0, atol=float(tolerance))
    if not holds:
        print(f"Error, {key}() failed: {a}, {b}")


class HostCall:
    """Stands for the node of a call: on the host no argument is a variable that could be assigned to."""

    args = [None] * 16

    def __init__(self):
        self.assigned = {}  # values by the number of the argument


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
