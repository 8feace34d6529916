"""Calls of functions with parameters that stand for variables of their caller: ``wp.ref[float]``.

The values go in and come out again: the function's code works on variables of its own, whose last values are written to
the places that the call names. So calls stay calls of the IR, and gradients are those of any function.
"""

import ast

from ..types.annotations import RefType, same_type, type_name
from . import places
from .errors import CodegenError, CodegenTypeError
from .tree.names import writes_arguments
from .values import StructValue, TupleValue, Value, name_of_type


def argument_places(e, node, overload):
    """The places that a call gives for the reference parameters of an overload, by the parameters' names.

    Errors: CodegenError for an argument that is no variable and no element of an array.
    """
    names = [name for name, _, _ in overload.parameters]
    nodes = dict(zip(names, node.args))
    nodes.update({keyword.arg: keyword.value for keyword in node.keywords})
    found = {}
    for name, kind, _ in overload.parameters:
        if not isinstance(kind, RefType):
            continue
        given = nodes.get(name)
        if given is not None and any(isinstance(n, ast.Call) and writes_arguments(n.func) for n in ast.walk(given)):
            raise CodegenError(f"the place of argument {name} depends on a call that changes variables: name it before")
        place = None if given is None or isinstance(given, ast.Starred) else places.locate(e, given)
        if not isinstance(place, places.Place) or isinstance(place, places.ValuePlace):
            raise CodegenError(
                f"{overload.name}() assigns to its parameter {name}: give it a variable or an element of an array"
            )
        if not same_type(place.type, kind.dtype):
            raise CodegenTypeError(
                f"parameter {name} of {overload.name}() is {type_name(kind)}, not {type_name(place.type)}"
            )
        found[name] = place
    return found


def write_back(e, overload, targets, result):
    """Writes what came out for the references to their places. Returns the function's own result."""
    count = len(targets)
    own, written = result.items[:-count], result.items[-count:]
    for place, value in zip(targets.values(), written):
        place.write(e, value)
    return own[0] if own else None


def with_references(emission, overload, result):
    """What a function's code gives: its result, if it has one, and after it the last values of its references."""
    from .emitter import read

    names = [name for name, kind, _ in overload.parameters if isinstance(kind, RefType)]
    if not names:
        return result
    last = [read(emission.names[name]) for name in names]
    return TupleValue(last if result is None else [result, *last])


def make_variables(emission, overload, values):
    """Makes the reference parameters variables of the code, as it may assign to them in any block.

    Errors: CodegenError for what is no value.
    """
    for (name, kind, _), value in zip(overload.parameters, values):
        if isinstance(kind, RefType):
            if not isinstance(value, (Value, StructValue)):
                raise CodegenError(f"parameter {name} of {overload.name}() is {type_name(kind)}, not {name_of_type(value)}")
            emission.names[name] = emission.make_local(value)


def refuse_address(args):
    """``address_of()`` is not there: kernels run on devices whose variables have no addresses."""
    raise CodegenError("kernels have no address_of(): a function that assigns to a variable takes it as wp.ref[...]")


HANDLERS = {"address_of": refuse_address}
