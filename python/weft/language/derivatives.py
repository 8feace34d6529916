"""Derivatives that a program gives for a function: ``@wp.func_grad`` and ``@wp.func_replay``.

A gradient function has the parameters of its function and one for each result's gradient. It adds to
``wp.adjoint[parameter]``, which for a value is a variable that begins at zero, and for an array the array of its gradients.
"""

import ast
import copy
import inspect

from .. import _weft
from ..types import annotations
from . import functions
from .builtin import Builtin
from .emitter import Emission, Environment, read
from .errors import CodegenError
from .tree.source import source_of
from .values import ArrayValue, StructValue, Value, from_ids, ids_of, zero

PREFIX = "adjoint of "


def is_adjoint(thing):
    """Whether a thing of Python is ``wp.adjoint``."""
    return isinstance(thing, Builtin) and thing.key == "adjoint"


def renamed(node):
    """``x.part`` of ``wp.adjoint[x.part]``, with the name under which the gradient of x is kept."""
    made = copy.deepcopy(node)
    for part in ast.walk(made):
        if isinstance(part, ast.Name):
            part.id = PREFIX + part.id
    return made


def reals_of(native):
    """For each scalar of a type whether it is a real number."""
    return [code in (_weft.FLOAT16, _weft.FLOAT32, _weft.FLOAT64) for code in native.codes]


class GradientFunction:
    """A Python function that gives the gradients of an overload's parameters."""

    def __init__(self, function, overload):
        self.function = function
        self.overload = overload
        self.source = source_of(function)
        self.environment = Environment(function)
        self.names = list(inspect.signature(function).parameters)

    def trace(self, values, result, adjoints):
        """Emits the function. Returns the gradients of the real scalars of its parameters, in order."""
        names = [name for name, _, _ in self.overload.parameters]
        arguments = dict(zip(self.names, values))
        given = self.names[len(names) :]
        results = result if isinstance(result, tuple) else () if result is None else (result,)
        if len(given) != len(results):
            raise CodegenError(
                f"the gradient function of {self.overload.name} takes {len(given)} gradients of results, "
                f"and the function has {len(results)} results"
            )
        adjoints = iter(adjoints)
        for name, kind in zip(given, results):
            arguments[name] = gradient_value(kind, adjoints)
        emission = Emission(self.source, self.overload.name, self.environment, True, self.overload.options)
        for name, value in zip(self.names, values):
            if isinstance(value, ArrayValue):
                emission.names[PREFIX + name] = ArrayValue(value.ref.gradient(), value.dtype, name)
            elif isinstance(value, (Value, StructValue)):
                emission.names[PREFIX + name] = emission.make_local(zero(value.type))
        emission.run(arguments)
        ids = []
        for name, value in zip(self.names, values):
            if isinstance(value, (Value, StructValue)):
                made = ids_of(read(emission.names[PREFIX + name]))
                ids.extend(i for i, real in zip(made, reals_of(value.type.native)) if real)
        return tuple(ids)


def gradient_value(kind, adjoints):
    """The gradient of a result: zero where its scalars are no real numbers."""
    native = kind.native
    zeros = _weft.zeros_of(native)
    return from_ids(kind, tuple(next(adjoints) if real else zero for real, zero in zip(reals_of(native), zeros)))


def overload_for(overloads, function, more):
    """The overload whose parameters those of a derivative begin with. Errors: CodegenError if there is none."""
    own = functions.Overload(function, function.__qualname__)
    kinds = [kind for _, kind, _ in own.parameters]
    for overload in reversed(overloads.overloads):
        wanted = [kind for _, kind, _ in overload.parameters]
        if kinds[: len(wanted)] == wanted and (more or len(kinds) == len(wanted)):
            return overload
    raise CodegenError(
        f"no overload of {overloads.key} has the parameters of {function.__qualname__}: "
        f"{', '.join(annotations.type_name(k) for k in kinds)}"
    )


def func_grad(forward_fn):
    """Gives a function its gradient (decorator): see the module.

    Errors: CodegenError for a function whose parameters are not those of an overload and the gradients of its results.
    """

    def made(function):
        overload = overload_for(forward_fn, function, True)
        overload.gradient = GradientFunction(function, overload)
        overload.codes.clear()
        return function

    return made


def func_replay(forward_fn):
    """Gives a function what runs in its place when the way back computes its values again (decorator)."""

    def made(function):
        overload = overload_for(forward_fn, function, False)
        overload.replay = function
        overload.codes.clear()
        return function

    return made
