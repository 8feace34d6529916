"""Calls in kernels: what is called decides between constructors, functions of the library, and functions of the program."""

import ast
import builtins as python
import functools
import types

from .. import _weft
from ..types import matrices, quaternions, scalars, vectors
from ..types.empty import EmptyType
from . import builtins, constructors, functions, library, operators, references
from .arrays import atomics, private
from .builtin import Builtin
from .errors import CodegenError, CodegenTypeError, CodegenValueError
from .signatures import FORMS
from .statics import evaluate_static
from .structures import queries, volumes
from .values import ArrayValue, Static, literal, name_of_type

# Functions of Python itself that kernels have under the same name.
OF_PYTHON = {
    python.min: "min",
    python.max: "max",
    python.abs: "abs",
    python.round: "round",
    python.len: "len",
    python.print: "print",
    python.pow: "pow",
}
# Functions that the package has on the host under the name of one in kernels.
OF_PACKAGE = {
    vectors.vector: "vector",
    matrices.matrix: "matrix",
    matrices.matrix_from_rows: "matrix_from_rows",
    matrices.matrix_from_cols: "matrix_from_cols",
    quaternions.quaternion: "quaternion",
    quaternions.transformation: "transformation",
}
TYPES_OF_PYTHON = {python.int: "int32", python.float: "float32", python.bool: "bool"}
HANDLERS = {
    **builtins.HANDLERS, **atomics.HANDLERS, **queries.HANDLERS, **volumes.HANDLERS, **references.HANDLERS,
    **private.HANDLERS,
}  # fmt: skip
IN_LIBRARY = {key: functools.partial(library.call, key) for key in FORMS if key not in HANDLERS}


SCALAR_TYPES = set(scalars.SCALARS)


def conversion(cls):
    """The conversion of a number to a scalar type, as a function of the values that a call gives it."""

    def convert(values):
        if len(values) == 1 and values[0].type in SCALAR_TYPES:
            return operators.converted(values[0], cls)
        return constructors.scalar(cls, values, {})

    return convert


CONVERTERS = {cls: conversion(cls) for cls in scalars.SCALARS}
CONVERTERS |= {python.int: CONVERTERS[scalars.int32], python.float: CONVERTERS[scalars.float32]}


def call(e, node, targets=1):
    """The value of a call; None if it has none. `targets` is the number of names that the result unpacks into, which tid()
    must know. Errors: CodegenError for what kernels cannot call.
    """
    return call_of(e, node, expressions.evaluate(e, node.func), targets)


def direct(called):
    """What a call does with its values if it needs nothing else: a function of the library, or a conversion of a number.
    None for other calls.
    """
    thing = called.object if type(called) is Static else None
    if type(thing) is Builtin:
        return IN_LIBRARY.get(thing.key)
    return CONVERTERS.get(thing) if type(thing) is type else None


def call_of(e, node, called, targets):
    """The value of a call of what its function is."""
    e.at(node)
    if not isinstance(called, Static):
        raise CodegenError(f"{ast.unparse(node.func)} is a {name_of_type(called)}, which cannot be called")
    thing = called.object
    if isinstance(thing, Builtin) and thing.key == "static":
        return evaluate_static(e, node)
    values, keywords = given(e, node)
    e.at(node)
    if thing is type and len(values) == 1 and not keywords:
        return Static(values[0].type)
    if isinstance(thing, type):
        return construct(thing, values, keywords)
    if isinstance(thing, EmptyType):
        if values or keywords:
            raise CodegenError(f"{ast.unparse(node.func)} has no components: it is made of nothing")
        return Static(thing())
    arguments = builtins.Arguments(e, node, values, keywords, targets)
    if isinstance(thing, functions.Overloads):
        return functions.call(thing, values, keywords, (e, node))
    key = thing.key if isinstance(thing, Builtin) else of_python(thing)
    if key is None:
        name = ast.unparse(node.func)
        raise CodegenError(f"Could not find function {name} as a built-in or user-defined function{why_not(thing)}")
    return run(key, arguments)


