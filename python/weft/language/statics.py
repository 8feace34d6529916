"""Things of Python in kernels: constants, types, functions, modules, and expressions in ``wp.static``."""

import ast
import contextvars
import enum
import threading

import numpy as np

from .. import _weft
from ..types import composites, scalars, structs
from .errors import CodegenError, CodegenTypeError
from .tree.names import calls_static
from .tree.source import parameters_of
from .values import Static, StructValue, TupleValue, Value, literal, zero


def of_python(thing):
    """A thing of Python as an expression: numbers and values are constants, anything else stands for itself.

    Errors: CodegenTypeError for arrays, which kernels get as arguments.
    """
    if isinstance(thing, enum.IntFlag) or isinstance(thing, enum.IntEnum):
        return literal(int(thing))
    if isinstance(thing, (bool, int, float)):
        return literal(thing)
    if isinstance(thing, scalars.Scalar):
        kind = type(thing)
        known = thing.value >= 0
        return Value(kind, (_weft.constant(kind.native.code, thing.value),), nonneg=known)
    if isinstance(thing, composites.Composite):
        return constant_value(thing)
    if isinstance(thing, structs.StructInstance):
        return struct_constant(thing)
    if isinstance(thing, (np.number, np.bool_)):
        from ..types.numpy_types import dtype_from_numpy

        return of_python(dtype_from_numpy(thing.dtype)(thing.item()))
    if isinstance(thing, _weft.Array) or isinstance(thing, np.ndarray):
        kind = type(thing)
        raise CodegenTypeError(
            f"Invalid external reference type <class '{kind.__module__}.{kind.__qualname__}'>: "
            "kernels get arrays as arguments"
        )
    return Static(thing)


def constant_value(value):
    """A vector, matrix, quaternion or transform of the host as a constant."""
    code = value.native.code
    return Value(type(value), tuple(_weft.constant(code, n) for n in value.tolist()))


def struct_constant(value):
    """A struct of the host as a constant. Errors: CodegenTypeError if it holds arrays."""
    fields = {}
    if not type(value)._wp_fields_:
        return zero(type(value))
    for name in type(value)._wp_fields_:
        field = of_python(getattr(value, name))
        if isinstance(field, Static):
            raise CodegenTypeError(f"struct {type(value).__name__} holds an array in {name}: pass it as an argument")
        kind = type(value)._wp_fields_[name]
        if isinstance(field, Value) and field.literal is not None:
            field = Value(kind, (_weft.constant(kind.native.code, field.literal),))
        fields[name] = field
    return StructValue(type(value), fields)


def evaluate_static(emission, node):
    """The value of ``wp.static(expression)``: Python evaluates it where the kernel is defined, or, if it is not known there,
    while the kernel is traced.

    Variables of the kernel have their values there if these are known, such as counters of unrolled loops.
    Errors: CodegenError for a value that kernels cannot have, and for whatever the expression raises.
    """
    settled = emission.environment.settled
    if node in settled:
        return of_static(settled[node])
    if len(node.args) + len(node.keywords) != 1:
        raise CodegenError("static() takes one expression")
    expression = expression_of(node)
    names = {}
    for part in ast.walk(expression):
        if isinstance(part, ast.Name) and part.id in emission.names:
            value = emission.lookup(part.id)
            known, number = host_value(value)
            if known:
                names[part.id] = number
            elif isinstance(value, TupleValue):
                names[part.id] = Unknown(len(value.items))
            elif isinstance(value, Value) and value.kind != "scalar":
                names[part.id] = Unknown(value.type._shape_[0])
    try:
        value = value_of(expression, names, emission.environment, emission.source.file)
    except Exception as error:
        advice = ". Make sure all variables used in the static expression are constant." * isinstance(error, NameError)
        raise CodegenError(f"Error evaluating static expression: {error}{advice}") from error
    return of_static(value)


def expression_of(node):
    """What a call of static() is given."""
    return node.args[0] if node.args else node.keywords[0].value