def why_not(thing):
    """Why kernels cannot call a thing of Python, as the end of a sentence."""
    if isinstance(thing, _weft.KernelHandle):
        return ": it is a kernel, which only a launch runs; what several kernels do is a function with @wp.func"
    own = (getattr(thing, "__module__", None) or "").partition(".")[0] == "weft"
    if isinstance(thing, types.FunctionType) and not own:
        return ": it is a function of Python, which kernels call if it is decorated with @wp.func"
    if callable(thing):
        return ": it belongs to the host"
    return f": it is a {type(thing).__name__}, which cannot be called"


def of_python(thing):
    """The name in kernels of a function of Python; None if kernels do not have it."""
    try:
        return OF_PYTHON.get(thing) or OF_PACKAGE.get(thing) or getattr(thing, "_wp_key_", None)
    except TypeError:
        return None  # not hashable


def run(key, arguments):
    """Calls a function of the language by its name."""
    handler = HANDLERS.get(key)
    if handler is not None:
        return handler(arguments)
    if key in ("vector", "matrix", "quaternion", "transformation"):
        kind = "transform" if key == "transformation" else key
        return constructors.anonymous(kind, arguments.values, arguments.keywords)
    if key in FORMS:
        return library.call(key, arguments.values, arguments.keywords)
    raise CodegenError(f"{key}() is not supported in kernels yet")


def construct(cls, values, keywords):
    """A type that is called."""
    if cls in TYPES_OF_PYTHON:
        cls = getattr(scalars, TYPES_OF_PYTHON[cls])
    if getattr(cls, "native", None) is None:
        raise CodegenError(f"{cls.__module__}.{cls.__qualname__} cannot be made in a kernel")
    return constructors.construct(cls, values, keywords)


def unpacked(e, node):
    """The values of a starred argument. Errors: CodegenTypeError for what has no parts, and those of elements_of()."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        base = places.locate(e, node.value)
        if isinstance(base, ArrayValue):
            return elements_of(e, base, node.slice)
    items = expressions.items_of(expressions.evaluate(e, node))
    if items is None:
        raise CodegenTypeError(
            f"Starred expressions are only supported for vectors, matrices, tuples and slices of arrays, not *{ast.unparse(node)}"
        )
    return items


def elements_of(e, array, bounds):
    """``*array[lo:hi:step]``: the elements, with bounds that are known while tracing.

    Errors: CodegenValueError for bounds that are not known, missing or negative.
    """
    numbers = []
    for part in (bounds.lower, bounds.upper, bounds.step):
        value = None if part is None else subscripts.integer(expressions.evaluate(e, part))
        numbers.append(None if value is None else subscripts.known_index(value))
        if value is not None and numbers[-1] is None:
            raise CodegenValueError("Slice component must be a compile-time constant to unpack a slice of an array")
    low, high, step = numbers
    if step is not None and step < 0:
        raise CodegenValueError("the step cannot be negative where a slice of an array is unpacked")
    if high is None:
        raise CodegenValueError("unpacking a slice of an array requires explicit upper bound")
    if high < 0 or (low or 0) < 0:
        raise CodegenValueError("the bounds of a slice that is unpacked cannot be negative for arrays")
    made = []
    for k in range(low or 0, high, step or 1):
        found = subscripts.of_array(e, array, [literal(k)])
        made.append(found if isinstance(found, ArrayValue) else places.loaded(e, found))
    return made


def given(e, node):
    """The values of the arguments, with starred tuples unpacked, and those of the keywords."""
    values = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            values.extend(unpacked(e, argument.value))
        else:
            values.append(expressions.evaluate(e, argument))
    keywords = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise CodegenError("kernels do not unpack `**` into keywords")
        keywords[keyword.arg] = expressions.evaluate(e, keyword.value)
    check_values(node, [*values, *keywords.values()])
    return values, keywords


def check_values(node, values):
    """Refuses arguments that are calls without a value."""
    if None in values:
        raise CodegenError(f"argument {values.index(None) + 1} of {ast.unparse(node.func)} has no value")


from . import expressions, places, subscripts  # noqa: E402  (which call what is here)