def value_of(expression, names, environment, file):
    """The value of an expression of Python with names of its own, and those that a function sees. Errors: any."""
    scope = dict(environment.function.__globals__)
    for part in ast.walk(expression):
        if isinstance(part, ast.Name) and part.id not in names:
            try:
                scope[part.id] = environment.find(part.id)
            except KeyError:
                pass
    scope.update(names)
    return eval(compile(ast.Expression(expression), file, "eval"), scope)


def settle(code):
    """Evaluates the static expressions of a kernel or an overload that is being defined, if names of Python decide them: these
    may mean something else when it is traced, as where kernels are defined in a loop.

    What cannot be evaluated yet is left to the trace, as are expressions with variables of the function.
    """
    if "static" not in code.environment.function.__code__.co_names:
        return
    try:
        source = code.source
    except CodegenError:
        return  # the trace says so
    calls = [n for statement in source.body for n in ast.walk(statement) if calls_static(n) and len(n.args) + len(n.keywords) == 1]
    inside = {id(n) for call in calls for n in ast.walk(expression_of(call))}
    names = (n for statement in source.body for n in ast.walk(statement) if isinstance(n, ast.Name) and id(n) not in inside)
    own = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | {p.arg for p in parameters_of(source.node)}
    for call in calls:
        if own.isdisjoint(n.id for n in ast.walk(expression_of(call)) if isinstance(n, ast.Name)):
            try:
                code.environment.settled[call] = value_of(expression_of(call), {}, code.environment, source.file)
            except Exception:  # a name that is not there yet, and whatever the expression throws
                continue
    code.given_source = source  # as its nodes are the keys


def apart(function):
    """The result of a function that another thread runs, as a thread traces one kernel at a time."""
    held, errors = [], []

    def run():
        try:
            held.append(function())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return held[0]


class Unknown:
    """A vector, matrix or tuple of the kernel in a static expression: its length is known, its parts are not."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length


def of_static(value):
    """The value of a static expression. Errors: CodegenError for what no kernel can hold."""
    reason = unsupported(value)
    if reason:
        raise CodegenError(f"Static expression returns an unsupported value: {reason}")
    made = of_python(value)
    if isinstance(made, Static) and isinstance(value, (tuple, list)):
        return TupleValue([of_static(v) for v in value])
    return made


def unsupported(value):
    """Why a value cannot stand in a kernel; None if it can."""
    from ..runtime.function import Function

    if value is None:
        return "None is returned"
    if isinstance(value, _weft.Array):
        return "a Warp array cannot be created inside Warp kernels"
    if isinstance(value, structs.StructInstance):
        inner = unsupported_field(value, type(value).__qualname__.rpartition(".")[2])
        if inner:
            return (
                "the returned Warp struct contains a data type that cannot be constructed inside Warp kernels: " + inner
            )
        return None
    known = (bool, int, float, str, scalars.Scalar, composites.Composite, np.number, np.bool_, type, Function, range)
    if isinstance(value, known) or callable(value):
        return None
    if isinstance(value, (tuple, list)):
        return next((r for r in map(unsupported, value) if r), None)
    return f"value of type {type(value).__module__}.{type(value).__qualname__}"


def unsupported_field(value, path):
    """The array inside a struct, if there is one."""
    for name in type(value)._wp_fields_:
        field = getattr(value, name)
        if isinstance(field, _weft.Array):
            return f"a Warp array cannot be created inside Warp kernels at {path}.{name}"
        if isinstance(field, structs.StructInstance):
            inner = unsupported_field(field, f"{path}.{name}")
            if inner:
                return inner
    return None


def host_value(value):
    """Whether a value of the trace is known, and what it is on the host."""
    if isinstance(value, Static):
        return True, value.object
    if isinstance(value, TupleValue):
        parts = [host_value(item) for item in value.items]
        return all(k for k, _ in parts), tuple(n for _, n in parts)
    if not isinstance(value, Value):
        return False, None
    if value.literal is not None:
        return True, value.literal
    numbers = [_weft.known(i) for i in value.ids]
    if any(n is None for n in numbers):
        return False, None
    if value.kind == "scalar":
        return True, numbers[0] if value.scalar in (scalars.int32, scalars.float32) else value.type(numbers[0])
    return True, value.type._make(numbers)
